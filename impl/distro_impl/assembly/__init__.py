"""How the parts of a node are put together: one file for each side of it, and `parts.py`, which knows all sides."""
