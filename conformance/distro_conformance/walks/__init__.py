"""Walks over a cluster: random walks, tours of every transition, rare starts; and lockstep, which judges them."""
