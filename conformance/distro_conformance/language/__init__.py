"""The language of scenarios: the model's actions, expectations about nodes, and the text form of both."""
