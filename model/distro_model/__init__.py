"""distro_model: Distro as a pure state machine. A map for the reader, from the bottom up.

One node
    `value` what all this is made of; `messages` what nodes say to each other; `local_events` what the parts of one node
    do; `node` what one of them knows; `events` its inputs and outputs;
    `rules/` what it does, one named function per transition, each with its source; `step` the one step function;
    `profiles` the releases and `strict`, as data; `mutants` small named changes that must be noticed.

With a clock
    `actions` what an environment can do; `clock/` what each action makes of a cluster, which timer is due when, and
    every order within one instant; `possible` the set of states that agree with what was seen; `simulation/` one order
    that is drawn, with messages that take time.

With choices instead of a clock
    `cluster/` what can happen in a cluster, each transition said once; `transitions` their names; `bounded/` who
    chooses among them within bounds; `search/` what is done with the reachable states of such a system, whatever the
    protocol is; `properties/` what must hold and what must be reachable; `explorer` the search told in the words of the
    protocol; `choices` what each of them is on a clock, `timing` a run of the search there, `repeating` a
    counterexample as few actions.

Everything here is a function of its arguments: no clock, no I/O, no randomness.
"""

from distro_model.bounded.bounds import Bounds
from distro_model.clock.cluster import IllegalActionError, View, apply, enabled, observe, start
from distro_model.explorer import Exploration, explore
from distro_model.mutants import MUTANTS, UnknownMutantError, with_mutant
from distro_model.possible import PossibleStates, Rejection
from distro_model.profiles import PROFILES, Profile, UnknownProfileError, profile_named
from distro_model.properties import PROPERTIES, UnknownPropertyError, property_named
from distro_model.repeating import as_timed
from distro_model.search.system import Kind
from distro_model.step import step
from distro_model.timing import NoTimesError

__all__ = [
    "MUTANTS",
    "PROFILES",
    "PROPERTIES",
    "Bounds",
    "Exploration",
    "IllegalActionError",
    "Kind",
    "NoTimesError",
    "PossibleStates",
    "Profile",
    "Rejection",
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
