"""The reference node: a Nacos server as far as ephemeral instances go, over gRPC, HTTP and Distro.

`Node` is one server, `Cluster` several in one process; all time goes through a `Clock`. Profiles say which release
a node behaves like. The reading of docs/protocol in here is independent of the model's.
docs/node.md shows the rooms.

Left out: the configuration service and the console; persistent instances and metadata set by operators, which need
Raft; selectors and health checks by the server; lists from data of 1.x; plain text beside TLS on one port. A snapshot
is one message, as in every release, so one above the message limit can never be loaded (B11).
"""

from distro_impl.clocks.clock import Clock, SystemClock, TimerHandle
from distro_impl.clocks.virtual_clock import NotSettledError, VirtualClock, WorkFailedError
from distro_impl.cluster import Cluster
from distro_impl.config import NodeConfig
from distro_impl.events import NodeEvent, NodeEventKind, Observer
from distro_impl.membership.lookup import MemberListError, parse_member_list
from distro_impl.node import Node
from distro_impl.options import NodeOptions
from distro_impl.ports import NotOurAddressError, PortInUseError, free_main_ports
from distro_impl.profiles import PROFILES, Profile, UnknownProfileError, profile_named
from distro_impl.settings import SettingError

__all__ = [
    "PROFILES",
    "Clock",
    "Cluster",
    "MemberListError",
    "Node",
    "NodeConfig",
    "NodeEvent",
    "NodeEventKind",
    "NodeOptions",
    "NotOurAddressError",
    "NotSettledError",
    "Observer",
    "PortInUseError",
    "Profile",
    "SettingError",
    "SystemClock",
    "TimerHandle",
    "UnknownProfileError",
    "VirtualClock",
    "WorkFailedError",
    "free_main_ports",
    "parse_member_list",
    "profile_named",
]
