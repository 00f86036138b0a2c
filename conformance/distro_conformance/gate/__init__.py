"""The gate: explore, hold one node against the requirements, drive several in lockstep, judge all that was recorded.

`options` says what a run is told, `stages` holds one function for each stage, `run` puts them in order and makes the
report. A stage never looks at another one's result; what they share is the directory of traces.
"""
