"""The identity of the clusters that the kit starts: what their members, played ones too, show each other.

From 3.0 on a node lets nobody in as a member who does not show it, so a cluster without one cannot work; older releases
ask no member. Source: docs/protocol #member-auth.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.options import DEFAULT_OPTIONS, NodeOptions, ServerIdentity
from distro_impl.profiles import InnerAuth, Profile

IDENTITY = ServerIdentity("distrocheck-cluster", "is-ours")
NO_HEADERS: Mapping[str, str] = {}


def options_for(profile: Profile) -> NodeOptions:
    """Of a node whose profile has to be satisfied."""
    is_asked = profile.inner_auth is InnerAuth.ALL_MEMBERS_3X
    return NodeOptions(identity=IDENTITY) if is_asked else DEFAULT_OPTIONS


def headers_of(options: NodeOptions) -> Mapping[str, str]:
    """What a member of the cluster of such a node puts into its requests."""
    return NO_HEADERS if options.identity is None else {options.identity.key: options.identity.value}
