"""The gate: explore, hold one node against the requirements, drive several in lockstep, judge all that was recorded.

`options` holds the settings of a run, `stages` one function for each stage, `run` puts them in order and makes the
report. A stage never reads another stage's result; what they share is the directory of traces.
"""
