"""Several reference nodes and the model side by side, driven by Hypothesis or by tours: run, oracle, machine."""
