"""Webhooks, BOOT.md and their reports, without a daemon."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.domain.access.role import Role
from hermes.domain.child.child import ChildDuty, Purpose, decode_duty
from hermes.domain.errors import BadInputError, ConfigError
from hermes.domain.event.channel import Channel
from hermes.domain.event.webhook import Signing, WebhookRoute
from hermes.domain.events import TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.ids import SessionId
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace
from hermes.ports.channels import Channels
from hermes.ports.children import ChildRequests
from hermes.services.events.boot_task import BootSettings, BootTask
from hermes.services.events.event_run import EventRun, EventRunPurpose, decode_run
from hermes.services.events.webhooks import WebhookOutcome, WebhookService

ROUTE = WebhookRoute(
    name="r", prompt="{a}", signing=Signing.NONE, per_minute=2, deliver=("x:1", "x:2"), role=Role.USER
)
BOOT = BootSettings(enabled=True, deliver=("home",), toolset=("web",), model="m", max_steps=3, max_tokens=4)


class Requests(ChildRequests):
    def __init__(self) -> None:
        self.duties: list[ChildDuty] = []
        self._keys: set[str] = set()

    async def request(self, duty: ChildDuty, *, seen: Seen | None = None) -> bool:
        key = duty.key if seen is None else seen.key
        if key in self._keys:
            return False
        self._keys.add(key)
        self.duties.append(decode_duty(duty.fact, duty.encoded()))  # as a later daemon reads it
        return True


class Directory(Channels):
    async def channels(self, platform: str = "") -> list[Channel]:
        return []

    async def places(self, texts: Sequence[str], origin: Place | None = None) -> list[Place]:
        platform, _, chat = texts[0].partition(":")
        if not chat:
            raise BadInputError("there is none", code="no_home")
        return [Place(platform=platform, chat=chat)]


class Now:
    at = 100.0

    def __call__(self) -> float:
        return self.at


def service(requests: Requests, now: Now, *routes: WebhookRoute) -> WebhookService:
    def secret(route: WebhookRoute) -> bytes:
        if route.name == "lost":
            raise ConfigError("it is missing")
        return b"s"

    return WebhookService(routes or (ROUTE,), secret=secret, children=requests, clock=now, marker=lambda: "aa")


async def test_event_is_taken_once_and_within_its_limit() -> None:
    requests, now = Requests(), Now()
    webhooks = service(requests, now)

    async def take(body: bytes) -> WebhookOutcome:
        return (await webhooks.take("r", body, {})).outcome

    assert [await take(body) for body in (b'{"a":1}', b'{"a":1}', b'{"a":2}', b'{"a":3}')] == [
        WebhookOutcome.ACCEPTED,
        WebhookOutcome.DUPLICATE,
        WebhookOutcome.ACCEPTED,
        WebhookOutcome.LIMITED,
    ]
    now.at += 61
    assert await take(b'{"a":3}') is WebhookOutcome.ACCEPTED
    run, duty = decode_run(requests.duties[0].work), requests.duties[0]
    assert (run.tools, run.deliver, duty.source.role, duty.source.user) == (
        ("web_fetch",),
        ("x:1", "x:2"),
        Role.USER,
        "r",
    )
    assert "<untrusted-aa>1</untrusted-aa>" in run.prompt


async def test_route_without_its_secret_refuses_everything() -> None:
    requests = Requests()
    webhooks = service(requests, Now(), replace(ROUTE, name="lost"), replace(ROUTE, name="off", enabled=False))
    for name in ("lost", "off", "other"):
        assert (await webhooks.take(name, b"{}", {})).outcome is WebhookOutcome.UNKNOWN
    assert webhooks.problems == {"lost": "it is missing"}
    assert requests.duties == []


def purpose(epoch: int = 1) -> EventRunPurpose:
    return EventRunPurpose(Purpose.BOOT, channels=Directory(), clock=Now(), epoch=epoch)


async def test_boot_file_runs_once_in_a_boot_and_is_dropped_by_the_next(tmp_path: Path) -> None:
    requests, file = Requests(), tmp_path / "BOOT.md"
    task = BootTask(file, BOOT, children=requests, clock=Now(), epoch=7)
    assert not await task.start()
    file.write_text("Check the disks.")
    await task.start()
    (duty,) = requests.duties
    plan = await purpose(7).plan(duty)
    assert plan is not None
    assert (plan.assignment.tools, plan.assignment.model, plan.assignment.max_steps) == (("web_fetch",), "m", 3)
    assert "Check the disks." in json.loads(plan.message)["content"]
    assert await purpose(8).plan(duty) is None
    file.write_text("x" * 100_000)
    assert not await BootTask(file, BOOT, children=Requests(), clock=Now(), epoch=8).start()
    off = replace(BOOT, enabled=False)
    assert not await BootTask(file, off, children=Requests(), clock=Now(), epoch=8).start()


def duty_of(*deliver: str) -> ChildDuty:
    run = EventRun(title="T", prompt="p", deliver=deliver, tools=())
    return ChildDuty(
        key="boot:1",
        child=SessionId("child"),
        purpose=Purpose.BOOT,
        source=Source(platform="boot", role=Role.OWNER),
        work=run.encoded(),
    )


def answered(text: str) -> TurnOutcome:
    duty = duty_of()
    return TurnAnswered(
        session=duty.child, turn=duty.first_turn, text=text, model="m", finish_reason="stop", usage=Usage()
    )


@pytest.mark.parametrize(
    ("text", "chats"), [("done", ["1", "2"]), ("[SILENT]", []), ("all well\n[SILENT]", []), ("  ", [])]
)
async def test_report_goes_to_each_target_unless_it_is_silent(text: str, chats: list[str]) -> None:
    sent = await purpose().report(duty_of("x:1", "home", "x:2", "x:1"), answered(text))
    assert [each.place.chat for each in sent] == chats
    assert len({each.id for each in sent}) == len(sent)


async def test_failed_run_is_reported() -> None:
    duty = duty_of("x:1")
    failure = Failure(kind=FailureKind.BUDGET, message="no money")
    outcome = TurnGaveUp(session=SessionId("s"), turn=duty.first_turn, failure=failure)
    (sent,) = await purpose().report(duty, outcome)
    assert sent.text.startswith("T failed: no money")
