"""One node observed from outside: all other members and clients are played, and only what the node sends and answers is
observed.

The model is the same; the exact times of events inside the node are open. `client` is the set of states in which the
node may hold one client, given all observations so far; `node` passes each observation to the clients that it concerns,
and has the possible beliefs of the node about its members.
"""

from distro_model.outside.client import Undecided
from distro_model.outside.node import NodeOutside
from distro_model.outside.slack import Slack
from distro_model.outside.unexplained import Unexplained

__all__ = ["NodeOutside", "Slack", "Undecided", "Unexplained"]
