"""Every line of the two corpora: nothing dangerous through, nothing harmless asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.shell_policy.policy import decide
from tests.security.corpus import load_everyday

HOME, CWD, HERMES_HOME = "/home/ann", "/home/ann/project", "/home/ann/.local/share/hermes"
TIERS = [Verdict.ALLOW, Verdict.ASK, Verdict.BLOCK]


def lines_of(name: str) -> list[str]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("# ")]
    return [line.replace("⏎", "\n") for line in lines]


def bypasses() -> list[tuple[Verdict, str]]:
    return [
        (Verdict(tier), command) for tier, _, command in (line.partition(" ") for line in lines_of("bypasses.txt"))
    ]


def gate(command: str, **changes: object) -> Gate:
    options: dict[str, object] = {"deny": (), "mode": "manual", "granted": (), **changes}
    return decide(command, cwd=CWD, home=HOME, hermes_home=HERMES_HOME, **options)  # type: ignore[arg-type]


EVERY_RULE = {rule for _, command in bypasses() for rule in gate(command).rules}


@pytest.mark.parametrize(("tier", "command"), bypasses())
def test_an_attempt_reaches_its_tier(tier: Verdict, command: str) -> None:
    found = gate(command)
    assert TIERS.index(found.verdict) >= TIERS.index(tier), found
    assert found.reason
    assert bool(found.rules) == (found.verdict is Verdict.ASK)


@pytest.mark.parametrize("command", [each.line for each in load_everyday() if not each.asked])
def test_an_everyday_command_is_allowed(command: str) -> None:
    assert gate(command) == Gate()


def test_the_corpora_are_large() -> None:
    assert len(set(bypasses())) >= 260
    assert len(set(load_everyday())) >= 250


@pytest.mark.parametrize("command", [command for tier, command in bypasses() if tier is Verdict.BLOCK])
def test_what_is_blocked_is_blocked_in_every_mode_and_with_every_grant(command: str) -> None:
    assert gate(command, mode="off", granted=EVERY_RULE).verdict is Verdict.BLOCK
