"""Walks over a cluster: random ones, tours of every transition, rare starts; and lockstep, which judges them."""
