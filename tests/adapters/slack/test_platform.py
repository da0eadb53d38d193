"""What is said arrives as it should look, once, in order, at Slack's pace; what fails says what that means."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.rate_limiter import SlackLimits
from hermes.adapters.slack.workspace import Credentials
from hermes.config.secret import Secret
from hermes.domain.access.question import button_token
from hermes.domain.errors import DeliveryError
from hermes.domain.ids import TurnId
from hermes.domain.outbox_message import OutboxKind, TurnEnd
from hermes.domain.source import Place
from tests.adapters.edge import DEADLINE_S, FakeEdge, listening
from tests.adapters.slack.conftest import CREDENTIALS, HURRIED
from tests.adapters.slack.outgoing import outgoing
from tests.support.slack_server import APP_TOKEN, Fault, SlackServer
from tests.support.slack_state import TEAM
from tests.support.waiting import until


async def test_a_reply_is_shown_with_its_markup(server: SlackServer, adapter: SlackAdapter) -> None:
    server.say("D1", "UANN", "hello")
    sent = await adapter.platform.send(outgoing("x"), "**bold** [link](https://a.example) & <!here>")
    shown = server.history("D1")[-1]
    assert sent == shown.ts
    assert shown.text == "*bold* <https://a.example|link> &amp; &lt;!here&gt;"
    assert shown.blocks[0]["text"]["text"] == shown.text
    assert shown.metadata["event_payload"] == {"obligation": f"reply:{TEAM}.D1:x", "part": 0}
    assert server.violations == []


async def test_commands_in_our_own_words_are_written_as_slack_takes_them(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    text = "/new begins afresh (/status, too). /resume 1 goes on. Not /new/x, a/stop, /stop.txt or /nothing."
    for kind, name in (
        (OutboxKind.NOTICE, "command:1"),
        (OutboxKind.REPLY, "reply:1"),
        (OutboxKind.NOTICE, "send:1"),
    ):
        await adapter.platform.send(replace(outgoing(text), id=name, kind=kind), text)
    ours = "!new begins afresh (!status, too). !resume 1 goes on. Not /new/x, a/stop, /stop.txt or /nothing."
    assert [each.text for each in server.history("D1")[1:]] == [ours, text, text]


async def test_a_reply_goes_to_its_thread(server: SlackServer, adapter: SlackAdapter) -> None:
    asked = server.say("C1", "UANN", "hello")
    await adapter.platform.send(outgoing("yes", chat=f"{TEAM}.C1", thread=asked, message=asked), "yes")
    assert server.history("C1")[-1].thread == asked


async def test_an_edit_changes_the_text_and_keeps_what_the_message_is(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    message = await adapter.platform.send(outgoing("one two"), "one")
    await adapter.platform.edit(outgoing("one two", sent=(message,)), message, "one two")
    assert server.history("D1")[-1].versions == ["one", "one two"]
    assert await adapter.platform.find(outgoing("one two"), 0) == message


async def test_deleted_message_cannot_be_edited(server: SlackServer, adapter: SlackAdapter) -> None:
    server.say("D1", "UANN", "hello")
    message = await adapter.platform.send(outgoing(), "one")
    server.delete("D1", message)
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.edit(outgoing(), message, "two")
    assert caught.value.gone


async def test_question_has_buttons_below_its_last_part(server: SlackServer, adapter: SlackAdapter) -> None:
    asked = server.say("C1", "UANN", "hello")
    long = ("a very long choice " * 9).strip()
    text = "Which one? " * 400
    question = outgoing(text, chat=f"{TEAM}.C1", thread=asked, choices=("red", long))
    sent: list[str] = []
    for part in adapter.platform.parts(text):
        again = outgoing(text, chat=f"{TEAM}.C1", thread=asked, choices=("red", long), sent=tuple(sent))
        sent.append(await adapter.platform.send(again, part))
    first, last = server.history("C1")[-2:]
    assert first.buttons == []
    assert [len(each["text"]["text"]) for each in last.buttons] == [3, 75]
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
        server.press("C1", last.ts, last.buttons[1]["text"]["text"], "UBOB")
        await until(lambda: server.unacknowledged == 0)
    pressed = edge.taken[-1]
    assert (pressed.answers, pressed.choice, pressed.text) == (button_token(TurnId("turn-1"), "call-1"), 1, long)
    assert (pressed.user, pressed.chat_type, pressed.place.thread) == ("UBOB", "thread", asked)
    assert question.place.thread == asked


@pytest.mark.parametrize("fault", [(), (Fault(error="user_not_in_channel"),)])
async def test_ignored_button_press_is_explained_to_its_sender_only(
    server: SlackServer, adapter: SlackAdapter, fault: tuple[Fault, ...]
) -> None:
    asked = server.say("C1", "UANN", "hello")
    message = await adapter.platform.send(outgoing("q", chat=f"{TEAM}.C1", thread=asked, choices=("yes", "no")), "q")
    server.fail("chat.postEphemeral", *fault)
    edge = FakeEdge()
    edge.aside = "not yours"
    async with listening(adapter, edge):
        server.press("C1", message, "yes", "UBOB")
        await until(lambda: any(each.answers for each in edge.taken) and server.unacknowledged == 0)
    assert server.asides == ([] if fault else [("C1", "UBOB", "not yours")])
    assert server.replies("C1") == ["q"]


async def test_buttons_stay_with_an_edited_question_and_go_with_its_choices(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    message = await adapter.platform.send(outgoing("q", choices=("yes", "no")), "q")
    await adapter.platform.edit(outgoing("q", choices=("yes", "no"), sent=(message,)), message, "q again")
    assert len(server.history("D1")[-1].buttons) == 2
    await adapter.platform.edit(outgoing("q", sent=(message,)), message, "q: yes")
    assert server.history("D1")[-1].buttons == []


@pytest.mark.parametrize("text", ["&<>" * 4000, "word " * 9000, "`a` **b** [c](https://d.example) " * 700, " \n "])
async def test_long_texts_fit_into_what_slack_takes(text: str, server: SlackServer, adapter: SlackAdapter) -> None:
    server.say("D1", "UANN", "hello")
    sent: tuple[str, ...] = ()
    for part in adapter.platform.parts(text):
        sent += (await adapter.platform.send(outgoing(text, sent=sent), part),)
        await adapter.platform.edit(outgoing(text, sent=sent), sent[-1], part)
    assert len(sent) == len(server.replies("D1")) == len(adapter.platform.parts(text))


# ------------------------------------------------------------ signs of work


async def test_a_message_has_eyes_on_it_until_it_was_answered(server: SlackServer, adapter: SlackAdapter) -> None:
    asked = server.say("D1", "UANN", "hello")
    place = Place(platform="slack", chat=f"{TEAM}.D1", message=asked)
    for _ in range(3):
        await adapter.platform.show_typing(place)
    await until(lambda: server.reactions("D1", asked) == {"eyes"})
    message = await adapter.platform.send(outgoing("one", message=asked, final=False), "one ▌")
    assert server.reactions("D1", asked) == {"eyes"}
    await adapter.platform.edit(outgoing("one", message=asked, sent=(message,)), message, "one")
    await until(lambda: server.reactions("D1", asked) == {"white_check_mark"})
    assert server.count("reactions.add") == 2


@pytest.mark.parametrize(("end", "signs"), [(TurnEnd.STOPPED, set()), (TurnEnd.FAILED, {"x"})])
async def test_a_message_that_got_no_answer_is_not_marked_as_answered(
    end: TurnEnd, signs: set[str], server: SlackServer, adapter: SlackAdapter
) -> None:
    asked = server.say("D1", "UANN", "hello")
    await adapter.platform.show_waiting(Place(platform="slack", chat=f"{TEAM}.D1", message=asked))
    await until(lambda: server.reactions("D1", asked) == {"eyes"})
    await adapter.platform.send(replace(outgoing("no", message=asked), end=end), "no")
    await until(lambda: server.reactions("D1", asked) == signs)


async def test_the_eyes_go_when_a_message_that_waited_was_dropped(server: SlackServer, adapter: SlackAdapter) -> None:
    asked = server.say("D1", "UANN", "hello")
    place = Place(platform="slack", chat=f"{TEAM}.D1", message=asked)
    await adapter.platform.show_waiting(place)
    await until(lambda: server.reactions("D1", asked) == {"eyes"})
    await adapter.platform.show_waiting(place, over=True)
    await until(lambda: server.reactions("D1", asked) == set())


async def test_reactions_can_be_switched_off(server: SlackServer) -> None:
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, reactions=False)
    asked = server.say("D1", "UANN", "hello")
    await adapter.platform.show_typing(Place(platform="slack", chat=f"{TEAM}.D1", message=asked))
    await adapter.platform.send(outgoing("one", message=asked), "one")
    await adapter.close()
    assert server.count("reactions.add") == 0


async def test_an_assistants_thread_has_a_status_and_others_are_asked_once(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    asked = server.say("D1", "UANN", "hello", thread="1790000000.000001")
    server.change(lambda world: world.assistant_threads.add("1790000000.000001"))
    for thread in ("1790000000.000001", asked):
        place = Place(platform="slack", chat=f"{TEAM}.D1", thread=thread, message=asked)
        await adapter.platform.show_typing(place)
        await until(lambda thread=thread: any(call.about.get("thread_ts") == thread for call in server.calls))  # type: ignore[misc]
    assert server.statuses == [("D1", "1790000000.000001", "is thinking…")]
    for thread in ("1790000000.000001", asked):
        await adapter.platform.show_typing(Place(platform="slack", chat=f"{TEAM}.D1", thread=thread, message=asked))
    await adapter.close()
    assert server.count("assistant.threads.setStatus") == 2


@pytest.mark.parametrize("by_edit", [True, False])
async def test_assistant_status_is_cleared_after_the_turn(
    by_edit: bool, server: SlackServer, adapter: SlackAdapter
) -> None:
    root = server.say("D1", "UANN", "hello")
    server.change(lambda world: world.assistant_threads.add(root))
    place = Place(platform="slack", chat=f"{TEAM}.D1", thread=root, message=root)
    server.fail("assistant.threads.setStatus", Fault(delay_s=0.2))  # the next one is not to overtake it
    for _ in range(2):
        await adapter.platform.show_typing(place)
        reply = outgoing("hello yourself", thread=root, message=root, final=not by_edit)
        ts = await adapter.platform.send(reply, "hel" if by_edit else reply.text)
        if by_edit:
            await adapter.platform.edit(replace(reply, final=True, sent=(ts,)), ts, reply.text)
    thinking, over = ("D1", root, "is thinking…"), ("D1", root, "")
    await until(lambda: server.statuses == [thinking, over, thinking, over])
    await adapter.platform.show_waiting(place, over=True)  # there is none to be cleared
    await adapter.close()
    assert server.count("assistant.threads.setStatus") == 4


async def test_many_messages_stay_within_slacks_limit_for_reactions(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    asked = {f"D{number}": server.say(f"D{number}", "UANN", "hello") for number in range(60)}
    for channel, message in asked.items():
        await adapter.platform.show_typing(Place(platform="slack", chat=f"{TEAM}.{channel}", message=message))
    await until(lambda: server.count("reactions.add") >= 10)
    for channel, message in asked.items():
        await adapter.platform.send(outgoing("one", chat=f"{TEAM}.{channel}", message=message), "one")
    await until(lambda: not any("eyes" in server.reactions(*each) for each in asked.items()))
    assert any("white_check_mark" in server.reactions(*each) for each in asked.items())
    assert server.violations == []


# ------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("fault", "says", "perhaps"),
    [
        (Fault(lost=True), "cannot be reached", True),
        (Fault(delay_s=60), "did not answer in time", True),
        (Fault.bad_gateway(), "failed", True),
        (Fault(status=500, page=b"oops"), "failed", True),
        (Fault(error="fatal_error"), "fatal_error", True),
        (Fault(error="invalid_blocks"), "refused the request: invalid_blocks", False),
    ],
)
async def test_failed_send_tells_if_it_may_have_arrived(
    fault: Fault, says: str, perhaps: bool, server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    server.fail("chat.postMessage", fault)
    with pytest.raises(DeliveryError, match=says) as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.arrived_perhaps) == (False, perhaps)
    assert (server.replies("D1") == ["one"]) == bool(fault.lost or fault.delay_s)
    # What was not confirmed in time may take effect later: it is looked for when it had that time.
    assert ((caught.value.retry_after_s or 0) >= 30) == bool(fault.delay_s)


@pytest.mark.parametrize(
    ("code", "gone", "refused"),
    [
        # nobody can be told there: a dead letter at once
        ("channel_not_found", True, True),
        ("is_archived", True, True),
        ("not_in_channel", True, True),
        # it waits for somebody to put the token right
        ("account_inactive", False, False),
        ("invalid_auth", False, False),
        ("token_revoked", False, False),
        # this message is not wanted: a dead letter after some tries, so that others can follow
        ("msg_too_long", False, True),
        ("missing_scope", False, True),
        ("invalid_blocks", False, True),
        # it is Slack's trouble
        ("ratelimited", False, False),
        ("internal_error", False, False),
    ],
)
async def test_what_a_refusal_means(
    code: str, gone: bool, refused: bool, server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    server.fail("chat.postMessage", Fault(error=code))
    with pytest.raises(DeliveryError) as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.refused) == (gone, refused)
    assert (caught.value.retry_after_s is not None) == (code == "ratelimited")


async def test_channels_where_nobody_can_be_told_anything_are_gone(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    for channel in ("C1", "C2"):
        server.say(channel, "UANN", "hello")
    server.change(lambda world: world.archived.add("C1"))
    server.change(lambda world: world.strange.add("C2"))
    for chat in (f"{TEAM}.C1", f"{TEAM}.C2", f"{TEAM}.C3", "T9.C1"):
        with pytest.raises(DeliveryError) as caught:
            await adapter.platform.send(outgoing(chat=chat), "one")
        assert (caught.value.gone, caught.value.arrived_perhaps) == (True, False)


async def test_without_a_connection_nothing_has_arrived(server: SlackServer, adapter: SlackAdapter) -> None:
    adapter = SlackAdapter([CREDENTIALS], base_url="http://127.0.0.1:9")
    with pytest.raises(DeliveryError, match="cannot be reached") as caught:
        await adapter.platform.send(outgoing(), "one")
    assert (caught.value.gone, caught.value.arrived_perhaps) == (False, False)
    await adapter.close()


async def test_a_flooded_channel_is_left_alone_for_as_long_as_slack_says(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("D1", "UANN", "hello")
    server.say("D2", "UBOB", "hello")
    server.fail("chat.postMessage", Fault.flood(30))
    for _ in range(2):
        with pytest.raises(DeliveryError, match="rate limit") as caught:
            await adapter.platform.send(outgoing(), "one")
        assert caught.value.retry_after_s == pytest.approx(30, abs=5)
        assert not caught.value.arrived_perhaps
    assert server.count("chat.postMessage") == 1
    await adapter.platform.send(outgoing(chat=f"{TEAM}.D2"), "one")
    assert server.replies("D2") == ["one"]


async def test_unconfirmed_message_is_found_in_channel_and_thread(server: SlackServer, adapter: SlackAdapter) -> None:
    asked = server.say("C1", "UANN", "hello")
    server.say("D1", "UANN", "hello")
    for one in (outgoing("one"), outgoing("one", chat=f"{TEAM}.C1", thread=asked, message=asked)):
        channel = one.place.chat.rpartition(".")[2]
        assert await adapter.platform.find(one, 0) is None
        server.fail("chat.postMessage", Fault(lost=True))
        with pytest.raises(DeliveryError) as caught:
            await adapter.platform.send(one, "one")
        assert caught.value.arrived_perhaps
        for number in range(250):  # others go on talking
            server.change(lambda world, n=number, c=channel, t=one.place.thread: world._add(TEAM, c, "U", str(n), t))  # type: ignore[misc]
        found = await adapter.platform.find(one, 0)
        assert found == next(each.ts for each in server.history(channel) if each.from_bot)
        assert await adapter.platform.find(one, 1) is None


# ------------------------------------------------------------ pace


async def test_messages_to_one_channel_keep_their_order_and_their_distance(server: SlackServer) -> None:
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url)
    server.say("D1", "UANN", "hello")
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(adapter.platform.send(outgoing(f"part {number}"), f"part {number}"))
            await asyncio.sleep(0)
    assert server.replies("D1") == ["part 0", "part 1", "part 2"]
    assert server.violations == []
    await adapter.close()


async def test_growing_replies_leave_edits_for_final_texts(server: SlackServer) -> None:
    limits = SlackLimits(channel_every_s=0, every_s=0, change_every_s=0.1, changes_at_once=1000)
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=limits)
    server.say("D1", "UANN", "hello")
    with pytest.raises(DeliveryError, match="too many replies are growing") as caught:
        await adapter.platform.send(outgoing("text", final=False), "t ▌")
    assert caught.value.retry_after_s
    with pytest.raises(
        DeliveryError, match="too many replies are growing"
    ):  # the answer came while its beginning waited
        await adapter.platform.send(outgoing("text"), "t ▌")
    message = await adapter.platform.send(outgoing("text"), "text")
    await adapter.platform.edit(outgoing("text", sent=(message,)), message, "text")
    assert server.replies("D1") == ["text"]
    await adapter.close()
    sooner = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=replace(limits, changes_at_once=10))
    await asyncio.sleep(0.6)  # until half of it is left again
    await sooner.platform.edit(outgoing("text", sent=(message,), final=False), message, "text ▌")
    assert server.replies("D1") == ["text ▌"]
    await sooner.close()


async def test_each_workspace_is_spoken_to_with_its_own_token(server: SlackServer) -> None:
    server.tokens["xoxb-other"] = "T0002"
    other = Credentials(bot=Secret("xoxb-other"), app=Secret(APP_TOKEN))
    adapter = SlackAdapter([CREDENTIALS, other], base_url=server.base_url, limits=HURRIED)
    server.say("D1", "UANN", "hello")
    server.say("D2", "UANN", "hello", team="T0002")
    await adapter.platform.send(outgoing(), "here")
    await adapter.platform.send(outgoing(chat="T0002.D2"), "there")
    await adapter.platform.send(outgoing(chat="D1"), "and here")
    assert (server.replies("D1"), server.replies("D2")) == (["here", "and here"], ["there"])
    await adapter.close()
