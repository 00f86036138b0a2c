"""What a search of the model found, as scenarios that nodes can replay, and in the formats of other tools."""
