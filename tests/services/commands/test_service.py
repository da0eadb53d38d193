"""Slash commands carried out on real sessions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermes.domain.access.role import Role
from hermes.domain.errors import StorageFullError
from hermes.domain.ids import InboundKey, SessionId, SessionKey
from hermes.domain.session.state import Phase, Preferences
from hermes.domain.source import Source
from hermes.domain.turn.tool_call import Call, Gate, Verdict
from hermes.services.commands.registry import Parsed, parse
from hermes.services.commands.reply import CommandCaller
from tests.services.commands.harness import ANN, BOB, CommandHarness, said, world
from tests.support.fakes import process_view
from tests.support.waiting import until

ANNS = "agent:main:telegram:dm:ann"
BOBS = "agent:main:telegram:dm:bob"
DANGEROUS = Call(
    id="c1",
    name="terminal",
    summary="rm -r build",
    gate=Gate(verdict=Verdict.ASK, reason="it deletes a directory", rules=("delete",)),
)
QUESTION = Call(id="c2", name="clarify", question="Which one?", choices=("red", "blue"))


async def waiting_for_leave(here: CommandHarness, call: Call = DANGEROUS) -> None:
    await here.say("clean up", "s")
    await here.answer("", call)
    assert (await here.session("s")).phase is Phase.WAITING


# ---------------------------------------------------------------- beginnings and ends


async def test_new_ends_the_conversation_and_begins_one_with_a_title() -> None:
    async with world() as here:
        old = await here.talk("a", key=ANNS, source=ANN)
        reply = await here.command("/new  Trip to\nRome", key=ANNS, source=ANN)
        assert reply.session is not None
        assert reply.session != old
        assert f"/resume {old}" in reply.text
        fresh = await here.session(reply.session)
        assert (fresh.preferences.title, fresh.parent, fresh.owner) == ("Trip to Rome", old, "ann")
        assert (await here.say("b", key=ANNS, source=ANN)).session == reply.session
        assert list((await here.next_thought()).job.messages) == [said("b")]


async def test_new_says_what_the_earlier_one_left_running() -> None:
    async with world() as here:
        await here.talk("a", "s")
        here.processes.known = {"proc_a": process_view("proc_a"), "proc_b": process_view("proc_b", ended_at=1.0)}
        reply = await here.command("/new now", "s")
        assert "A background process of the previous conversation still runs: /processes" in reply.text


async def test_new_asks_first_while_background_processes_run() -> None:
    async with world() as here:
        await here.talk("a", key=ANNS, source=ANN)
        old = await here.desk.bound(SessionKey(ANNS))
        assert old is not None
        here.processes.known = {"proc_a": replace(process_view("proc_a"), session=old)}
        for text in ("/new", "/reset Trip", "/new no"):
            reply = await here.command(text, key=ANNS, source=ANN)
            assert reply.session is None
            assert (await here.session(old)).phase is Phase.IDLE
        reply = await here.command("/new Trip", key=ANNS, source=ANN)
        assert reply.choices == ("yes, Trip", "no")
        reply = await here.command(f"/new {reply.choices[0]}", key=ANNS, source=ANN)
        assert reply.session is not None
        assert (await here.session(reply.session)).preferences.title == "Trip"
        assert (await here.session(reply.session)).parent == old


async def test_new_does_not_ask_without_background_processes() -> None:
    async with world() as here:
        await here.talk("a", "s")
        reply = await here.command("/new Now or never", "s")
        assert reply.session is not None
        assert (await here.session(reply.session)).preferences.title == "Now or never"
        assert (await here.command("/new no", reply.session)).session is None, "a button that was pressed late"


async def test_new_stops_the_turn_that_runs() -> None:
    async with world() as here:
        await here.say("a", "s")
        work = await here.next_thought()
        reply = await here.command("/reset", "s")
        assert work.cancelled
        assert "was stopped" in reply.text
        assert (await here.say("b", "s")).session == reply.session, "the old id leads to the new session"


async def test_a_choice_can_come_before_the_first_word() -> None:
    async with world() as here:
        reply = await here.command("/model toy-2", key=ANNS, source=ANN)
        assert reply.session is not None
        assert (await here.say("a", key=ANNS, source=ANN)).session == reply.session
        assert (await here.next_thought()).job.preferences.model == "toy-2"


async def test_preference_after_the_end_applies_to_the_next_session() -> None:
    async with world() as here:
        await here.talk("a", key=ANNS, source=ANN)
        old = await here.desk.bound(SessionKey(ANNS))
        assert old is not None
        await here.desk.end(old, "over")
        reply = await here.command("/title Next", key=ANNS, source=ANN)
        assert reply.session not in (None, old)
        assert await here.desk.bound(SessionKey(ANNS)) == reply.session


# ---------------------------------------------------------------- the turn in flight


async def test_stop_ends_what_runs_and_drops_what_waits() -> None:
    async with world() as here:
        await here.say("a", "s")
        work = await here.next_thought()
        await here.say("b", "s")
        reply = await here.command("/stop", "s")
        assert work.cancelled
        assert reply.text == "Stopped. 1 queued message was dropped."
        session = await here.session("s")
        assert (session.phase, session.turn, session.queue) == (Phase.IDLE, None, ())
        assert (await here.command("/stop", "s")).text == "Nothing is running."


@pytest.mark.parametrize("text", ["/retry", "/undo", "/compress", "/branch"])
async def test_what_needs_rest_says_so_while_a_turn_runs(text: str) -> None:
    async with world() as here:
        await here.say("a", "s")
        reply = await here.command(text, "s")
        assert not reply.ok
        assert reply.text == "A turn is running: wait, or /stop it first."


@pytest.mark.parametrize(
    "text",
    [
        "/status",
        "/why",
        "/usage",
        "/help",
        "/whoami",
        "/processes",
        "/yolo on",
        "/model toy-2",
        "/title x",
        "/busy steer",
    ],
)
async def test_others_act_while_a_turn_runs(text: str) -> None:
    async with world() as here:
        await here.say("a", "s")
        assert (await here.command(text, "s")).ok


async def test_queue_waits_for_the_turn_and_starts_when_there_is_none() -> None:
    async with world() as here:
        first = await here.command("/queue a", "s0")
        assert first.receipt is not None
        assert (first.receipt.session, first.receipt.handling) == ("s0", "started")
        await here.answer("A")
        await here.say("a", "s")
        reply = await here.command('/queue say "hi"', "s")
        assert reply.receipt is not None
        assert (reply.receipt.handling, reply.receipt.position) == ("queued", 1)
        await here.answer("A")
        await here.answer("B")
        assert await here.transcript("s") == ["a", "A", 'say "hi"', "B"]
        reply = await here.command("/q once more", "s")
        assert reply.receipt is not None
        assert reply.receipt.handling == "started"
        assert not (await here.command("/queue", "s")).ok


async def test_a_first_message_can_be_queued_under_a_key() -> None:
    async with world() as here:
        reply = await here.command("/queue a", key=ANNS, source=ANN)
        assert reply.receipt is not None
        assert reply.session == reply.receipt.session == await here.desk.bound(SessionKey(ANNS))


async def test_the_same_update_twice_is_queued_once() -> None:
    async with world() as here:
        await here.talk("a", key=ANNS, source=ANN)
        parsed = parse("/queue b")
        assert isinstance(parsed, Parsed)
        caller = CommandCaller(source=ANN, key=SessionKey(ANNS), inbound=InboundKey("telegram:7"))
        first = await here.commands.run(parsed, caller)
        again = await here.commands.run(parsed, caller)
        assert first.receipt is not None
        assert again.receipt is not None
        assert (again.receipt.turn, again.receipt.duplicate) == (first.receipt.turn, True)


async def test_steer_reaches_the_running_turn_with_its_tool_results() -> None:
    async with world() as here:
        await here.say("a", "s")
        await here.answer("", Call(id="c1", name="look"))
        reply = await here.command("/steer the other one", "s")
        assert reply.receipt is not None
        assert reply.receipt.handling == "steering"
        await here.finish_tool()
        shown = [json.loads(each)["content"] for each in (await here.next_thought()).job.messages]
        assert shown[-1] == "the other one"


@pytest.mark.parametrize(
    ("text", "told", "granted"),
    [
        ("/approve", "Approved: rm -r build.", ()),
        ("/approve session", "Approved for the rest of this conversation: rm -r build.", ("delete",)),
        ("/approve ALWAYS", "Approved from now on, in every conversation: rm -r build.", ()),
    ],
)
async def test_approve_lets_the_call_run(text: str, told: str, granted: tuple[str, ...]) -> None:
    async with world() as here:
        await waiting_for_leave(here)
        reply = await here.command(text, "s")
        assert reply.text == told
        await until(lambda: bool(here.agent.acts))
        assert (await here.session("s")).grants == granted


async def test_deny_does_not_let_it_run() -> None:
    async with world() as here:
        await waiting_for_leave(here)
        assert (await here.command("/deny", "s")).text == "Denied: rm -r build."
        await here.next_thought()
        assert not here.agent.acts
        assert (await here.command("/deny", "s")).text == "No tool call waits for permission."
        assert not (await here.command("/approve for ever", "s")).ok


async def test_question_cannot_be_approved_and_queue_does_not_answer_it() -> None:
    async with world() as here:
        await waiting_for_leave(here, QUESTION)
        for text in ("/approve", "/deny", "/queue red"):
            reply = await here.command(text, "s")
            assert not reply.ok
            assert "Which one?" in reply.text
            assert "2. blue" in reply.text
        assert (await here.session("s")).phase is Phase.WAITING


async def test_stop_breaks_a_pending_approval() -> None:
    async with world() as here:
        await waiting_for_leave(here)
        await here.command("/stop", "s")
        assert (await here.session("s")).phase is Phase.IDLE


async def test_only_admins_approve_and_end_all_questions() -> None:
    async with world() as here:
        shared = "agent:main:telegram:group:1:7"
        receipt = await here.say("a", key=shared, source=ANN)
        await here.answer("", DANGEROUS)
        for text, who in (("/approve", BOB), ("/yolo on", BOB), ("/approve", ANN), ("/yolo on", ANN)):
            reply = await here.command(text, key=shared, source=who)
            assert not reply.ok
            assert "for the owner and the admins" in reply.text
        assert "Another user started it" in (await here.command("/whoami", key=shared, source=BOB)).text
        assert not (await here.session(receipt.session)).preferences.yolo
        assert (await here.command("/approve", key=shared, source=replace(BOB, role=Role.ADMIN))).ok


# ---------------------------------------------------------------- taking back


async def test_undo_takes_back_turns_and_says_what_is_left() -> None:
    async with world() as here:
        for text in ("a", "b", "c"):
            await here.talk(text, "s")
        reply = await here.command("/undo 2", "s")
        assert reply.text == "The last 2 turns were undone. The last message is now: “about a”"
        assert await here.transcript("s") == ["a", "about a"]
        reply = await here.command("/undo 5", "s")
        assert not reply.ok
        assert "no 5 turns" in reply.text
        assert (await here.command("/undo", "s")).text.endswith("The conversation is empty.")
        assert not (await here.command("/undo many", "s")).ok
        assert not (await here.command("/undo 0", "s")).ok


async def test_retry_has_the_last_message_answered_again() -> None:
    async with world() as here:
        await here.talk("a", "s")
        await here.talk("b", "s")
        reply = await here.command("/retry", "s")
        assert reply.receipt is not None
        await here.answer("better")
        assert await here.transcript("s") == ["a", "about a", "b", "better"]
        assert not (await here.command("/retry", key=ANNS, source=ANN)).ok


async def test_stop_ends_a_summary_and_drops_what_waits_for_it() -> None:
    async with world() as here:
        await here.talk("a", "s")
        await here.desk.compress(SessionId("s"))
        await until(lambda: bool(here.agent.summaries))
        await here.say("b", "s")
        reply = await here.command("/stop", "s")
        assert "summary" in reply.text
        assert "1 queued message" in reply.text
        assert here.agent.summaries[0].cancelled
        session = await here.session("s")
        assert (session.compressing, session.queue, session.turn) == ("", (), None)


async def test_compression_undo_and_retry_go_across_its_boundary() -> None:
    async with world() as here:
        for text in ("a", "b", "c"):
            await here.talk(text, "s")
        reply = await here.command("/compress the weather", "s")
        assert "focus on “the weather”" in reply.text
        await until(lambda: bool(here.agent.summaries))
        assert here.agent.summaries[0].job.focus == "the weather"
        assert "being compressed" in (await here.command("/undo", "s")).text
        await here.finish_summary(said("[Summary of the earlier part: a and b]"), said("c"))
        reply = await here.command("/retry", "s")
        assert reply.receipt is not None
        assert reply.session == reply.receipt.session != "s"
        await here.answer("better")
        assert (await here.transcript("s"))[-2:] == ["c", "better"]
        reply = await here.command("/undo 2", "s")
        assert reply.ok, reply.text
        assert reply.session is not None
        assert await here.transcript(reply.session) == ["a", "about a"]
        assert await here.transcript("s") == ["a", "about a"], "the first id leads there too"


async def test_branch_goes_on_in_a_copy_and_leaves_the_original_alone() -> None:
    async with world() as here:
        old = await here.talk("a", key=ANNS, source=ANN)
        await here.command("/title Rome", key=ANNS, source=ANN)
        reply = await here.command("/branch", key=ANNS, source=ANN)
        assert reply.session is not None
        assert (await here.session(reply.session)).preferences.title == "Rome (branch)"
        assert await here.talk("b", key=ANNS, source=ANN) == reply.session
        assert await here.transcript(old) == ["a", "about a"]
        assert await here.transcript(reply.session) == ["a", "about a", "b", "about b"]


async def test_branch_of_a_resumed_session_keeps_the_key_of_its_chat() -> None:
    async with world() as here:
        group, direct = "agent:main:telegram:group:1:ann", ANNS
        old = await here.talk("a", key=group, source=ANN)
        await here.talk("b", key=direct, source=ANN)
        await here.command(f"/resume {old}", key=direct, source=ANN)
        reply = await here.command("/branch copy", key=direct, source=ANN)
        assert await here.desk.bound(SessionKey(direct)) == reply.session
        assert await here.desk.bound(SessionKey(group)) == old


# ---------------------------------------------------------------- earlier conversations


async def test_resume_brings_back_what_new_has_ended() -> None:
    async with world() as here:
        old = await here.talk("a", key=ANNS, source=ANN)
        await here.command("/new", key=ANNS, source=ANN)
        await here.talk("b", key=ANNS, source=ANN)
        reply = await here.command(f"/resume {old}", key=ANNS, source=ANN)
        assert reply.session == old
        assert await here.talk("c", key=ANNS, source=ANN) == old
        assert await here.transcript(old) == ["a", "about a", "c", "about c"]
        assert "already in this conversation" in (await here.command(f"/resume {old}", key=ANNS, source=ANN)).text


async def test_resume_without_a_key_reopens_the_session() -> None:
    async with world() as here:
        await here.talk("a", "old")
        await here.talk("b", "other")
        reply = await here.command("/resume old", "other")
        assert (reply.ok, reply.session) == (True, "old")
        await here.desk.end(SessionId("old"), "over")
        assert (await here.command("/resume old", "other")).session == "old"
        assert (await here.session("old")).phase is Phase.IDLE


async def test_resume_by_number_means_the_list_that_was_shown() -> None:
    async with world() as here:
        first = await here.talk("a", key=ANNS, source=ANN)
        await here.command("/new", key=ANNS, source=ANN)
        second = await here.talk("b", key=ANNS, source=ANN)
        listed = await here.command("/sessions", key=ANNS, source=ANN)
        assert [row[-1] for row in listed.rows[1:]] == [second, first]
        assert "(this one)" in listed.text
        await here.talk("c", "elsewhere", source=ANN)
        assert (await here.command("/resume 2", key=ANNS, source=ANN)).session == first
        assert not (await here.command("/resume 9", key=ANNS, source=ANN)).ok


async def test_a_conversation_without_a_title_is_listed_by_how_it_began() -> None:
    async with world() as here:
        await here.talk("where is Oslo?", "s1")
        await here.talk("what is a tax?", "s2")
        await here.command("/title Taxes", "s2")
        listed = await here.command("/sessions", "s2")
        assert [row[1] for row in listed.rows[1:]] == ["Taxes", "where is Oslo?"]
        assert "Resumed: where is Oslo?, session s1" in (await here.command("/resume s1", "s2")).text


async def test_a_number_without_a_list_means_the_list_of_now() -> None:
    async with world() as here:
        await here.talk("a", "s1")
        await here.talk("b", "s2")
        assert (await here.command("/resume 2", "s2")).session == "s1"


async def test_resume_by_title_takes_the_match_and_asks_if_there_are_several() -> None:
    async with world() as here:
        for session, title in (("s1", "Trip to Rome"), ("s2", "Trip to Oslo"), ("s3", "Taxes")):
            await here.talk("a", session)
            await here.command(f"/title {title}", session)
        assert (await here.command("/resume taxes", "s1")).session == "s3"
        assert (await here.command("/resume oslo", "s1")).session == "s2"
        several = await here.command("/resume trip", "s3")
        assert not several.ok
        assert [row[1] for row in several.rows[1:]] == ["Trip to Oslo", "Trip to Rome"]
        assert (await here.command("/resume 2", "s3")).session == "s1"
        assert "no conversation with" in (await here.command("/resume nothing", "s1")).text


async def test_people_see_their_own_sessions_and_the_owner_all() -> None:
    async with world() as here:
        anns = await here.talk("a", key=ANNS, source=ANN)
        await here.command("/title Secret", key=ANNS, source=ANN)
        bobs = await here.talk("b", key=BOBS, source=BOB)
        listed = await here.command("/sessions", key=BOBS, source=BOB)
        assert [row[-1] for row in listed.rows[1:]] == [bobs]
        for wanted in (anns, "Secret", "2"):
            reply = await here.command(f"/resume {wanted}", key=BOBS, source=BOB)
            assert not reply.ok
            assert "Secret" not in reply.text.replace("“Secret”", "")
        elsewhere = Source(platform="slack", user="ann")
        assert (await here.command("/sessions", source=elsewhere)).rows == ()
        assert [row[-1] for row in (await here.command("/sessions")).rows[1:]] == [bobs, anns]
        assert (await here.command(f"/resume {anns}")).session == anns


async def test_a_chat_without_users_sees_its_own_conversations_only() -> None:
    async with world() as here:
        nobody = Source(platform="hook")
        one = await here.talk("a", key="agent:main:hook:dm:1", source=nobody)
        await here.talk("b", key="agent:main:hook:dm:2", source=nobody)
        listed = await here.command("/sessions", key="agent:main:hook:dm:1", source=nobody)
        assert [row[-1] for row in listed.rows[1:]] == [one]


async def test_compressed_conversation_is_listed_once_and_resumed_by_any_id() -> None:
    async with world() as here:
        old = await here.talk("a", key=ANNS, source=ANN)
        await here.command("/compress", key=ANNS, source=ANN)
        await here.finish_summary(said("[Summary of the earlier part]"))
        child = await here.desk.bound(SessionKey(ANNS))
        await here.command("/new", key=ANNS, source=ANN)
        listed = await here.command("/sessions 50", key=ANNS, source=ANN)
        assert [row[-1] for row in listed.rows[1:]] == [child]
        assert (await here.command(f"/resume {old}", key=ANNS, source=ANN)).session == child


async def test_resume_is_refused_while_a_turn_runs() -> None:
    async with world() as here:
        await here.say("a", key=ANNS, source=ANN)
        assert "wait, or /stop it" in (await here.command("/resume x", key=ANNS, source=ANN)).text


async def test_no_more_than_asked_are_listed() -> None:
    async with world() as here:
        for number in range(4):
            await here.talk("a", f"s{number}")
        assert len((await here.command("/sessions 2")).rows) == 3
        assert len((await here.command("/resume")).rows) == 5
        assert not (await here.command("/sessions 99")).ok


# ---------------------------------------------------------------- choices


async def test_model_buttons_always_include_default() -> None:
    async with world() as here:
        here.models = [f"toy-{number}" for number in range(99)]
        assert list((await here.command("/model", "s")).choices)[:2] == ["default", "toy-0"]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("/model TOY-2", "model", "toy-2"),
        ("/model some/other:1", "model", "some/other:1"),
        ("/personality Teacher", "personality", "teacher"),
        ("/personality none", "personality", "none"),
        ("/reasoning high", "reasoning", "high"),
        ("/reasoning show", "show_reasoning", True),
        ("/reasoning hide", "show_reasoning", False),
        ("/busy interrupt", "busy", "interrupt"),
        ("/yolo", "yolo", True),
        ("/title My trip", "title", "My trip"),
    ],
)
async def test_a_choice_is_kept_with_the_conversation(text: str, field: str, value: str | bool) -> None:
    async with world() as here:
        await here.talk("a", "s")
        reply = await here.command(text, "s")
        assert (reply.ok, reply.session) == (True, None)
        assert getattr((await here.session("s")).preferences, field) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/personality techer", "did you mean teacher?"),
        ("/reasoning hgih", "did you mean high?"),
        ("/busy steeer", "did you mean steer?"),
        ("/yolo maybe", "neither on nor off"),
        ("/model two words", "not a valid model name"),
    ],
)
async def test_a_choice_that_is_none_is_refused_with_advice(text: str, told: str) -> None:
    async with world() as here:
        await here.talk("a", "s")
        before = await here.session("s")
        reply = await here.command(text, "s")
        assert not reply.ok
        assert told in reply.text
        assert await here.session("s") == before


async def test_preference_command_shows_the_value_and_default_resets_it() -> None:
    async with world() as here:
        await here.talk("a", "s")
        for name, value in (("model", "toy-2"), ("personality", "concise"), ("reasoning", "low"), ("busy", "steer")):
            assert (await here.command(f"/{name}", "s")).ok
            await here.command(f"/{name} {value}", "s")
            assert value in (await here.command(f"/{name}", "s")).text
            await here.command(f"/{name} default", "s")
            assert getattr((await here.session("s")).preferences, name) == ""
        await here.command("/yolo", "s")
        await here.command("/yolo", "s")
        assert not (await here.session("s")).preferences.yolo
        assert "no title" in (await here.command("/title", "s")).text


async def test_a_model_that_cannot_be_used_is_refused_with_the_reason() -> None:
    async with world() as here:
        here.model_problems["anthropic:claude"] = "ANTHROPIC_API_KEY is not set"
        await here.talk("a", "s")
        reply = await here.command("/model anthropic:claude", "s")
        assert (reply.ok, reply.text) == (False, "ANTHROPIC_API_KEY is not set.")
        assert (await here.command("/model groq:llama", "s")).ok
        assert (await here.session("s")).preferences.model == "groq:llama"


async def test_reasoning_of_the_last_answer_is_shown_on_request() -> None:
    async with world() as here:
        await here.talk("a", "s")
        assert "no reasoning" in (await here.command("/reasoning show", "s")).text
        await here.say("b", "s")
        await here.answer("the answer", reasoning="because of that")
        assert "because of that" in (await here.command("/reasoning show", "s")).text


async def test_an_unknown_model_is_taken_with_a_doubt() -> None:
    async with world() as here:
        await here.talk("a", "s")
        assert "did you mean toy-1?" in (await here.command("/model toy-11", "s")).text


# ---------------------------------------------------------------- knowledge


async def test_status_is_compact_and_complete() -> None:
    async with world() as here:
        await here.talk("a", "s")
        await here.command("/title Rome", "s")
        await here.command("/reasoning low", "s")
        here.now += 120
        assert (await here.command("/status", "s")).text.splitlines() == [
            "Rome, session s",
            "Idle for 2 min, model toy-1",
            "Context 110 of 1,000 tokens (11%)",
            "1 turn, 100 tokens in and 10 out, $0.2500",
            "Chosen: reasoning low",
            "Automatic resets are off here.",
        ]


async def test_status_tells_what_waits() -> None:
    async with world() as here:
        await waiting_for_leave(here)
        await here.say("b", "s")
        text = (await here.command("/status", "s")).text
        assert "1 message waiting" in text
        assert "Permission needed: rm -r build (it deletes a directory). /approve or /deny" in text


async def test_usage_tells_tokens_cost_context_turns_and_time() -> None:
    async with world() as here:
        await here.talk("a", "s")
        here.now += 7200
        await here.say("b", "s")
        text = (await here.command("/usage", "s")).text
        for line in (
            "Turns      1 in 2 h",
            "40 of them cached (40%)",
            "$0.2500",
            "110 of 1,000",
            "This turn",
        ):
            assert line in text


async def test_insights_sum_by_day_and_model() -> None:
    async with world() as here:
        await here.talk("a", "s")
        here.now += 86400
        await here.talk("b", "s")
        await here.talk("c", key=ANNS, source=ANN)
        reply = await here.command("/insights", "s")
        assert reply.text.splitlines()[0] == "The last 30 days (UTC): 3 turns, 300 tokens in and 30 out, $0.7500"
        assert [row[:3] for row in reply.rows[1:]] == [("2027-01-15", "toy-1", "1"), ("2027-01-16", "toy-1", "2")]
        for wish in ("1", "--days 1", "--days=1", "1 day"):
            reply = await here.command(f"/insights {wish}", "s")
            assert reply.text.startswith("The last 1 day (UTC): 2 turns"), wish
        assert not (await here.command("/insights", key=ANNS, source=ANN)).ok, "it tells of others"
        admin = replace(ANN, role=Role.ADMIN)
        assert (await here.command("/insights", key=ANNS, source=admin)).text.startswith(
            "The last 30 days (UTC): 1 turn,"
        )
        assert "No usage" in (await here.command("/insights", source=replace(admin, platform="slack"))).text
        assert not (await here.command("/insights 1000", "s")).ok


async def test_what_there_is_to_know_before_the_first_word() -> None:
    async with world() as here:
        for text in ("/status", "/why", "/usage"):
            assert "no conversation here yet" in (await here.command(text, key=ANNS, source=ANN)).text
        for text in ("/retry", "/undo", "/compress", "/branch"):
            assert not (await here.command(text, key=ANNS, source=ANN)).ok
        assert (await here.command("/stop", key=ANNS, source=ANN)).text == "Nothing is running."
        assert (await here.command("/sessions", key=ANNS, source=ANN)).text == "There are no earlier conversations."


async def test_start_greets_and_help_hides_commands_beyond_the_role() -> None:
    async with world() as here:
        greeting = (await here.command("/start from-a-link", key=ANNS, source=ANN)).text
        assert greeting.startswith("Hello!")
        assert "/help lists all" in greeting
        assert len(greeting.splitlines()) < 10
        told = (await here.command("/help", key=ANNS, source=ANN)).text
        assert "/new" in told
        assert not any(word in told for word in ("/restart", "/grants", "/sethome"))
        told = (await here.command("/help", "s")).text
        assert "/restart" in told
        assert "/grants" in told


async def test_empty_session_is_reported_and_titled_by_the_first_message() -> None:
    async with world() as here:
        await here.talk("[Earlier in this thread:\n@UANN: We should deploy]\n\nShall we?", key=ANNS, source=ANN)
        assert "1. Shall we? (this one)" in (await here.command("/sessions", key=ANNS, source=ANN)).text
        await here.command("/new", key=ANNS, source=ANN)
        told = (await here.command("/why", key=ANNS, source=ANN)).text
        assert "It has no messages yet." in told.splitlines()


async def test_why_whoami_processes_and_help_answer() -> None:
    async with world() as here:
        await here.talk("a", "s")
        assert "has been idle since" in (await here.command("/why", "s")).text
        assert "the owner" in (await here.command("/whoami", "s")).text
        assert "user ann" in (await here.command("/whoami", key=ANNS, source=ANN)).text
        assert "no background processes" in (await here.command("/ps", "s")).text
        assert "/undo [n]" in (await here.command("/help undo", "s")).text


async def test_processes_are_listed_and_ended_by_number_or_id() -> None:
    async with world() as here:
        await here.talk("a", "s")
        here.processes.known = {name: process_view(name) for name in ("proc_a", "proc_b")}
        listed = (await here.command("/processes", "s")).text
        assert "1. proc_a: make all is explained" in listed
        assert "2. proc_b" in listed
        assert (await here.command("/processes kill 2", "s")).text == "proc_b was killed: make all"
        assert "has already ended" in (await here.command("/processes kill proc_b", "s")).text
        assert here.processes.known["proc_b"].detail == "asked for with /processes"
        assert (await here.command("/ps kill proc_a", "s")).ok
        for wrong in ("/processes kill 3", "/processes kill proc_c", "/processes kill", "/processes stop 1"):
            assert not (await here.command(wrong, "s")).ok


async def test_other_chat_member_cannot_kill_processes() -> None:
    async with world() as here:
        await here.talk("a", key=ANNS, source=ANN)
        [session] = await here.desk.recent(1)
        here.processes.known = {"proc_a": process_view("proc_a", session.id)}
        assert not (await here.command("/processes kill 1", key=ANNS, source=BOB)).ok
        assert here.processes.known["proc_a"].ended_at is None


# ---------------------------------------------------------------- what goes wrong


async def test_unknown_command_is_answered_and_not_forwarded() -> None:
    async with world() as here:
        await here.talk("a", "s")
        reply = await here.command("/sttaus", "s")
        assert not reply.ok
        assert "/status" in reply.text
        assert not here.agent.thoughts


async def test_trouble_becomes_a_reply() -> None:
    async with world() as here:
        assert "There is no conversation here yet" in (await here.command("/status", "gone")).text
        await here.talk("a", "s")
        here.journal.refuse_with = StorageFullError("the disk is full.")
        reply = await here.command("/title x", "s")
        assert (reply.ok, reply.text) == (False, "/title failed: the disk is full.")


async def test_caller_with_an_earlier_id_gets_the_current_session() -> None:
    async with world() as here:
        await here.talk("a", "s")
        fresh = (await here.command("/new", "s")).session
        assert (await here.command("/status", "s")).session == fresh


async def test_standing_grants_are_for_admins() -> None:
    async with world() as here:
        assert "for the owner and the admins" in (await here.command("/grants", key=ANNS, source=ANN)).text
        asked = parse("/grants")
        assert isinstance(asked, Parsed)
        admin = CommandCaller(source=replace(ANN, role=Role.ADMIN), key=SessionKey(ANNS))
        assert (await here.commands.run(asked, admin)).text == "There are no standing grants."


async def test_standing_grants_are_listed_and_withdrawn() -> None:
    async with world() as here:
        await here.talk("a", "s")
        assert (await here.command("/grants", "s")).text == "There are no standing grants."
        await here.desk.remember("grant:recursive-delete", b"1")
        assert "recursive-delete" in (await here.command("/grants", "s")).text
        assert (await here.command("/grants withdraw recursive-delete", "s")).ok
        assert not (await here.command("/grants withdraw recursive-delete", "s")).ok
        assert (await here.command("/grants", "s")).text == "There are no standing grants."


@pytest.mark.parametrize(
    ("command", "configured", "chosen", "unset"),
    [
        (
            "/busy",
            "waits for the end of the turn (queue, as configured)",
            "stops the turn and is answered instead (interrupt)",
            "(queue, as configured)",
        ),
        (
            "/reasoning",
            "effort is low (as configured)",
            "effort is high;",
            "effort is that of the model (as configured)",
        ),
        (
            "/personality",
            "personality is teacher (as configured)",
            "personality is concise.",
            "personality is none (as configured)",
        ),
    ],
)
async def test_command_without_argument_tells_the_value_in_force(
    command: str, configured: str, chosen: str, unset: str
) -> None:
    async with world() as here:
        assert unset in (await here.command(command, "s")).text
        here.configured = Preferences(busy="queue", reasoning="low", personality="teacher")
        assert configured in (await here.command(command, "s")).text
        choice = {"/busy": "interrupt", "/reasoning": "high", "/personality": "concise"}[command]
        await here.command(f"{command} {choice}", "s")
        assert chosen in (await here.command(command, "s")).text
