"""Native commands are answered to whoever gave them, as long as Slack takes that, and else in the channel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.response import EPHEMERAL, Responses
from hermes.domain.errors import DeliveryError
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from tests.adapters.edge import FakeEdge, listening
from tests.adapters.slack.outgoing import outgoing
from tests.support.slack_server import Fault, SlackServer
from tests.support.slack_state import TEAM
from tests.support.waiting import until


def answer(edge: FakeEdge, text: str = "done", **more: object) -> OutboxMessage:
    """To the last thing that was taken, as the edge owes it."""
    last = edge.taken[-1]
    made = replace(outgoing(text), id=f"command:{last.id}", kind=OutboxKind.NOTICE, place=last.place)
    return replace(made, **more)  # type: ignore[arg-type]


async def given(server: SlackServer, adapter: SlackAdapter, channel: str = "C1", text: str = "status") -> FakeEdge:
    edge = FakeEdge()
    async with listening(adapter, edge):
        server.slash(channel, "UANN", text)
        await until(lambda: len(edge.taken) == 1 and server.unacknowledged == 0)
    return edge


async def test_answer_is_visible_only_to_the_person_who_gave_the_command(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = await given(server, adapter)
    assert await adapter.platform.send(answer(edge), "done") == EPHEMERAL
    assert server.asides == [("C1", "UANN", "done")]
    assert server.replies("C1") == []
    await adapter.platform.send(replace(outgoing("elsewhere"), place=edge.taken[0].place), "elsewhere")
    assert server.replies("C1") == ["elsewhere"]  # a reply is no answer to a command


async def test_used_up_response_url_falls_back_to_the_channel(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = await given(server, adapter)
    for number in range(6):
        await adapter.platform.send(answer(edge), f"part {number}")
    assert [text for _, _, text in server.asides] == [f"part {number}" for number in range(5)]
    assert server.replies("C1") == ["part 5"]
    with pytest.raises(DeliveryError) as caught:  # what was shown before a restart: it is said anew
        await adapter.platform.edit(answer(edge, sent=(EPHEMERAL,)), EPHEMERAL, "done")
    assert caught.value.gone


@pytest.mark.parametrize(("fault", "where"), [(Fault(status=404), "channel"), (Fault(status=410), "channel")])
async def test_rejected_response_url_falls_back_to_the_channel(
    fault: Fault, where: str, server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = await given(server, adapter)
    server.fail("respond", fault)
    await adapter.platform.send(answer(edge), "done")
    assert (server.asides, server.replies("C1")) == ([], ["done"])


@pytest.mark.parametrize(
    ("fault", "perhaps", "wait_s"),
    [(Fault(lost=True), True, None), (Fault(status=502), True, None), (Fault.flood(3), False, 3.0)],
)
async def test_what_slack_did_not_confirm_is_given_again(
    fault: Fault, perhaps: bool, wait_s: float | None, server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = await given(server, adapter)
    server.fail("respond", fault)
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send(answer(edge), "done")
    assert (caught.value.arrived_perhaps, caught.value.retry_after_s) == (perhaps, wait_s)
    assert await adapter.platform.find(answer(edge, sending=True), 0) is None
    await adapter.platform.send(answer(edge), "done")
    assert server.asides[-1] == ("C1", "UANN", "done")
    assert server.replies("C1") == []


async def test_ephemeral_choice_is_replaced_by_its_answer(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = await given(server, adapter, text="busy")
    await adapter.platform.send(answer(edge, choices=("queue", "steer"), call="busy-1", turn=None), "Which?")
    async with listening(adapter, edge):
        server.press_alone("steer", "UANN")
        await until(lambda: len(edge.taken) == 2 and server.unacknowledged == 0)
    pressed = edge.taken[1]
    assert (pressed.text, pressed.answers, pressed.user) == ("steer", "busy-1", "UANN")
    await adapter.platform.edit(
        answer(edge, "steered", sent=(pressed.place.message,)), pressed.place.message, "steered"
    )
    shown: list[dict[str, object]] = []
    server.change(lambda world: shown.extend(world.ephemeral))
    assert [each["text"] for each in shown] == ["steered"]
    assert server.replies("C1") == []


async def test_asker_in_a_channel_without_the_bot_gets_a_notice(server: SlackServer, adapter: SlackAdapter) -> None:
    server.change(lambda world: world.strange.add("C1"))
    edge = await given(server, adapter, text="what is new?")
    for _ in range(2):
        with pytest.raises(DeliveryError) as caught:
            await adapter.platform.send(outgoing("an answer", chat=f"{TEAM}.C1"), "an answer")
        assert caught.value.gone
    [(where, who, text)] = server.asides
    assert (where, who) == ("C1", "UANN")
    assert "I am not a member" in text
    assert edge.texts == ["what is new?"]


async def test_an_address_is_good_for_half_an_hour(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = await given(server, adapter)
    now = [0.0]
    responses = Responses(lambda: now[0])
    responses.note(edge.taken[0], "http://127.0.0.1:9/r1")
    assert responses.knows(answer(edge))
    now[0] = 30 * 60.0
    assert not responses.knows(answer(edge))
