"""The kit, judged: each mutant is switched on, and must be noticed.

`kill` is a row of the kill matrix and `matrix` runs it; `levels` says how a mutant is put to the test at each level:
explored in the model, hunted on the reference node, or, in `traces`, looked for in what a simulation wrote.
"""
