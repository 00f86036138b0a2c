"""The kinds of clusters: from the text of `--target` to a driver, without starting anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distro_conformance.drivers.cluster import Cluster
from distro_conformance.drivers.embedded import EmbeddedCluster
from distro_conformance.drivers.lockstep import LockstepCluster
from distro_conformance.drivers.model import ModelCluster
from distro_conformance.drivers.peers import PeersCluster
from distro_conformance.drivers.real_time import AttachCluster, MixedCluster, RealTimeCluster
from distro_conformance.release import STRICT, listed_profile
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.registry import FORMS as NODE_FORMS
from distro_conformance.targets.registry import require_own, resolve_target
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import UsageError
from distro_conformance.wire.transports import IN_MEMORY, Wire
from distro_traces.ndjson import Recorder

EMBEDDED = "embedded"
_IN_REAL_TIME: Mapping[str, type[RealTimeCluster]] = {"mixed": MixedCluster, "attach": AttachCluster}
FORMS: Mapping[str, str] = {
    "model": "no nodes, the model alone",
    **NODE_FORMS,
    "mixed:VERSION": "one real server, the others reference nodes of its release",
}
"""The forms of a target with several nodes, with their meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """What a run needs of its cluster. `profile` is what the user named, `scenario_profile` what the scenario names.

    `serves_http`: the nodes have to serve their HTTP API. `in_lockstep`: the model watches every step, where it can.
    """

    profile: str | None = None
    scenario_profile: str | None = None
    mutant: str | None = None
    serves_http: bool = False
    in_lockstep: bool = False
    lease_ms: int | None = None
    allow_disruption: bool = False
    credentials: Credentials = NO_CREDENTIALS
    played: bool = False
    """All nodes but the first are played."""
    wire: Wire = IN_MEMORY
    recorder: Recorder | None = None
    on_progress: OnProgress = lambda _: None

    @property
    def behaviour(self) -> str:
        """Nodes that can behave like any release."""
        return self.profile or self.scenario_profile or STRICT


@dataclass(frozen=True, slots=True)
class ResolvedCluster:
    """`profile` names the behaviour that is expected of the cluster."""

    cluster: Cluster
    profile: str


def resolve_cluster(target: str, options: ClusterOptions) -> ResolvedCluster:
    """The driver that a `--target` text names. Nothing is started yet.

    Raises UsageError when the text, the profile or the mutant is unknown, or does not go with the target.
    """
    kind, _, rest = target.partition(":")
    if kind not in {form.partition(":")[0] for form in FORMS}:
        raise UsageError(f"no cluster '{target}'; known: {', '.join(FORMS)}")
    for profile in filter(None, (options.profile, options.scenario_profile)):
        listed_profile(profile)
    if options.played:
        return _among_played(target, options)
    match kind:
        case "model" | "embedded" if rest:
            raise UsageError(f"the target {kind} takes no argument, got '{rest}'")
        case "model":
            return ResolvedCluster(ModelCluster(options.mutant, options.lease_ms), options.behaviour)
        case "embedded":
            return ResolvedCluster(_embedded(options), options.behaviour)
    if options.mutant is not None:
        raise UsageError(f"the target {target} has no mutants; they are built into model and embedded nodes")
    if options.lease_ms is not None and kind not in ("nacos", "mixed"):
        raise UsageError(f"the target {target} takes no lease from a scenario")
    if options.recorder is not None and kind == "attach":
        raise UsageError(f"the target {target} runs already: it is not recorded")
    nodes = resolve_target(
        f"nacos:{rest}" if kind == "mixed" else target,
        options.profile,
        allow_disruption=options.allow_disruption,
        credentials=options.credentials,
        several=True,
    )
    make = _IN_REAL_TIME.get(kind, RealTimeCluster)
    return ResolvedCluster(make(nodes, options.recorder, options.on_progress, options.lease_ms), nodes.profile)


def _among_played(target: str, options: ClusterOptions) -> ResolvedCluster:
    """Any target of `test node`."""
    if target == EMBEDDED:
        cluster = PeersCluster(
            None, options.mutant, options.wire, recorder=options.recorder, serves_http=options.serves_http
        )
        return ResolvedCluster(cluster, options.behaviour)
    node = require_own(resolve_target(target, options.profile, options.mutant, credentials=options.credentials))
    return ResolvedCluster(PeersCluster(node, on_progress=options.on_progress), node.profile)


def _embedded(options: ClusterOptions) -> Cluster:
    if not options.in_lockstep:
        return EmbeddedCluster(
            options.mutant,
            options.recorder,
            serves_http=options.serves_http,
            lease_ms=options.lease_ms,
            wire=options.wire,
            reports_events=True,
        )
    if options.lease_ms is not None:
        raise UsageError("a scenario with a lease of its own has no 'expect model agrees'")
    return LockstepCluster(
        options.mutant, options.recorder, options.wire, serves_http=options.serves_http, reports_events=True
    )
