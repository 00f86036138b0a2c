"""The nodes that can be tested: a reference node in this process, a server as a child process, or a running server.

`target` defines what the kit needs of a node; each kind of target is one file. The other modules (`ports`, `releases`,
`maven`, ...) fetch, start and stop a real server without leaving files or processes behind.
"""
