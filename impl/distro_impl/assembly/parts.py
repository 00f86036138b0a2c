"""All parts of a node, side by side: what stands on what, and in which order they begin."""

from __future__ import annotations

from distro_impl.assembly.distro import Distro
from distro_impl.assembly.http import http_server
from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.assembly.remote import Remote, grpc_servers
from distro_impl.core import Core
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.events import Observer
from distro_impl.http.filters import UP
from distro_impl.http.server import HttpServer
from distro_impl.membership.cluster_clients import PeerLinks
from distro_impl.remote.acceptor import RequestAcceptor

Servers = tuple[RequestAcceptor | HttpServer, ...]


class Parts:
    def __init__(self, core: Core, observer: Observer | None, links: PeerLinks | None) -> None:
        """Raises MemberListError when the file with the members cannot be used."""
        self.core = core
        self.membership = Membership(core, links)
        self.naming = Naming(core, self.membership, observer)
        self.distro = Distro(core, self.membership, self.naming)
        self.remote = Remote(core, self.membership, self.naming)

    def servers(self) -> Servers:
        """New ones, in the order in which they are bound."""
        sides = self.remote, self.membership, self.naming, self.distro
        http = (http_server(*sides, self.server_status),) if self.core.config.serves_http else ()
        return (*grpc_servers(*sides), *http)

    def begin(self) -> DistroProtocol:
        """All timers, and the ticks of the engines, count from now."""
        self.core.clock.begin()
        self.naming.begin(self.remote.connections)
        protocol = self.distro.begin()
        self.membership.begin()
        self.remote.begin()
        return protocol

    def server_status(self) -> str:
        """As ServerStatusManager has it: with data warm-up a node is DOWN until its initial load is complete."""
        if not self.core.clock.is_running:
            return "STARTING"
        return "DOWN" if self.core.profile.data_warmup and not self.distro.is_loaded else UP
