"""Walks over a cluster: random walks, tours of every transition, rare starts; and lockstep, which judges them."""

STEPS_PER_RUN = 100
"""The steps of a run of a search, by default."""
