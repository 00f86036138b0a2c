"""Walks over a cluster: random walks, tours of every transition, rare starts; and lockstep, which judges them."""

STEPS_PER_RUN = 100
"""The steps of a run of a search, by default."""

NODES = ("a", "b", "c")
"""The nodes of a walk."""
PEERS = ("b", "c", "d")
"""The played members, where the only node is the first of NODES."""
