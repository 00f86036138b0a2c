"""The same scripts against a real server and a reference node, and every difference of the answers.

Where the requirements say what must be true of any node, here the real server is the rule: `scripts` say what is asked,
`script_run` asks it and keeps a log, `normalise` removes the values of one run from a log, `compare` yields the
differences. Known differences are `listed` with the reason; any other one is a fault of the reference node.
"""
