"""Rules: their names, their replacements, and the guards that a rejection names."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from distro_model.actions import Advance, Connect, Register, Restart, Swallow
from distro_model.clock.cluster import observe, start
from distro_model.events import CallEnded, Event, RequestReceived
from distro_model.messages import CallResult, Change, Delete, Operation, Request, Verify
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.node import Client, fresh_node
from distro_model.possible import PossibleStates, Rejection
from distro_model.profiles import PROFILES, STRICT, Profile
from distro_model.rules import ip_clients, receive, sync, verify
from distro_model.rules.rule import RULES, NotARuleError, asked_by, instead_of, name_of, rule
from distro_model.rules.watching import Taken, counting, watched
from distro_model.step import BY_INPUT, step

COPY = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 2, (("web", "10.0.0.1:80"),), 0))
VERIFY = RequestReceived(0, "a", Verify("c1", 3))


def refused(node, event, profile=STRICT):
    found = []
    step(node, event, watched(profile, found))
    return [str(each) for each in found]


def test_every_event_and_request_has_a_rule():
    about_a_request = {(event, request) for event in (RequestReceived, CallEnded) for request in get_args(Request)}
    assert set(BY_INPUT) == set(get_args(Event)) - {RequestReceived, CallEnded} | about_a_request


def test_no_event_has_two_rules():
    of_inputs = {each.function for each in RULES.values() if each.place.rpartition(".")[2].startswith("on_")}
    assert {function for function in BY_INPUT.values() if function in of_inputs} == of_inputs


class TestReplacing:
    def test_a_call_of_a_rule_runs_the_replacement_of_the_profile(self):
        lax = STRICT.with_rules(verify.existence_is_enough)
        assert (verify.revision_matches(3, 2, STRICT), verify.revision_matches(3, 2, lax)) == (False, True)

    def test_the_rule_itself_takes_its_place_back(self):
        assert STRICT.with_rules(verify.existence_is_enough).with_rules(verify.revision_matches) == STRICT

    def test_a_profile_knows_what_it_has(self):
        lax = STRICT.with_rules(verify.existence_is_enough)
        assert (STRICT.has(verify.revision_matches), lax.has(verify.revision_matches)) == (True, False)
        assert (STRICT.has(verify.existence_is_enough), lax.has(verify.existence_is_enough)) == (False, True)

    def test_only_what_is_marked_can_be_put_there(self):
        with pytest.raises(NotARuleError, match="mark it with @rule, @guard or @instead_of"):
            STRICT.with_rules(receive.deleted)

    def test_two_rules_have_two_names(self):
        with pytest.raises(ValueError, match="two rules named 'confirm'"):
            rule("confirm", source="verify-accept")(verify.on_verify.__wrapped__)

    def test_a_rule_ends_with_the_profile(self):
        def without(node: str, _held: int, _verified: int) -> bool:
            return bool(node)

        place = f"without, in {__file__}, line {without.__code__.co_firstlineno}: the last argument of a rule is the"
        with pytest.raises(NotARuleError, match=re.escape(place)):
            instead_of(verify.revision_matches)(without)

    def test_the_name_of_the_profile_is_enough(self):
        def plainly(verified, held, profile):
            return verified == held and profile

        def evaluated(verified: int, held: int, _: Profile) -> bool:
            return verified == held

        evaluated.__annotations__["_"] = Profile
        for function in (plainly, evaluated):
            assert name_of(instead_of(verify.revision_matches)(function)) == "revision_matches"

    def test_one_argument_more_is_refused_at_once(self):
        def more(verified, held, why, profile):
            return verified == held == why == profile

        with pytest.raises(NotARuleError, match=r"more, in .*, line \d+ has 4 arguments; 'revision_matches', .* has 3"):
            instead_of(verify.revision_matches)(more)

    def test_a_replacement_has_the_name_and_the_arguments_of_its_rule(self):
        profiles = [*PROFILES.values(), *(with_mutant(STRICT, each) for each in MUTANTS)]
        replacements = [(profile.name, name, of) for profile in profiles for name, of in profile.rules]
        assert [
            (profile, name)
            for profile, name, function in replacements
            if name_of(function) != name or function.__code__.co_argcount != RULES[name].own.__code__.co_argcount
        ] == []


class TestGuards:
    def test_a_rule_knows_the_guards_that_it_asks(self):
        assert {each.name for each in asked_by(verify.on_verify.__wrapped__) if each.is_guard} >= {
            "is_held",
            "revision_matches",
        }
        assert "is_not_native_here" in {each.name for each in asked_by(receive.on_change.__wrapped__)}

    def test_an_attribute_that_is_called_like_a_rule_is_none(self):
        """`node.changed(...)` is a method of a node; `changed` is the rule change-an-ip-port-client."""

        def forgets(node, profile):
            return node.changed(tasks=()) if sync.has_member(node, "b", profile) else node

        forgets.__globals__["changed"] = ip_clients.changed
        try:
            assert [each.name for each in asked_by(forgets)] == ["has_member"]
        finally:
            del forgets.__globals__["changed"]

    def test_no_rule_asks_for_the_change_of_an_ip_client_by_a_method_of_that_name(self):
        asking = {name for name, each in RULES.items() if RULES["change-an-ip-port-client"] in asked_by(each.own)}
        assert asking == {"check-beats", "finish-a-first-request", "route-a-request"}

    def test_a_rule_of_another_module_is_asked_by_its_module(self):
        """`sync.queued(...)`, in a module that imports `sync` and not `queued`."""

        def queues(node, profile):
            return sync.queued(node, None, profile)

        assert "merge-tasks" in {each.name for each in asked_by(queues)}

    def test_a_refusal_names_the_false_guard(self):
        assert refused(COPY, VERIFY) == ["b may not confirm: revision_matches was false (3, 2) for c1"]
        native = fresh_node("b", ["a"], 0).with_client(Client("c1", True, 1, (), 0))
        assert refused(native, RequestReceived(0, "a", Delete("c1"))) == [
            "b may not apply a delete: is_not_native_here was false (c1)"
        ]

    def test_a_profile_is_watched_with_what_it_has_in_place(self):
        assert refused(COPY, VERIFY, STRICT.with_rules(verify.existence_is_enough)) == []

    @pytest.mark.parametrize("profile", [STRICT, PROFILES["nacos-2.2.4"]], ids=lambda profile: profile.name)
    def test_watching_changes_nothing(self, profile):
        for event in (VERIFY, RequestReceived(0, "a", Change("c1", 3, ())), RequestReceived(0, "a", Delete("c1"))):
            assert step(COPY, event, watched(profile, [])) == step(COPY, event, profile)
            assert step(COPY, event, counting(profile, Taken())) == step(COPY, event, profile)

    def test_a_watched_profile_goes_by_what_it_went_by(self):
        """The parts of a cluster depend on the profile, not on the observer."""
        lax = STRICT.with_rules(verify.existence_is_enough)
        for profile in (STRICT, lax):
            for function in (verify.revision_matches, verify.existence_is_enough):
                assert (
                    counting(profile, Taken()).has(function)
                    == profile.has(function)
                    == watched(profile, []).has(function)
                )

    def test_both_answers_of_a_guard_are_counted_and_what_was_never_asked_is_there(self):
        taken = Taken()
        for revision in (2, 3, 3):
            step(COPY, RequestReceived(0, "a", Verify("c1", revision)), counting(STRICT, taken))
        assert {name: count for name, count in taken.of_guards.items() if "revision_matches" in name} == {
            "revision_matches: no": 2,
            "revision_matches: yes": 1,
        }
        assert taken.of_guards["is_not_native_here: no"] == 0
        assert taken.of_rules["confirm"] == 3
        assert taken.of_rules["apply-a-delete"] == 0


def test_a_rejection_names_the_guard_that_was_false():
    """The owner has changed its client, the copy has not received it; its verify cannot have been confirmed."""
    possible = PossibleStates.of(start("ab", STRICT))
    swallowed = (Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Advance(1500))
    lost = (Swallow("a", "b"), Register("c1", "web", "10.0.0.1:80 v=2"), Advance(1500))
    for action in (Restart("a"), Restart("b"), Advance(40_000), *swallowed, *lost):
        possible = possible.after(action)
    possible = possible.after(Advance(5000))
    (outcome, *_) = possible.outcomes
    traffic = [
        each._replace(outcome=CallResult.SUCCESS) if each.operation is Operation.VERIFY else each
        for each in outcome.traffic
    ]
    rejected = possible.matching(observe(outcome.state), traffic)
    assert isinstance(rejected, Rejection)
    assert "b may not confirm: revision_matches was false (2, 1) for c1" in str(rejected).splitlines()[-1]


def test_members_are_compared_by_address_and_not_by_name():
    """By default the address of a node is its name; a part of an address is no member, unless a mutant says so."""
    profile = STRICT.with_rules(sync.has_part_of_member)
    named = fresh_node("a", ["10.0.0.1", "b"], 0)
    assert not sync.has_member(named, "c", profile)
    addressed = fresh_node("a", ["b"], 0, (("b", "110.0.0.1:8848"), ("c", "10.0.0.1:8848")))
    assert sync.has_member(addressed, "c", profile)
    assert not sync.has_member(addressed, "c", STRICT)
