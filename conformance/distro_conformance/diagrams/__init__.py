"""Runs as pictures: a sequence diagram is a value (`sequence`), made from the transitions of the model (`transitions`),
and drawn as SVG for the report, the pages and the explorer in the browser (`svg`)."""
