"""From what links carry and nodes say to trace rows."""
