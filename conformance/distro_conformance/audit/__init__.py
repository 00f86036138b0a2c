"""What live members hold, compared: which client diverged, where, and since when that is seen.

`member` asks one member, read-only and paced; `compare` knows when a difference is more than a message on its way.
"""
