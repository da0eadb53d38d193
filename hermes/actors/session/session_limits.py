"""Limits of all sessions: the configured ones, with the permanent grants and the chats of approvers."""

from __future__ import annotations

from typing import TypeAlias

from hermes.actors.session.session_mail import ApproverPlaces, Granted, Revoked
from hermes.domain.access import approver_chat
from hermes.domain.access.grants import PREFIX, rules_in
from hermes.domain.read.reader import Reader
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.values import replace

SharedFact: TypeAlias = Granted | Revoked | ApproverPlaces


class SessionLimits:
    def __init__(self, configured: TurnLimits) -> None:
        self._configured = self._now = configured
        self._granted: frozenset[str] = frozenset()
        self._approvers: dict[str, bytes] = {}

    def __call__(self) -> TurnLimits:
        return self._now

    def configure(self, limits: TurnLimits) -> None:
        self._configured = limits
        self._combine()

    def note(self, fact: SharedFact) -> None:
        """Apply a fact that counts in all sessions."""
        match fact:
            case Granted():
                self._granted |= fact.rules
            case Revoked():
                self._granted -= fact.rules
            case ApproverPlaces():
                known = {**self._approvers, **fact.facts}
                self._approvers = {name: value for name, value in known.items() if value is not None}
        self._combine()

    def _combine(self) -> None:
        approvers = approver_chat.places(self._approvers, self._configured.admins)
        self._now = replace(self._configured, granted=self._granted, approvers=approvers)


def read_shared_facts(reader: Reader) -> tuple[SharedFact, ...]:
    names = (name for prefix in (approver_chat.PRIVATE, approver_chat.HOME) for name in reader.facts(prefix))
    places = ApproverPlaces(facts={name: reader.fact(name) for name in names})
    return Granted(rules=rules_in(reader.facts(PREFIX))), places
