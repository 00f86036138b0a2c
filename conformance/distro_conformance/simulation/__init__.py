"""Random timed runs of the model, as large as you like, written as traces that `check` reads like any recording.

`cluster` drives the model's step function through time: timers, messages with a latency, links with faults. `journal`
says which rows that makes. `clients` and `faults` are what happens to a cluster, each by the seed. `run` puts them
together: seasons of change and damage, each followed by a calm one and a checkpoint.
"""
