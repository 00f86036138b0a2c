"""Several reference nodes and the model side by side, driven by Hypothesis: run, oracle, machine, search."""
