"""Search on Spark, for what one machine cannot hold: a level is a DataFrame, and deduplication is the shuffle.

`stepper` expands rows inside a task; `engine` runs level after level and keeps each one on disk, so that a search that
was stopped goes on where it was. Counts are those of every other engine (`distro_model.search.results`).
"""
