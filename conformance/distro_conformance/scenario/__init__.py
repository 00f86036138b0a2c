"""Scenarios: the text, its replay on model and nodes, and the counterexamples that the explorer tells in it."""
