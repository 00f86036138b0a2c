"""What can stand under test: a reference node in this process, or a real Nacos server as a child process.

`target` says what the kit needs of either, one file per kind does it; the rest (`ports`, `releases`, `maven`, `jvm`)
is what a real server takes to be fetched, started and stopped without leaving anything behind.
"""
