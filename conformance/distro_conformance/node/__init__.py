"""Node conformance: one node under test; the kit plays its peer and its clients, and `run` tries every requirement."""
