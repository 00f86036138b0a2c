"""distro_model: Distro as a pure state machine. A map for the reader, from the bottom up.

One node
    `messages` what nodes say to each other; `node` what one of them knows; `events` its inputs and outputs;
    `rules/` what it does, one named function per transition, each with its source; `step` the one step function;
    `profiles` the releases and `strict`, as data; `mutants` small named changes that must be noticed.

Many nodes
    `network` links and what is in store for a request; `turn` one action and all that follows from it at once.

With a clock
    `actions` what an environment can do; `schedule` which timer is due when, and every order within one instant;
    `cluster` `start`, `apply`, `enabled`, `observe`; `possible` the set of states that agree with what was seen.

With choices instead of a clock
    `transitions` what may happen next; `untimed` situations, and what each transition makes of them within bounds;
    `properties` what must hold and what must be reachable;
    `explorer` breadth-first search; `timing` a run of the explorer as actions on a clock.

Everything here is a function of its arguments: no clock, no I/O, no randomness. What the model leaves out, and other
parts of the documents describe: HTTP (`ip:port`) clients, batch registration, subscribers and pushes, the connection
checker, membership changes, reordering within a link (D3, B26), replies that arrive late (the stale snapshot of B01 and
B27), handler exceptions (B16), liveness.
"""

from distro_model.cluster import (
    ClusterState,
    IllegalActionError,
    Outcome,
    View,
    apply,
    enabled,
    observe,
    start,
)
from distro_model.explorer import Counterexample, Exploration, Result, explore
from distro_model.mutants import MUTANTS, UnknownMutantError, with_mutant
from distro_model.possible import Difference, PossibleStates, Rejection
from distro_model.profiles import PROFILES, Profile, UnknownProfileError, profile_named
from distro_model.properties import PROPERTIES, Kind, Property, UnknownPropertyError, property_named
from distro_model.step import step
from distro_model.timing import Expectation, NoTimesError, TimedRun, as_timed
from distro_model.turn import Traffic
from distro_model.untimed import Bounds

__all__ = [
    "MUTANTS",
    "PROFILES",
    "PROPERTIES",
    "Bounds",
    "ClusterState",
    "Counterexample",
    "Difference",
    "Expectation",
    "Exploration",
    "IllegalActionError",
    "Kind",
    "NoTimesError",
    "Outcome",
    "PossibleStates",
    "Profile",
    "Property",
    "Rejection",
    "Result",
    "TimedRun",
    "Traffic",
    "UnknownMutantError",
    "UnknownProfileError",
    "UnknownPropertyError",
    "View",
    "apply",
    "as_timed",
    "enabled",
    "explore",
    "observe",
    "profile_named",
    "property_named",
    "start",
    "step",
    "with_mutant",
]
