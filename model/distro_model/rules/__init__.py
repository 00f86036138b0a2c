"""The rules of a node, by topic; each function is a named transition with its source.

`clients` what a connection does, `sync` how a change is sent, `receive` how it is applied, `verify` anti-entropy and
leases, `load` the first snapshot, `members` member states, `notify` and `index` the effects of a change inside the
node, `connections` which clients are still alive, `health` which connections to peers still work, `metadata` what an
operator sets, `torn` operations that take several steps (B05), `owners` the owner of a client, `ip_clients` the HTTP
API. They import each other only downwards: `connections` → `clients`, `load`, `torn` → `receive`, `verify` →
`ip_clients` → `notify` → `sync`, `index`, `owners`.
"""
