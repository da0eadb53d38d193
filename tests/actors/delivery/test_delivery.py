"""What is owed is said: once, in order, until it is confirmed, whatever fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest
from pykka import ActorRef

from hermes.actors.delivery.attempt import BELOW, ERASED, REPEATED
from hermes.actors.delivery.delivery import DeliveryActor
from hermes.actors.delivery.delivery_protocol import Deliveries, Drain, ForgetSession
from hermes.actors.delivery.lane import MAX_MOVES, MAX_TRIES_IF_REFUSED
from hermes.actors.kernel.actor import live_actors
from hermes.domain.errors import DeliveryError, StorageError, StorageFullError
from hermes.domain.events import CallAsked, CallBegan, TextDelta, TurnAnswered
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.operations import Cancel, Enqueue
from hermes.domain.outbox_message import OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.source import Place
from hermes.domain.turn.usage import Usage
from hermes.ports.chat import Abilities, Platform
from hermes.services.event_hub import EventHub
from tests.support.chat_platform import PLACE, ToyPlatform
from tests.support.journals import LoopJournal
from tests.support.waiting import until

TURN = TurnId("t1")
FINDS = Abilities(edit=True, find=True)


def outgoing(name: str, text: str, *, chat: str = "c1", **more: Any) -> OutboxMessage:
    place = Place(platform="toy", chat=chat)
    return OutboxMessage(
        id=name, kind=OutboxKind.REPLY, place=place, text=text, at=1.0, session=SessionId("s"), **more
    )


class DeliveryHarness:
    """A delivery actor, its journal and its platform; it can be killed and started again."""

    def __init__(self, platform: ToyPlatform) -> None:
        self.platform = platform
        self.journal = LoopJournal()
        self.hub = EventHub()
        self.now = 0.0
        self.ref: ActorRef[DeliveryActor] = self.start()

    def start(self) -> ActorRef[DeliveryActor]:
        platforms: dict[str, Platform] = {"toy": self.platform}
        self.ref = DeliveryActor.start(
            platforms=platforms,
            journal=self.journal,
            hub=self.hub,
            clock=lambda: self.now,
            jitter=lambda: 0.0,
            fresh_after_s=60.0,
        )
        return self.ref

    async def enqueue(self, *outgoing_messages: OutboxMessage) -> None:
        """As a session does: on disk first, then told."""
        self.journal.engine.commit([tuple(Enqueue(outgoing=each) for each in outgoing_messages)])
        self.ref.tell(Deliveries(outgoing=outgoing_messages))

    async def settled(self) -> None:
        await self.ref.ask(Drain(), block=False)

    async def stop(self) -> None:
        await self.ref.stop(block=False)


class Unreadable:
    """A store whose outbox cannot be read for a while."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.readable = False
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def outbox(self) -> list[OutboxMessage]:
        self.looks += 1
        if not self.readable:
            raise StorageError("it cannot be read")
        found: list[OutboxMessage] = self._engine.outbox()
        return found


@pytest.fixture
async def desk() -> AsyncIterator[DeliveryHarness]:
    desk = DeliveryHarness(ToyPlatform())
    yield desk
    await desk.stop()


async def test_what_is_owed_is_said_and_remembered_as_sent(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("reply:t1", "hello", turn=TURN))
    await desk.settled()
    assert desk.platform.texts() == ["hello"]
    assert desk.journal.engine.outbox() == []
    sent = desk.journal.engine.sent("reply:t1")
    assert sent is not None
    assert (sent.messages, sent.turn, sent.repeated) == (("m1",), TURN, False)


async def test_what_is_owed_to_a_chat_that_has_moved_is_said_where_it_is_now(desk: DeliveryHarness) -> None:
    desk.platform.longest = 5
    desk.platform.problems = [DeliveryError("it is a supergroup now", moved_to="c9")]
    await desk.enqueue(outgoing("a", "hello there"), outgoing("b", "more"))
    await desk.settled()
    assert (desk.platform.texts("c9"), desk.platform.texts()) == (["hello", " ther", "e"], ["more"])
    sent = desk.journal.engine.sent("a")
    assert sent is not None
    assert (sent.place.chat, sent.repeated) == ("c9", False)
    assert desk.journal.engine.outbox() == []


async def test_a_long_text_is_said_in_parts(desk: DeliveryHarness) -> None:
    desk.platform.longest = 3
    await desk.enqueue(outgoing("a", "abcdefgh"))
    await desk.settled()
    assert desk.platform.texts() == ["abc", "def", "gh"]


async def test_one_chat_keeps_its_order_while_another_is_unreachable(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("no route", retry_after_s=0.05)]
    await desk.enqueue(outgoing("a", "first"), outgoing("b", "second"), outgoing("c", "elsewhere", chat="c2"))
    await until(lambda: len(desk.platform.shown) == 3)
    assert desk.platform.texts() == ["first", "second"]
    assert desk.platform.texts("c2") == ["elsewhere"]


async def test_an_outage_is_written_down_and_waited_out(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("no route", retry_after_s=0.2)]
    await desk.enqueue(outgoing("a", "hello"))
    await until(lambda: [each.problem for each in desk.journal.engine.outbox()] == ["no route"])
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.platform.texts() == ["hello"]


async def test_it_says_how_much_it_owes_and_what_keeps_the_oldest(desk: DeliveryHarness) -> None:
    [actor] = [each for each in live_actors() if each.kind == "delivery"]
    assert (actor.statistics().state, actor.statistics().last_error) == ("running", "")
    desk.now = 31.0
    desk.platform.problems = [DeliveryError("no route", retry_after_s=60)]
    await desk.enqueue(outgoing("a", "one"), outgoing("b", "two"))
    await until(lambda: bool(actor.statistics().last_error))
    shown = actor.statistics()
    assert (shown.state, shown.last_error) == ("2 to say", "a is not delivered for 30 s: no route (tried 1 times)")


async def test_dead_letter_that_cannot_be_stored_is_not_retried_immediately(desk: DeliveryHarness) -> None:
    await desk.settled()
    desk.journal.held = []
    desk.platform.problems = [DeliveryError("the chat was deleted", gone=True) for _ in range(100)]
    await desk.enqueue(outgoing("a", "lost"))
    await until(lambda: bool(desk.journal.held))
    desk.journal.release()  # that it is about to be sent
    desk.journal.refuse_with = StorageFullError("no space")
    await desk.settled()  # it waits, and keeps nobody busy
    assert desk.platform.sending == 1
    desk.journal.refuse_with = None
    await until(lambda: bool(desk.journal.engine.dead_letters()))
    assert desk.platform.sending == 2


async def test_a_message_that_is_refused_again_and_again_makes_way_for_the_next_one(desk: DeliveryHarness) -> None:
    refused = DeliveryError("it is empty", refused=True, retry_after_s=0.0)
    desk.platform.problems = [refused] * (MAX_TRIES_IF_REFUSED + 1)
    await desk.enqueue(outgoing("a", "nobody takes this"), outgoing("b", "second"))
    await until(lambda: desk.journal.engine.sent("b") is not None)
    [letter] = desk.journal.engine.dead_letters()
    assert (letter.id, letter.problem, desk.platform.texts()) == ("a", "it is empty", ["second"])


async def test_refusals_count_whatever_their_words(desk: DeliveryHarness) -> None:
    count = MAX_TRIES_IF_REFUSED + 1
    desk.platform.problems = [
        DeliveryError(f"bad request {n}", refused=True, retry_after_s=0.0) for n in range(count)
    ]
    await desk.enqueue(outgoing("a", "nobody takes this"), outgoing("b", "second"))
    await until(lambda: desk.journal.engine.sent("b") is not None)
    assert [letter.id for letter in desk.journal.engine.dead_letters()] == ["a"]


async def test_a_refusal_after_other_problems_is_tried_again(desk: DeliveryHarness) -> None:
    away = DeliveryError("no route", retry_after_s=0.0)
    refused = DeliveryError("it is empty", refused=True, retry_after_s=0.0)
    desk.platform.problems = [away] * MAX_TRIES_IF_REFUSED + [refused, refused]
    await desk.enqueue(outgoing("a", "third time lucky"))
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.journal.engine.dead_letters() == []


async def test_what_an_erased_session_had_still_to_say_is_not_said(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("no route", retry_after_s=0.05)]
    await desk.enqueue(
        outgoing("a", "forget this"), replace(outgoing("b", "another one's"), session=SessionId("other"))
    )
    await desk.settled()
    desk.journal.engine.commit([(Cancel(id="a"),)])  # as erasing does
    desk.ref.tell(ForgetSession(session=SessionId("s")))
    await until(lambda: desk.journal.engine.sent("b") is not None)
    assert desk.platform.texts() == ["another one's"]


async def test_what_an_erased_session_was_just_saying_is_not_tried_again(desk: DeliveryHarness) -> None:
    desk.platform.gate = asyncio.Event()
    desk.platform.problems = [DeliveryError("no route", retry_after_s=0.0)]
    await desk.enqueue(
        outgoing("a", "forget this"), replace(outgoing("b", "another one's"), session=SessionId("other"))
    )
    await until(lambda: desk.platform.sending == 1)
    desk.journal.engine.commit([(Cancel(id="a"),)])
    desk.ref.tell(ForgetSession(session=SessionId("s")))
    desk.platform.gate.set()
    await until(lambda: desk.journal.engine.sent("b") is not None)
    assert desk.platform.texts() == ["another one's"]


async def test_a_chat_that_is_gone_makes_a_dead_letter_and_the_next_message_is_tried(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("the chat was deleted", gone=True)]
    await desk.enqueue(outgoing("a", "lost"), outgoing("b", "second"))
    await until(lambda: desk.journal.engine.sent("b") is not None)
    [letter] = desk.journal.engine.dead_letters()
    assert letter.undelivered is not None
    assert (letter.undelivered.text, letter.problem) == ("lost", "the chat was deleted")


async def test_what_was_owed_before_a_restart_is_said_after_it(desk: DeliveryHarness) -> None:
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=outgoing("a", "one")),), (Enqueue(outgoing=outgoing("b", "two")),)])
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == ["one", "two"]


async def _killed_while_sending(desk: DeliveryHarness, *, arrives: bool) -> None:
    desk.platform.gate = asyncio.Event()
    await desk.enqueue(outgoing("a", "hello"))
    await until(lambda: desk.platform.sending == 1)
    await desk.stop()
    if arrives:
        desk.platform.shown["m1"] = ("c1", "hello")
        desk.platform.markers["a", 0] = "m1"
    desk.platform.gate = None
    desk.start()
    await desk.settled()


async def test_message_in_doubt_is_repeated_and_marked(
    desk: DeliveryHarness,
) -> None:
    await _killed_while_sending(desk, arrives=True)
    assert desk.platform.texts() == ["hello", REPEATED + "hello"]
    sent = desk.journal.engine.sent("a")
    assert sent is not None
    assert sent.repeated


async def test_it_is_looked_up_where_the_platform_can() -> None:
    for arrives, texts in ((True, ["hello"]), (False, ["hello"])):
        desk = DeliveryHarness(ToyPlatform(FINDS))
        await _killed_while_sending(desk, arrives=arrives)
        assert desk.platform.texts() == texts
        await desk.stop()


async def test_an_answer_that_was_lost_on_its_way_back_counts_as_perhaps_arrived(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("cut off", arrived_perhaps=True, retry_after_s=0.01)]
    await desk.enqueue(outgoing("a", "hello"))
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.platform.texts() == ["hello", REPEATED + "hello"]


async def test_an_outbox_that_cannot_be_read_is_read_again_before_anything_is_sent(desk: DeliveryHarness) -> None:
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=outgoing("a", "one")),)])
    unreadable = Unreadable(desk.journal.engine)
    desk.journal.engine = cast("Any", unreadable)
    desk.start()
    await desk.enqueue(outgoing("b", "two"))
    await until(lambda: unreadable.looks > 0)
    assert desk.platform.texts() == []
    unreadable.readable = True
    await desk.settled()
    assert desk.platform.texts() == ["one", "two"]


async def test_a_repeat_stays_marked_when_it_takes_a_second_try_to_note_it(desk: DeliveryHarness) -> None:
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=replace(outgoing("a", "hello"), sending=True)),)])
    desk.journal.refuse_with = StorageFullError("no space")
    desk.start()
    await until(lambda: bool(desk.platform.shown))
    desk.journal.refuse_with = None
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.platform.texts() == [REPEATED + "hello"]


async def test_a_repeat_stays_marked_after_a_restart(desk: DeliveryHarness) -> None:
    await desk.stop()
    desk.platform.shown["m1"] = ("c1", REPEATED + "hello")
    desk.journal.engine.commit([(Enqueue(outgoing=replace(outgoing("a", "hello"), sent=("m1",), repeated=(0,))),)])
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == [REPEATED + "hello"]


async def test_parts_that_were_confirmed_before_a_crash_are_not_sent_again(desk: DeliveryHarness) -> None:
    desk.platform.longest = 3
    desk.platform.problems = []
    await desk.stop()
    half = replace(outgoing("a", "abcdef"), sent=("m1",))
    desk.platform.shown["m1"] = ("c1", "abc")
    desk.journal.engine.commit([(Enqueue(outgoing=half),)])
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == ["abc", "def"]


async def test_a_full_disk_delays_and_doubles_nothing(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("a", "hello"))
    desk.journal.refuse_with = StorageFullError("no space")
    await asyncio.sleep(0.05)
    assert desk.platform.texts() == []
    desk.journal.refuse_with = None
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.platform.texts() == ["hello"]


# ---------------------------------------------------------------- shown while it grows


def begun(turn: TurnId = TURN) -> OutboxMessage:
    return outgoing(f"reply:{turn}", "", turn=turn, final=False)


async def test_a_growing_answer_and_its_final_form_are_one_message(desk: DeliveryHarness) -> None:
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.platform.typed > 0)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    await until(lambda: desk.platform.texts() == ["Hel ▌"])
    desk.now += 5
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="lo"))
    await until(lambda: desk.platform.texts() == ["Hello ▌"])
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    desk.hub.publish(
        TurnAnswered(
            session=SessionId("s"), turn=TURN, text="Hello you", model="m", finish_reason="stop", usage=Usage()
        )
    )
    await desk.settled()
    assert desk.platform.texts() == ["Hello you"]
    assert desk.hub.watchers == 0


async def shown_for(desk: DeliveryHarness, seconds: float) -> None:
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    await until(lambda: bool(desk.journal.engine.outbox()) and bool(desk.journal.engine.outbox()[0].sent))
    desk.now += seconds


async def test_an_answer_that_was_shown_for_long_ends_as_a_new_message(desk: DeliveryHarness) -> None:
    desk.platform.longest = 6
    await shown_for(desk, 61)
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await desk.settled()
    assert list(desk.platform.shown.items()) == [("m2", ("c1", "Hello ")), ("m3", ("c1", "you"))]
    sent = desk.journal.engine.sent("reply:t1")
    assert sent is not None
    assert (sent.messages, sent.repeated) == (("m2", "m3"), False)


async def test_an_old_message_that_may_not_be_taken_away_points_to_the_new_one(desk: DeliveryHarness) -> None:
    await shown_for(desk, 61)
    desk.platform.keeps = True
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await desk.settled()
    assert desk.platform.texts() == [BELOW, "Hello you"]
    assert desk.journal.engine.outbox() == []


async def test_a_kill_before_the_old_message_is_taken_away_leaves_the_answer_once(desk: DeliveryHarness) -> None:
    await shown_for(desk, 61)
    desk.platform.stuck = asyncio.Event()
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await until(lambda: desk.platform.deletions == 1)
    assert desk.platform.texts() == ["Hel ▌", "Hello you"]
    await desk.stop()
    desk.platform.stuck = None
    desk.start()
    await desk.settled()
    assert (desk.platform.texts(), desk.journal.engine.outbox()) == (["Hello you"], [])
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=outgoing("b", "more", sent=("m2",), superseded=("m1",))),)])
    desk.start()  # a kill after that: it is not there any more, which is as well
    await desk.settled()
    assert (desk.platform.texts(), desk.journal.engine.outbox()) == (["more"], [])


async def test_a_new_message_that_may_have_arrived_is_marked_and_the_old_goes(desk: DeliveryHarness) -> None:
    await shown_for(desk, 61)
    desk.platform.problems = [DeliveryError("no answer", arrived_perhaps=True, retry_after_s=0.0)]
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await until(lambda: desk.journal.engine.sent("reply:t1") is not None)
    assert desk.platform.texts() == ["Hello you", REPEATED + "Hello you"]


async def test_of_a_turn_that_was_stopped_stays_what_was_shown(desk: DeliveryHarness) -> None:
    await shown_for(desk, 61)
    await desk.enqueue(outgoing("reply:t1", "", turn=TURN, end=TurnEnd.STOPPED))
    await desk.settled()
    assert list(desk.platform.shown.items()) == [("m1", ("c1", "Hel\n\n(stopped)"))]
    assert desk.journal.engine.outbox() == []


async def test_of_a_turn_that_failed_stays_what_was_shown_also_when_it_is_said_anew(desk: DeliveryHarness) -> None:
    await shown_for(desk, 61)
    await desk.enqueue(outgoing("reply:t1", "No.", turn=TURN, end=TurnEnd.FAILED))
    await desk.settled()
    assert list(desk.platform.shown.items()) == [("m2", ("c1", "Hel\n\n(This is as far as it came.)\nNo."))]


async def test_a_stopped_turn_of_which_nothing_was_shown_is_not_mentioned(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("reply:t1", "", turn=TURN, end=TurnEnd.STOPPED))
    await desk.settled()
    assert (desk.platform.texts(), desk.journal.engine.outbox()) == ([], [])


async def test_the_last_words_of_a_stopped_turn_are_the_same_after_a_kill(desk: DeliveryHarness) -> None:
    await shown_for(desk, 1)
    desk.platform.problems = [DeliveryError("no route", retry_after_s=60)]
    await desk.enqueue(outgoing("reply:t1", "", turn=TURN, end=TurnEnd.STOPPED))
    await until(lambda: [each.problem for each in desk.journal.engine.outbox()] == ["no route"])
    await desk.stop()
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == ["Hel\n\n(stopped)"]


async def test_a_message_that_waits_has_a_sign_until_it_is_dropped(desk: DeliveryHarness) -> None:
    place = replace(PLACE, message="7")
    sign = OutboxMessage(id="sign:t1", kind=OutboxKind.SIGN, place=place, text="", at=1.0, final=False)
    desk.ref.tell(Deliveries(outgoing=(sign,)))
    await until(lambda: desk.platform.waits == {"7"})
    assert desk.journal.engine.outbox() == []
    await desk.enqueue(replace(outgoing("reply:t1", "", turn=TURN, end=TurnEnd.STOPPED), place=place))
    await until(lambda: not desk.platform.waits)


async def test_a_chat_that_moves_while_an_answer_grows_keeps_its_order(desk: DeliveryHarness) -> None:
    await shown_for(desk, 5)
    desk.platform.moved = {"c1": "c9"}
    desk.platform.gate = asyncio.Event()  # under the new id something is being said
    await desk.enqueue(outgoing("x", "there", chat="c9"))
    await until(lambda: desk.platform.sending == 2)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="lo"))
    await until(lambda: desk.journal.engine.outbox()[0].place.chat == "c9")
    await desk.enqueue(
        outgoing("reply:t1", "Hello you", turn=TURN), outgoing("b", "second"), outgoing("y", "third", chat="c9")
    )
    desk.platform.gate.set()
    await desk.settled()
    assert desk.platform.texts("c9") == ["there", "Hello you", "second", "third"]
    assert desk.journal.engine.outbox() == []
    assert desk.hub.watchers == 0


async def test_what_waits_in_a_chat_that_moves_comes_before_what_waits_under_its_new_id(
    desk: DeliveryHarness,
) -> None:
    desk.platform.moved = {"c1": "c9"}
    await desk.stop()
    late = [
        outgoing("a", "first"),
        outgoing("b", "second"),
        outgoing("x", "third", chat="c9"),
        outgoing("y", "fourth", chat="c9"),
    ]
    desk.journal.engine.commit([tuple(Enqueue(outgoing=each) for each in late)])
    desk.platform.gate = asyncio.Event()
    desk.start()
    await until(lambda: desk.platform.sending == 2)
    desk.platform.gate.set()
    await desk.settled()
    # One was on its way before it was known.
    assert desk.platform.texts("c9") == ["third", "first", "second", "fourth"]


async def test_a_chat_that_moves_to_and_fro_is_not_followed_without_pause(desk: DeliveryHarness) -> None:
    desk.platform.moved = {"c1": "c9", "c9": "c1"}
    await desk.enqueue(outgoing("a", "first"))
    await desk.settled()
    assert desk.platform.sending == MAX_MOVES + 1
    desk.platform.moved = {}
    await until(lambda: desk.journal.engine.outbox() == [])
    assert len(desk.platform.shown) == 1


@pytest.mark.parametrize("killed", [False, True])
async def test_what_was_shown_half_of_an_erased_session_does_not_stay_so(
    desk: DeliveryHarness, *, killed: bool
) -> None:
    await shown_for(desk, 5)
    desk.platform.problems = [DeliveryError("too fast", retry_after_s=0.3)]
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await until(lambda: [each.problem for each in desk.journal.engine.outbox()] == ["too fast"])
    await desk.settled()
    desk.journal.engine.commit([(Cancel(id="reply:t1"),)])  # as erasing does
    desk.ref.tell(ForgetSession(session=SessionId("s")))
    await until(lambda: [each.text for each in desk.journal.engine.outbox()] == [ERASED])
    if killed:
        await desk.stop()
        desk.start()
    await until(lambda: desk.journal.engine.outbox() == [])
    assert desk.platform.texts() == [ERASED]


async def test_an_erased_session_whose_answer_is_just_shown_half_says_no_more_of_it(desk: DeliveryHarness) -> None:
    await shown_for(desk, 5)
    desk.platform.editing = asyncio.Event()
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="lo"))
    await until(lambda: desk.platform.edited == 1)
    await desk.enqueue(outgoing("reply:t1", "Hello you", turn=TURN))
    await until(lambda: desk.hub.watchers == 0)
    desk.journal.engine.commit([(Cancel(id="reply:t1"),)])
    desk.ref.tell(ForgetSession(session=SessionId("s")))
    desk.platform.editing.set()
    await desk.settled()
    assert (desk.platform.texts(), desk.journal.engine.outbox()) == ([ERASED], [])


async def test_a_tool_that_runs_after_its_question_was_answered_is_shown(desk: DeliveryHarness) -> None:
    about: dict[str, Any] = {"session": SessionId("s"), "turn": TURN, "call": "c"}
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(CallAsked(**about, name="terminal", question="may I?", choices=("once",), approval=True))
    for _ in range(20):  # until it has looked, and seen nothing to show
        await asyncio.sleep(0)
    desk.hub.publish(CallBegan(**about, name="terminal", summary="terminal: make"))
    await until(lambda: desk.platform.texts() == ["⚙ terminal: make"])


async def test_an_answer_that_is_there_soon_is_said_once_and_never_shown_half() -> None:
    desk = DeliveryHarness(ToyPlatform(Abilities(edit=True, show_every_s=1.0)))
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    desk.now += 0.5
    await desk.enqueue(outgoing("reply:t1", "Hello", turn=TURN))
    await desk.settled()
    assert (desk.platform.texts(), desk.platform.edits) == (["Hello"], [])
    await desk.stop()


async def test_an_answer_that_is_there_before_its_turn_to_be_shown_is_said_once(desk: DeliveryHarness) -> None:
    desk.platform.busy = asyncio.Event()
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    await until(lambda: desk.platform.waiting == 1)
    await desk.enqueue(outgoing("reply:t1", "Hello", turn=TURN))
    await until(lambda: desk.hub.watchers == 0)
    desk.platform.busy.set()
    await desk.settled()
    assert (desk.platform.texts(), desk.platform.edits) == (["Hello"], [])
    assert desk.journal.engine.outbox() == []


async def test_a_growing_answer_that_a_kill_cut_off_is_finished_below_what_was_said_since(
    desk: DeliveryHarness,
) -> None:
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    await until(lambda: bool(desk.journal.engine.outbox()) and bool(desk.journal.engine.outbox()[0].sent))
    await desk.stop()
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == ["Hel ▌"]  # not final: it is not counted as delivered
    await desk.enqueue(outgoing("back", "Hermes is back."))
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await desk.enqueue(outgoing("reply:t1", "Hello", turn=TURN))
    await desk.settled()
    assert desk.platform.texts() == ["Hermes is back.", "Hello"]


async def test_where_nothing_can_be_taken_away_it_is_finished_in_the_same_message() -> None:
    desk = DeliveryHarness(ToyPlatform(FINDS))
    desk.platform.shown["m1"] = ("c1", "Hel ▌")
    await desk.enqueue(replace(begun(), text="Hel ▌", sent=("m1",)))
    await desk.enqueue(outgoing("reply:t1", "Hello", turn=TURN))
    await desk.settled()
    assert desk.platform.texts() == ["Hello"]
    await desk.stop()


async def test_a_growing_answer_that_a_stop_leaves_unfinished_promises_nothing(desk: DeliveryHarness) -> None:
    await shown_for(desk, 1)
    assert desk.platform.texts() == ["Hel ▌"]
    await desk.settled()
    assert desk.platform.texts() == ["Hel"]
    [left] = desk.journal.engine.outbox()
    assert not left.final


async def test_an_answer_that_comes_before_the_outbox_was_read_knows_what_was_shown_of_it(
    desk: DeliveryHarness,
) -> None:
    await desk.stop()
    half = replace(begun(), text="Hel ▌", sent=("m1",))
    desk.platform.shown["m1"] = ("c1", "Hel ▌")
    desk.journal.engine.commit([(Enqueue(outgoing=half),)])
    desk.start()
    final = outgoing("reply:t1", "Hello", turn=TURN)
    desk.journal.engine.commit([(Enqueue(outgoing=final),)])
    desk.ref.tell(Deliveries(outgoing=(final,)))
    await desk.settled()
    assert desk.platform.texts() == ["Hello"]


async def test_deleted_message_is_sent_again(desk: DeliveryHarness) -> None:
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=replace(outgoing("a", "hello"), sent=("m9",))),)])
    desk.start()
    await desk.settled()
    assert desk.platform.texts() == ["hello"]


async def test_without_edits_nothing_is_shown_before_its_final_form() -> None:
    desk = DeliveryHarness(ToyPlatform(Abilities()))
    desk.ref.tell(Deliveries(outgoing=(begun(),)))
    await until(lambda: desk.hub.watchers == 1)
    desk.hub.publish(TextDelta(session=SessionId("s"), turn=TURN, text="Hel"))
    await desk.enqueue(outgoing("reply:t1", "Hello", turn=TURN))
    await desk.settled()
    assert desk.platform.texts() == ["Hello"]
    await desk.stop()


def answered(text: str = "which? → red", **more: Any) -> OutboxMessage:
    return outgoing("answered", text, amends="question", **more)


async def test_an_amendment_changes_what_was_said_and_is_no_message(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("question", "which?"), answered())
    await desk.settled()
    assert desk.platform.texts() == ["which? → red"]
    assert desk.journal.engine.outbox() == []
    await desk.enqueue(answered("which? → red", chat="elsewhere"))  # as after a kill before it was noted
    await desk.settled()
    assert desk.platform.texts() == ["which? → red"]
    assert desk.platform.texts("elsewhere") == []


async def test_an_amendment_that_waited_for_a_restart_is_made(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("question", "which?"))
    await desk.settled()
    await desk.stop()
    desk.journal.engine.commit([(Enqueue(outgoing=answered()),)])
    desk.start()
    await until(lambda: desk.platform.texts() == ["which? → red"])
    await desk.settled()
    assert desk.platform.said == 1


@pytest.mark.parametrize("problem", [DeliveryError("gone", gone=True), DeliveryError("too old", refused=True)])
async def test_an_amendment_that_cannot_be_made_is_let_go(desk: DeliveryHarness, problem: DeliveryError) -> None:
    await desk.enqueue(outgoing("question", "which?"))
    await desk.settled()
    desk.platform.problems.append(problem)
    await desk.enqueue(answered(), outgoing("other", "of nothing that was said", amends="nothing"))
    await desk.settled()
    assert desk.platform.texts() == ["which?"]
    assert desk.journal.engine.outbox() == []
    assert desk.journal.engine.dead_letters() == []


async def test_an_amendment_makes_no_more_messages_than_there_are(desk: DeliveryHarness) -> None:
    desk.platform.longest = 6
    await desk.enqueue(outgoing("question", "which?"), answered())
    await desk.settled()
    assert desk.platform.texts() == ["which?"]
    assert desk.platform.edits == [("m1", "which?")]  # and with it the buttons went


async def test_messages_for_a_platform_that_is_not_configured_wait(desk: DeliveryHarness) -> None:
    await desk.enqueue(replace(outgoing("a", "hello"), place=replace(PLACE, platform="other")))
    await desk.settled()
    assert [each.id for each in desk.journal.engine.outbox()] == ["a"]


async def test_files_follow_the_text_and_each_is_confirmed(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("a", "look", files=("/m/one.txt", "/m/two.txt")))
    await desk.settled()
    assert desk.platform.texts() == ["look", "</m/one.txt>", "</m/two.txt>"]
    sent = desk.journal.engine.sent("a")
    assert sent is not None
    assert sent.messages == ("m1", "m2", "m3")


async def test_a_file_alone_needs_no_text(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("a", "", files=("/m/one.txt",)))
    await desk.settled()
    assert desk.platform.texts() == ["</m/one.txt>"]


async def test_a_file_that_is_not_there_is_a_line_in_the_chat(desk: DeliveryHarness) -> None:
    await desk.enqueue(outgoing("a", "", files=("/m/missing.txt", "/m/two.txt")))
    await desk.settled()
    assert desk.platform.texts() == [
        "(The file missing.txt could not be sent: it is not there any more.)",
        "</m/two.txt>",
    ]


async def test_where_no_files_can_be_sent_it_is_said(desk: DeliveryHarness) -> None:
    desk.platform.abilities = Abilities()
    await desk.enqueue(outgoing("a", "", files=("/m/one.txt",)))
    await desk.settled()
    assert desk.platform.texts() == ["(The file one.txt could not be sent: no files can be sent on toy.)"]


async def test_a_file_that_may_have_arrived_is_sent_again_marked(desk: DeliveryHarness) -> None:
    desk.platform.problems = [DeliveryError("lost", arrived_perhaps=True, retry_after_s=0.01)]
    await desk.enqueue(outgoing("a", "", files=("/m/one.txt",)))
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.platform.texts() == ["</m/one.txt>", f"{REPEATED.strip()}</m/one.txt>"]


async def test_after_a_death_between_two_files_the_text_and_the_first_stay(desk: DeliveryHarness) -> None:
    message = outgoing("a", "look", files=("/m/one.txt", "/m/two.txt"), sent=("m1", "m2"))
    await desk.enqueue(message)
    await desk.settled()
    assert desk.platform.texts() == ["</m/two.txt>"]
    assert desk.platform.edits == []
