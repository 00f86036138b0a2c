"""Cluster conformance on real servers: three nodes with a link of ours in each direction, and the recorded script."""
