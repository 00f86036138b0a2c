"""One node seen from outside: everybody else is played, and of the node only what it sends and answers is observed.

The model is the same; what is left open is when exactly things happen inside the node. `client` is the set of states
in which the node may hold one client, given everything observed so far; `node` sends each observation to the clients
that it concerns, and knows what the node may believe of its members.
"""

from distro_model.outside.node import NodeOutside
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained

__all__ = ["NodeOutside", "Slack", "Unexplained"]
