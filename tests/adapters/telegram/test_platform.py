"""What is said arrives as it should look, once, in order, at Telegram's pace; what fails says what that means."""

from __future__ import annotations

import asyncio
import time

import pytest

from hermes.adapters.telegram.adapter import TelegramAdapter
from hermes.adapters.telegram.rate_limiter import TelegramLimits
from hermes.config.secret import Secret
from hermes.domain.access.question import button_token
from hermes.domain.errors import DeliveryError
from hermes.domain.ids import TurnId
from hermes.domain.source import Place
from tests.adapters.edge import DEADLINE_S, FakeEdge, listening
from tests.adapters.telegram.outgoing import outgoing
from tests.support.telegram_server import PAGE, TOKEN, Fault, TelegramServer
from tests.support.waiting import until


async def test_a_reply_is_shown_with_its_markup(server: TelegramServer, adapter: TelegramAdapter) -> None:
    server.say(7, 7, "hello")
    sent = await adapter.platform.send(outgoing(), "**bold** and `code` & <div>\n\n```python\nx < 1\n```")
    shown = server.history(7)[-1]
    assert sent == str(shown.id)
    assert shown.text == "bold and code & <div>\n\nx < 1"
    assert '<pre><code class="language-python">x &lt; 1</code></pre>' in shown.markup
    assert shown.reply_to is None


async def test_text_whose_markup_is_refused_goes_out_as_it_is(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    server.fail("sendMessage", Fault(status=400, description="Bad Request: can't parse entities: whatever"))
    await adapter.platform.send(outgoing(), "**bold**")
    assert server.replies(7) == ["**bold**"]


async def test_an_edit_changes_the_text_and_the_same_text_again_is_no_error(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    message = await adapter.platform.send(outgoing(), "one")
    await adapter.platform.edit(outgoing(), message, "one two")
    await adapter.platform.edit(outgoing(), message, "one two")
    assert server.replies(7) == ["one two"]
    assert server.history(7)[-1].versions == ["one", "one two"]


async def test_deleted_message_cannot_be_edited(server: TelegramServer, adapter: TelegramAdapter) -> None:
    server.say(7, 7, "hello")
    message = await adapter.platform.send(outgoing(), "one")
    server.delete(7, int(message))
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.edit(outgoing(), message, "two")
    assert caught.value.gone


async def test_a_reply_in_a_topic_of_a_group_quotes_its_question_there(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    asked = server.say(-5, 7, "hello", thread=33)
    await adapter.platform.send(outgoing(chat=-5, thread="33", message=str(asked)), "yes")
    shown = server.history(-5)[-1]
    assert (shown.thread, shown.reply_to) == (33, asked)


async def test_a_question_has_buttons_and_a_press_leads_back_to_it(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    question = outgoing("Which one?", choices=("red", "a very long choice " * 9))
    await adapter.platform.send(question, question.text)
    shown = server.history(7)[-1]
    first, second = (row[0]["text"] for row in shown.keyboard)
    assert (first, len(second)) == ("red", 64)
    edge = FakeEdge()
    async with listening(adapter, edge):
        query = server.press(7, shown.id, second, 8)
        await until(lambda: server.answered_queries == [query])
    pressed = edge.taken[-1]
    assert (pressed.answers, pressed.choice, pressed.text) == (button_token(TurnId("turn-1"), "call-1"), 1, second)
    assert (pressed.user, pressed.place.message) == ("8", str(shown.id))


async def test_buttons_stay_with_an_edited_question_and_go_with_its_choices(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    message = await adapter.platform.send(outgoing("q", choices=("yes", "no")), "q")
    await adapter.platform.edit(outgoing("q", choices=("yes", "no")), message, "q again")
    assert len(server.history(7)[-1].keyboard) == 2
    await adapter.platform.edit(outgoing("q"), message, "q: yes")
    assert server.history(7)[-1].keyboard == []


async def test_a_message_is_taken_away_once(server: TelegramServer, adapter: TelegramAdapter) -> None:
    server.say(7, 7, "hello")
    message = await adapter.platform.send(outgoing(), "one")
    await adapter.platform.delete(outgoing(), message)
    assert server.replies(7) == []
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.delete(outgoing(), message)
    assert caught.value.refused


async def test_typing_is_shown(server: TelegramServer, adapter: TelegramAdapter) -> None:
    server.say(7, 7, "hello")
    await adapter.platform.show_typing(Place(platform="telegram", chat="7"))
    assert server.typing == [7]


async def test_a_message_that_waits_has_eyes_on_it(server: TelegramServer, adapter: TelegramAdapter) -> None:
    message = server.say(7, 7, "hello")
    place = Place(platform="telegram", chat="7", message=str(message))
    await adapter.platform.show_waiting(place)
    assert server.reactions(7, message) == ["👀"]
    async with asyncio.timeout(DEADLINE_S):
        while server.reactions(7, message):  # it is left out where others would have to wait for it
            await adapter.platform.show_waiting(place, over=True)
            await asyncio.sleep(0.005)


async def test_a_person_who_blocked_the_bot_is_gone(server: TelegramServer, adapter: TelegramAdapter) -> None:
    server.say(7, 7, "hello")
    server.block(7)
    with pytest.raises(DeliveryError, match="blocked by the user") as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.arrived_perhaps) == (True, False)


@pytest.mark.parametrize("chat", [99, "not a number"])
async def test_a_chat_that_does_not_exist_is_gone(chat: int | str, adapter: TelegramAdapter) -> None:
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send(outgoing(chat=chat), "one")  # type: ignore[arg-type]
    assert (caught.value.gone, caught.value.arrived_perhaps) == (True, False)


@pytest.mark.parametrize(
    ("fault", "says", "perhaps"),
    [
        (Fault(lost=True), "cannot be reached", True),
        (Fault(delay_s=60), "did not answer in time", True),
        (Fault.bad_gateway(), "Bad Gateway", True),
        (Fault(status=500), "or a proxy failed", True),
        (Fault(page=PAGE), "invalid answer", True),
        (Fault(page=b'{"ok": true}'), "invalid answer", True),
        (Fault(page=b'{"ok": true, "result": [1]}'), "invalid answer", True),
        (Fault(status=400, description="Bad Request: no such thing"), "refused the message: No such thing", False),
    ],
)
async def test_failed_send_tells_if_it_may_have_arrived(
    fault: Fault, says: str, perhaps: bool, server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    server.fail("sendMessage", fault)
    with pytest.raises(DeliveryError, match=says) as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.arrived_perhaps) == (False, perhaps)
    assert (server.replies(7) == ["one"]) == (fault.status == 0)


async def test_without_a_connection_nothing_has_arrived() -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url="http://127.0.0.1:9")
    with pytest.raises(DeliveryError, match="cannot be reached") as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.arrived_perhaps) == (False, False)
    await adapter.close()


async def test_a_flooded_chat_is_left_alone_for_as_long_as_telegram_says(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.say(7, 7, "hello")
    server.say(8, 8, "hello")
    server.fail("sendMessage", Fault.flood(30))
    for _ in range(2):
        with pytest.raises(DeliveryError, match="rate limit") as caught:
            await adapter.platform.send(outgoing(), "one")
        assert caught.value.retry_after_s == pytest.approx(30, abs=5)
    assert server.count("sendMessage") == 1
    await adapter.platform.send(outgoing(chat=8), "one")
    assert server.replies(8) == ["one"]


async def test_messages_to_one_chat_keep_their_order_and_their_distance(server: TelegramServer) -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url)
    server.say(7, 7, "hello")
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(adapter.platform.send(outgoing(), f"part {number}"))
            await asyncio.sleep(0)
    assert server.replies(7) == ["part 0", "part 1", "part 2"]
    assert server.violations == []
    await adapter.close()


async def test_message_is_sent_immediately_after_its_wait(server: TelegramServer) -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url)
    server.say(7, 7, "hello")
    for number in range(2):
        await adapter.platform.ready(outgoing().place)
        await adapter.platform.ready(outgoing().place)
        assert server.count("sendMessage") == number
        await adapter.platform.send(outgoing(), f"{number}")
    assert server.violations == []
    await adapter.close()
    slow = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=TelegramLimits(chat_every_s=0, every_s=300)
    )
    async with asyncio.timeout(DEADLINE_S):  # another turn would be minutes away
        await slow.platform.ready(outgoing().place)
        await slow.platform.ready(outgoing().place)
        await slow.platform.send(outgoing(), "at once")
    await slow.close()


async def test_many_chats_stay_within_telegrams_rate_limit(server: TelegramServer) -> None:
    began = time.monotonic()
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, limits=TelegramLimits(chat_every_s=0))
    for chat in range(1, 71):
        server.say(chat, chat, "hello")
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for chat in range(1, 71):
            group.create_task(adapter.platform.send(outgoing(chat=chat), "hi"))
    assert all(server.replies(chat) == ["hi"] for chat in range(1, 71))
    # By when each was due, not by their distance: a server that is held up for a moment gets several together.
    came = sorted(each.at - began for each in server.calls if each.method == "sendMessage")
    assert all(at >= number / 30 for number, at in enumerate(came))
    await adapter.close()


async def test_the_server_notices_who_talks_too_fast(server: TelegramServer) -> None:
    adapter = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=TelegramLimits(chat_every_s=0, group_every_s=0, every_s=0)
    )
    server.say(-5, 7, "hello")
    for number in range(31):
        await adapter.platform.send(outgoing(chat=-5), f"{number}")
    assert any("within a minute" in each for each in server.violations)
    assert any("two messages" in each for each in server.violations)
    await adapter.close()
