"""Time as a node sees it: real in `serve`, virtual under test, and ending with the node in both."""
