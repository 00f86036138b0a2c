"""The kit, judged: each mutant is switched on, and must be noticed.

`matrix` says what a row of the kill matrix is and runs it; `levels` how a mutant is put to the test at each level:
explored in the model, hunted on the reference node, or looked for in traces.
"""
