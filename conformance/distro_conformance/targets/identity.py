"""The identity of the clusters that the kit starts: the header that members, also played ones, send to each other.

From 3.0 on a node refuses requests of a member without it, so a cluster needs one; older releases do not check it.
Source: docs/protocol #member-auth.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.options import DEFAULT_OPTIONS, NodeOptions, ServerIdentity
from distro_impl.profiles import InnerAuth, Profile

IDENTITY = ServerIdentity("distrocheck-cluster", "is-ours")
NO_HEADERS: Mapping[str, str] = {}


def options_for(profile: Profile) -> NodeOptions:
    """The options of a node with this profile."""
    is_asked = profile.inner_auth is InnerAuth.ALL_MEMBERS_3X
    return NodeOptions(identity=IDENTITY) if is_asked else DEFAULT_OPTIONS


def headers_of(options: NodeOptions) -> Mapping[str, str]:
    """The headers that a member sends in its requests to such a node."""
    return NO_HEADERS if options.identity is None else {options.identity.key: options.identity.value}
