"""The rules: everything that one node does, by topic, each function a named transition with its source.

`clients` what a connection does, `sync` how a change leaves, `receive` how it arrives, `verify` anti-entropy and
leases, `load` the first snapshot, `members` who is UP, `notify` and `index` what follows from a change inside the node,
`connections` which clients are still there, `health` which peers' connections still work, `metadata` what an operator
sets, `torn` what is not done at once (B05), `owners` who answers for a client, `ip_clients` the HTTP API. They import
each other only downwards: `connections` → `clients`, `load`, `torn` → `receive`, `verify` → `ip_clients` → `notify` →
`sync`, `index`, `owners`.
"""
