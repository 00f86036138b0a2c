"""How encoded payloads get from one end to the other: over real gRPC, or in memory in an order that a seed chooses."""
