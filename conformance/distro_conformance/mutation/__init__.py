"""Tests of the kit: each mutant is switched on, and the kit must notice it.

`kill` is a row of the kill matrix and `matrix` runs it; `levels` defines the test of a mutant at each level:
explored in the model, searched for on the reference node, or, in `traces`, looked for in what a simulation wrote.
"""
