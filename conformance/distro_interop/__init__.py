"""The reference node beside software that others wrote.

`differential` sends the same requests to a real server and to a reference node and lists what differs; `sdks` lets the
official SDKs work with three nodes. Both test the node of this repository rather than a user's node, so the wheel
leaves them out: `distrocheck test differential` and `distrocheck test sdks` work in a checkout.
"""
