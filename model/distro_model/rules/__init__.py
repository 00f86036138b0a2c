"""The rules: everything that one node does, by topic, each function a named transition with its source.

`clients` what a connection does, `sync` how a change leaves, `receive` how it arrives, `verify` anti-entropy and
leases, `load` the first snapshot, `members` who is UP, `torn` what is not done at once (B05). They import each other
only downwards:
`clients`, `receive`, `verify`, `load` → `sync`; `clients`, `load`, `torn` → `receive`.
"""
