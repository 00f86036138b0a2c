"""The same scripts against a real server and a reference node, and every difference of what came back.

Where the requirements say what must be true of any node, here the real server is the rule: `scripts` say what is asked,
`stage` asks it and keeps a log, `normalise` takes out of a log what no two runs have in common, `compare` says what is
left. What is known to differ is `listed`, with why it stays so; anything else is a fault of the reference node.
"""
