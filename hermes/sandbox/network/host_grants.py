"""Approval of hosts that are not on the allow-list, and what a grant covers. Pure.

A running command cannot ask. Its refused hosts are listed in the tool's result (`refusal_log`). The model may call
the tool again with the hosts that it needs, and the gate of that call asks for the rule `network:HOST`. Such a rule
is granted, stored, listed and revoked like every other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.sandbox.network.host_list import is_listed, normal_host
from hermes.system.public_address import is_host_name

RULE_PREFIX = "network:"
MAX_REQUESTED = 8  # a person has to read them


def rule_for(host: str) -> str:
    return RULE_PREFIX + host


def granted_hosts(rules: Iterable[str]) -> frozenset[str]:
    """Return the hosts that granted rules cover."""
    return frozenset(rule.removeprefix(RULE_PREFIX) for rule in rules if rule.startswith(RULE_PREFIX))


def requested_hosts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of a call's argument in normal form. Raises ValueError with a sentence for the model."""
    hosts = tuple(dict.fromkeys(normal_host(text.strip()) for text in texts))
    for host in hosts:
        if not is_host_name(host):
            raise ValueError(f"{host[:100]!r} is not a host name. Use names such as example.org.")
    if len(hosts) > MAX_REQUESTED:
        raise ValueError(f"One call can request at most {MAX_REQUESTED} hosts.")
    return hosts


def hosts_to_ask(
    requested: Iterable[str], allowed: Collection[str], granted: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the requested hosts that are neither on the list nor covered by a granted rule."""
    return tuple(host for host in requested if not is_listed(host, allowed) and rule_for(host) not in granted)


def network_gate(requested: Iterable[str], allowed: Collection[str], granted: Collection[str] = ()) -> Gate:
    """Return the gate of a call that requests hosts."""
    hosts = hosts_to_ask(requested, allowed, granted)
    if not hosts:
        return Gate()
    which = "which is" if len(hosts) == 1 else "which are"
    return Gate(
        verdict=Verdict.ASK,
        reason=f"it connects to {', '.join(hosts)}, {which} not on the list of allowed hosts",
        rules=tuple(rule_for(host) for host in hosts),
    )


def joined_gate(first: Gate, second: Gate) -> Gate:
    """Return the gate of a call that must pass both."""
    for gate in (first, second):
        if gate.verdict is Verdict.BLOCK:
            return gate
    asking = [gate for gate in (first, second) if gate.verdict is Verdict.ASK]
    if len(asking) < 2:
        return asking[0] if asking else Gate()
    return Gate(
        verdict=Verdict.ASK,
        reason="; ".join(gate.reason for gate in asking if gate.reason),
        rules=tuple(dict.fromkeys(rule for gate in asking for rule in gate.rules)),
        # No grant can cover a gate without rules, so the other gate's grants must not cover the call.
        once=any(gate.once or not gate.rules for gate in asking),
    )
