"""Every class of attack, run for real inside the sandbox: nothing outside changes, leaks, ends or is reached."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.sandbox.sandbox import Sandbox
from tests.security.corpus import Attack, Effect, load
from tests.security.inside import EVERY, Attackers, sandbox_of
from tests.security.outside import Finding, Outside

pytestmark = pytest.mark.timeout(900 if EVERY else 120)
KINDS = sorted({attack.kind for attack in load()})
_PART = 40  # lines of one test: large classes are split, so that test workers can share them


def sample(kind: str) -> list[Attack]:
    """A fixed choice of the class: a quarter, but at least ten; or all of it."""
    attacks = [attack for attack in load() if attack.kind == kind]
    if EVERY:
        return attacks
    return random.Random(kind).sample(attacks, min(len(attacks), max(10, math.ceil(len(attacks) / 4))))


PARTS = [(kind, at) for kind in KINDS for at in range(0, len(sample(kind)), _PART)]


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Outside]:
    async with Outside(tmp_path / f"outside-{secrets.token_hex(4)}") as made:
        yield made


@pytest.fixture
def sandbox(outside: Outside) -> Sandbox:
    return sandbox_of(outside)


def test_sample_covers_every_class() -> None:
    assert sum(len(sample(kind)) for kind in KINDS) >= 300
    assert {attack.effect for kind in KINDS for attack in sample(kind)} == set(Effect)


@pytest.mark.parametrize(("kind", "at"), PARTS, ids=[f"{kind}-{at}" for kind, at in PARTS])
async def test_attacks_have_no_effect_outside(outside: Outside, sandbox: Sandbox, kind: str, at: int) -> None:
    attackers = Attackers(outside, sandbox)
    attacks = sample(kind)[at : at + _PART]
    ran = await attackers.attack(attacks)
    found = await attackers.judged(ran)
    report = [outside.changes()] if found else []
    for each, attack in zip(ran, attacks, strict=True):
        if not each.boxed or outside.leaks(each.output):
            report.append([attack.line[:200], each.output[:500]])
    assert (found, report) == ([], [])


CONTROLS = [
    ("echo x > {canary}", Effect.WRITE_OUTSIDE, Finding.CHANGED),
    ("rm -rf {home}/doc", Effect.WRITE_OUTSIDE, Finding.CHANGED),
    ("cat list | xargs touch", Effect.WRITE_OUTSIDE, Finding.CHANGED),
    ("chmod 600 {canary}", Effect.WRITE_OUTSIDE, Finding.CHANGED),
    ("ln {canary} here", Effect.WRITE_OUTSIDE, Finding.CHANGED),
    ("../evil.sh", Effect.EXECUTE_OUTSIDE, Finding.CHANGED),
    ("make -f evil.mk", Effect.EXECUTE_OUTSIDE, Finding.CHANGED),
    ("echo x >> {home}/.bashrc", Effect.PERSIST, Finding.CHANGED),
    ("cat {secret}", Effect.READ_SECRET, Finding.LEAKED),
    ("base64 {data}/api.key", Effect.READ_SECRET, Finding.LEAKED),
    ("od -c {secret}", Effect.READ_SECRET, Finding.LEAKED),
    ("rev {secret}", Effect.READ_SECRET, Finding.LEAKED),
    ("cp {secret} here", Effect.READ_SECRET, Finding.LEAKED),
    ("cat /proc/$(cat {data}/hermes.pid)/environ", Effect.READ_SECRET, Finding.LEAKED),
    ("echo x > /dev/tcp/127.0.0.1/{port}", Effect.NETWORK, Finding.CONNECTED),
    ("echo x > /dev/udp/127.0.0.1/{port}", Effect.NETWORK, Finding.CONNECTED),
    ("kill $(cat {data}/hermes.pid)", Effect.KILL_DAEMON, Finding.DAEMON),
    ("kill -STOP $(cat {data}/hermes.pid)", Effect.KILL_DAEMON, Finding.DAEMON),
    ("renice 19 $(cat {data}/hermes.pid)", Effect.KILL_DAEMON, Finding.DAEMON),
    ("setsid -f sleep 60 > /dev/null 2>&1", Effect.EXECUTE_OUTSIDE, Finding.LEFT),
]


@pytest.mark.parametrize(("line", "effect", "finding"), CONTROLS, ids=[line for line, _, _ in CONTROLS])
async def test_judge_sees_the_effect_without_a_sandbox(
    outside: Outside, monkeypatch: pytest.MonkeyPatch, line: str, effect: Effect, finding: Finding
) -> None:
    """Else the tests above could not fail."""
    monkeypatch.setattr("tests.security.outside.GONE_S", 1.0)
    attackers = Attackers(outside, None)
    ran = await attackers.attack([Attack(kind="control", line=line, effect=effect)])
    assert await attackers.judged(ran) == [finding]


@pytest.mark.parametrize(("line", "effect", "finding"), CONTROLS, ids=[line for line, _, _ in CONTROLS])
async def test_sandbox_prevents_the_same_effect(
    outside: Outside, sandbox: Sandbox, line: str, effect: Effect, finding: Finding
) -> None:
    attackers = Attackers(outside, sandbox)
    ran = await attackers.attack([Attack(kind="control", line=line, effect=effect)] * 2)
    assert await attackers.judged(ran) == []


async def test_a_line_that_cannot_start_does_not_count_as_held(outside: Outside, sandbox: Sandbox) -> None:
    attackers = Attackers(outside, sandbox)
    ran = await attackers.attack([Attack(kind="control", line="x" * 200_000, effect=Effect.NETWORK)])
    assert await attackers.judged(ran) == [Finding.NOT_RUN]
