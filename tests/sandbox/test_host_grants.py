"""Grants for hosts that are not on the allow-list."""

from __future__ import annotations

import pytest

from hermes.domain.access.grants import facts_of, granted_by, rules_in
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.session.state import Phase
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.sandbox.network.host_grants import (
    MAX_REQUESTED,
    granted_hosts,
    hosts_to_ask,
    joined_gate,
    network_gate,
    requested_hosts,
    rule_for,
)
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason
from hermes.sandbox.network.refusal_log import RefusalLog
from tests.actors.talk import DEFAULTS, SessionTalk, does

ALLOWED = frozenset({"listed.test", "*.wild.test"})


def refused(host: str, reason: Reason = Reason.NOT_LISTED, port: int = 443) -> ProxyEvent:
    return ProxyEvent(kind=EventKind.REFUSED, host=host, port=port, reason=reason)


def test_only_unknown_hosts_are_asked_about() -> None:
    requested = ("listed.test", "a.wild.test", "new.test", "known.test")
    assert hosts_to_ask(requested, ALLOWED) == ("new.test", "known.test")
    assert hosts_to_ask(requested, ALLOWED, {"network:known.test", "rm"}) == ("new.test",)
    assert hosts_to_ask((), ALLOWED) == ()


def test_rule_names_its_host() -> None:
    assert rule_for("new.test") == "network:new.test"
    assert granted_hosts(["network:new.test", "recursive-delete"]) == {"new.test"}


def test_requested_hosts_are_normalised() -> None:
    assert requested_hosts([" New.test. ", "new.test", "b.test"]) == ("new.test", "b.test")


@pytest.mark.parametrize(
    "text", ["*.wild.test", "127.0.0.1", "0x7f.1", "::1", "https://new.test/", "new.test:443", ""]
)
def test_other_requests_are_errors(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        requested_hosts([text])


def test_number_of_requested_hosts_is_bounded() -> None:
    with pytest.raises(ValueError, match="at most"):
        requested_hosts([f"n{number}.test" for number in range(MAX_REQUESTED + 1)])


def test_gate_asks_for_each_unknown_host() -> None:
    gate = network_gate(("listed.test", "new.test", "b.test"), ALLOWED)
    assert (gate.verdict, gate.rules, gate.once) == (Verdict.ASK, ("network:new.test", "network:b.test"), False)
    assert "new.test, b.test" in gate.reason
    assert network_gate(("listed.test",), ALLOWED) == Gate()
    assert network_gate(("new.test",), ALLOWED, {"network:new.test"}) == Gate()


ASKS = Gate(verdict=Verdict.ASK, reason="deletes", rules=("rm",))
NETWORK = network_gate(("new.test",), ALLOWED)
BLOCKS = Gate(verdict=Verdict.BLOCK, reason="never")


def test_joined_gates() -> None:
    assert joined_gate(Gate(), Gate()) == Gate()
    assert joined_gate(Gate(), NETWORK) == joined_gate(NETWORK, Gate()) == NETWORK
    assert joined_gate(BLOCKS, NETWORK) == joined_gate(NETWORK, BLOCKS) == BLOCKS
    both = joined_gate(ASKS, NETWORK)
    assert (both.verdict, both.rules, both.once) == (Verdict.ASK, ("rm", "network:new.test"), False)
    assert both.reason == f"deletes; {NETWORK.reason}"


@pytest.mark.parametrize(
    "strict",
    [
        Gate(verdict=Verdict.ASK, reason="odd"),
        Gate(verdict=Verdict.ASK, reason="odd", rules=("odd",), once=True),
    ],
)
def test_grant_of_a_host_does_not_cover_a_command_that_no_grant_covers(strict: Gate) -> None:
    granted = TurnLimits(granted=frozenset({"network:new.test", "odd"}))
    talk = SessionTalk(limits=granted)
    talk.say("a")
    talk.reply(does("c1", gate=joined_gate(strict, NETWORK)))
    assert talk.phase == Phase.WAITING


def test_grant_for_good_is_a_fact_and_the_host_is_not_asked_about_again() -> None:
    talk = SessionTalk(limits=DEFAULTS)
    talk.say("a")
    talk.reply(does("c1", gate=NETWORK))
    assert talk.phase == Phase.WAITING
    before = talk.session
    granted = granted_by(before, talk.tell("always").records)
    facts = facts_of(granted)
    assert [fact.name for fact in facts] == ["grant:network:new.test"]
    rules = rules_in(fact.name for fact in facts)
    assert granted_hosts(rules) == {"new.test"}

    later = SessionTalk(limits=TurnLimits(granted=rules))
    later.say("a")
    later.reply(does("c1", gate=NETWORK))
    assert later.work() == ["c1"]


def test_refusals_of_a_call_become_a_note() -> None:
    log = RefusalLog()
    assert log.note() == ""
    for event in (
        refused("new.test"),
        refused("new.test"),
        refused("new.test", port=80),
        refused("inner.test", Reason.NOT_PUBLIC),
        ProxyEvent(kind=EventKind.ALLOWED, host="listed.test", port=443),
    ):
        log.add(event)
    assert log.hosts_to_request() == ("new.test",)
    assert log.note().splitlines() == [
        "sandbox: new.test is not on the list of allowed hosts (sandbox.allowed_hosts); the owner can allow it",
        "sandbox: inner.test has an address that is not public",
        'To ask for permission, call the tool again with network_hosts: ["new.test"].',
    ]


def test_note_is_bounded() -> None:
    log = RefusalLog()
    for number in range(10_000):
        log.add(refused(f"n{number}.test"))
    assert len(log.note().splitlines()) == 10
    assert len(requested_hosts(log.hosts_to_request()[:MAX_REQUESTED])) == MAX_REQUESTED
