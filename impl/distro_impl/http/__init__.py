"""The HTTP side of a node, on its main port: for old clients, for members of old releases, and for operators."""
