"""Drivers: one contract, `Cluster`, and a file for each kind of cluster that a run can be done on."""
