"""The logs of real Nacos servers as a trace.

`files` finds which log files belong to which node, `records` cuts them into time-stamped records, `facts` knows the
phrases that the servers log, `history` turns one node's facts into what it held and did, and `importer` puts the nodes
together into one recording. Source of the phrases: docs/protocol #log-lines.
"""
