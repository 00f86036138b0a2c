"""From what links carry and nodes say to trace rows, and how to take one effect out of a recording again."""
