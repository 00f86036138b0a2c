"""The rules: everything that one node does, by topic, each function a named transition with its source.

`clients` what a connection does, `sync` how a change leaves, `receive` how it arrives, `verify` anti-entropy and
leases, `load` the first snapshot, `members` who is UP, `owners` who answers for a client, `ip_clients` the HTTP API.
They import each other only downwards: `clients`, `ip_clients`, `members` → `sync`, `owners`; `receive`, `verify` →
`ip_clients`; `load` → `receive`.
"""
