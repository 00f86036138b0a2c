"""Comparison of running members: which clients diverged, on which members, and since which reading.

`member` reads one member, slowly and without changing anything. `compare` distinguishes a divergence from a message
that is on its way.
"""
