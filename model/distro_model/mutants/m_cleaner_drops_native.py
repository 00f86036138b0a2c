from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.events import ClientConnected
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client
from distro_model.profile import Profile
from distro_model.rules import clients, verify
from distro_model.rules.rule import instead_of


@instead_of(verify.is_expired)
def is_expired_native_too(client: Client, at_ms: int, profile: Profile) -> bool:
    """The lease check looks at native clients too."""
    return verify.is_over(client, at_ms, profile)


@instead_of(clients.fresh_native)
def native_with_lease(event: ClientConnected, _: Profile) -> Client:
    """A native client has a lease, which nothing ever renews."""
    return Client(event.client, native=True, revision=0, content=(), renewed_ms=event.at_ms)


MUTANT = Mutant(
    id="m-cleaner-drops-native",
    sentence="The lease check removes native clients too.",
    rules=(
        is_expired_native_too,
        native_with_lease,
    ),
    breaks=("INV-LIVE", "INV-OWNER"),
    bounds=Bounds(changes=0, drops=0, swallows=0, periods=2, lease_periods=1),
)
