"""The gate: explore, check one node against the requirements, drive several in lockstep, judge the recordings.

`options` holds the settings of a run, `stages` one function for each stage, `run` puts them in order and makes the
report. A stage never reads another stage's result; stages share only the directory of traces.
"""
