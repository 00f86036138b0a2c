"""Comparison of live members: which client diverged, where, and since when that is observed.

`member` reads one member, read-only and paced; `compare` distinguishes a divergence from a message under way.
"""
