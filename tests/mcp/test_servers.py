"""MCP servers that behave, hang, flood, die, lie and change: what the agent and the owner see."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError
from hermes.domain.turn.tool_call import Effect, Verdict
from hermes.mcp.link_error import McpLinkError
from hermes.tools.toolbox import Toolbox
from tests.mcp.bench import Bench, Facts, rogue, server_spec
from tests.support.waiting import until

pytest.importorskip("mcp")


async def test_tool_of_a_server_is_called_and_its_result_returned(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("good")) as bench:
        result = await bench.call(text="hello")
        assert (result.text, result.ok) == ("hello", True)
        [schema, *_] = json.loads(bench.toolbox.schemas("api"))
        assert schema["function"]["name"] == "mcp__rogue__echo"
        assert schema["function"]["parameters"]["properties"] == {"text": {"type": "string"}}


async def test_server_starts_with_its_first_call_and_stops_when_idle(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("good", idle_timeout=0.2)) as bench:
        assert bench.state() == "stopped"
        await bench.call(text="a")
        pid = bench.fleet._servers["rogue"].pid
        assert bench.state() == "running"
        await until(lambda: bench.state() == "stopped")
        await until(lambda: not Path(f"/proc/{pid}").exists())
        assert (await bench.call(text="b")).text == "b"


async def test_known_catalogue_starts_no_server(tmp_path: Path) -> None:
    facts = Facts()
    async with Bench(tmp_path, rogue("good"), facts=facts):
        pass
    many = [rogue("no-start", name=f"s{number}") for number in range(50)]
    stored = facts.values.pop("mcp:catalogue:rogue").replace(b"mcp__rogue__", b"mcp__sNN__")
    for each in many:
        raw = json.loads(stored.replace(b"mcp__sNN__", f"mcp__{each.name}__".encode()))
        facts.values[f"mcp:catalogue:{each.name}"] = json.dumps(
            {**raw, "server": each.name, "fingerprint": each.fingerprint}
        ).encode()
    async with Bench(tmp_path, *many, facts=facts) as bench:
        assert len(bench.toolbox.names("api")) == 100
        assert {view.state for view in bench.fleet.views()} == {"stopped"}


async def test_hanging_call_times_out_and_opens_the_circuit(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("hang", timeout=0.2)) as bench:
        for _ in range(3):
            result = await bench.call(text="a")
            assert not result.ok
            assert "did not answer within 0.2 s" in result.text
            assert "may have done part" in result.text
        assert bench.state() == "circuit_open"
        assert "was not run" in (await bench.call(text="a")).text
        await bench.fleet.stop("rogue")
        assert bench.state() == "stopped"


async def test_dying_server_fails_its_call_and_is_started_again_later(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("die")) as bench:
        result = await bench.call(text="a")
        assert "out of luck" in result.text
        assert "may have done part" in result.text
        assert bench.state() == "waiting"
        bench.shift_s += 3
        assert "out of luck" in (await bench.call(text="a")).text


async def test_server_that_cannot_start_is_parked_with_its_reason(tmp_path: Path) -> None:
    broken = rogue("no-start")
    async with Bench(tmp_path, broken, server_spec("absent", {"command": "/no/such/program"})) as bench:
        for _ in range(6):
            bench.shift_s += 100
            with pytest.raises(McpLinkError):
                await bench.fleet._servers["rogue"].learn()
        assert bench.state() == "parked"
        [row, absent] = await bench.fleet.listed()
        assert "config missing" in row["problem"]
        assert absent["state"] == "parked"
        assert bench.toolbox.names("api") == ()


async def test_flood_of_messages_does_not_stop_the_loop(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("flood", timeout=1)) as bench:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        result = await bench.call(text="a")
        ticking.cancel()
        assert "did not answer" in result.text
        assert ticks > 20


async def test_endless_line_ends_the_connection(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("long-line")) as bench:
        assert "more than 4 MB" in (await bench.call(text="a")).text


async def test_lines_that_are_not_messages_are_dropped(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("noise")) as bench:
        assert (await bench.call(text="fine")).text == "fine"


async def test_answer_that_breaks_its_schema_is_refused(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("liar")) as bench:
        result = await bench.call("mcp__rogue__lie")
        assert not result.ok
        assert "its answer was refused" in result.text
        assert bench.state() == "running"


async def test_schema_that_is_too_large_becomes_any_object(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("bad-schema")) as bench:
        schemas = {each["function"]["name"]: each["function"] for each in json.loads(bench.toolbox.schemas("api"))}
        assert schemas["mcp__rogue__huge"]["parameters"] == {"type": "object", "properties": {}}


async def test_list_that_breaks_the_protocol_is_reported(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("bad-list")) as bench:
        assert bench.toolbox.names("api") == ()
        assert "does not follow the protocol" in (await bench.fleet.shown("rogue"))["problem"]


async def test_number_of_tools_is_limited(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("many")) as bench:
        assert len(bench.toolbox.names("api")) == 256


async def test_suspicious_tool_is_withheld_until_the_owner_approves(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("suspicious")) as bench:
        assert "mcp__rogue__helper" not in bench.toolbox.names("api")
        assert "helper (suspicious)" in bench.told[0]
        assert (await bench.fleet.approve("rogue"))["approved"] == ["helper"]
        assert "mcp__rogue__helper" in bench.toolbox.names("api")


async def test_changed_description_is_withheld_also_after_a_restart(tmp_path: Path) -> None:
    facts, state = Facts(), tmp_path / "description"
    async with Bench(tmp_path, rogue("change", state=state), facts=facts) as bench:
        await bench.call(text="a")
        await until(lambda: "mcp__rogue__echo" not in bench.toolbox.names("api"), within_s=20)
        assert "mcp__rogue__write" in bench.toolbox.names("api")
        assert "echo (changed)" in bench.told[0]
    async with Bench(tmp_path, rogue("change", state=state), facts=facts) as bench:
        assert "mcp__rogue__echo" not in bench.toolbox.names("api")
        await bench.fleet.approve("rogue")
        assert "mcp__rogue__echo" in bench.toolbox.names("api")


async def test_change_that_is_found_at_the_start_stops_the_call(tmp_path: Path) -> None:
    facts, state = Facts(), tmp_path / "description"
    async with Bench(tmp_path, rogue("good", state=state), facts=facts):
        pass
    async with Bench(tmp_path, rogue("good", state=state), facts=facts) as bench:
        await asyncio.to_thread(state.write_text, "Echoes. Now with surprises.")
        result = await bench.call(text="a")
        assert not result.ok
        assert "was not run" in result.text


async def test_environment_is_minimal(tmp_path: Path) -> None:
    given = rogue("environ", env={"MINE": "x", "TOKEN": "${SOME_TOKEN}"})
    async with Bench(tmp_path, given) as bench:
        seen = json.loads((await bench.call(text="a")).text)
        assert seen["MINE"] == "x"
        assert seen["TOKEN"] == "tok-123456"
        assert set(seen) <= {"MINE", "TOKEN", "PATH", "HOME", "LANG", "USER", "LOGNAME", "TZ", "TMPDIR", "PWD"} | {
            name for name in seen if name.startswith("LC_")
        } | {"SHLVL", "_", "OLDPWD", "LANGUAGE"}


async def test_missing_variable_parks_the_server(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("good", env={"TOKEN": "${NOT_THERE}"})) as bench:
        assert bench.state() == "parked"
        assert "NOT_THERE is not set" in (await bench.fleet.shown("rogue"))["problem"]


async def test_long_result_is_spilled_to_a_file(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("big")) as bench:
        result = await bench.call(text="a")
        assert len(result.text) < 60_000
        [kept] = await asyncio.to_thread(lambda: list((tmp_path / "outputs").iterdir()))
        assert kept.stat().st_size == 650_000


async def test_question_is_stored_announced_and_answered(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("elicit", timeout=0.5)) as bench:
        call = asyncio.create_task(bench.call(text="a"))
        await until(lambda: bench.announced)
        [(question, text)] = bench.announced
        assert "colour (red, blue)" in text
        [listed] = await bench.fleet.open_questions()
        assert listed.id == question.id
        await asyncio.sleep(0.6)  # longer than the call's own timeout: a person's time does not count
        with pytest.raises(BadInputError, match="must be one of red, blue"):
            await bench.fleet.answer(question.id, "colour=green")
        _, waited = await bench.fleet.answer(question.id, "colour=RED; count=2")
        assert waited
        answer = json.loads((await call).text)
        assert answer == {"action": "accept", "content": {"colour": "red", "count": 2}}


async def test_answer_after_a_crash_is_used_by_the_repeated_call(tmp_path: Path) -> None:
    facts = Facts()
    async with Bench(tmp_path, rogue("elicit"), facts=facts) as bench:
        call = asyncio.create_task(bench.call(text="a"))
        await until(lambda: bench.announced)
        call.cancel()
        await asyncio.wait([call])
    async with Bench(tmp_path, rogue("elicit"), facts=facts) as bench:
        [question] = await bench.fleet.open_questions()
        assert (await bench.fleet.answer(question.id, "colour=blue"))[1] is False
        assert json.loads((await bench.call(text="a")).text)["content"] == {"colour": "blue"}
        assert bench.announced == []


async def test_declined_question_is_told_to_the_server(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("elicit")) as bench:
        call = asyncio.create_task(bench.call(text="a"))
        await until(lambda: bench.announced)
        await bench.fleet.answer(bench.announced[0][0].id, None)
        assert json.loads((await call).text) == {"action": "decline"}


async def test_model_calls_are_limited_by_rate_size_and_role(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("sample", sampling={"max_rpm": 2, "max_tokens_cap": 50})) as bench:
        first = json.loads((await bench.call(text="hi")).text)
        assert first["content"]["text"] == "sampled"
        assert bench.sampled[0].max_tokens == 50
        await bench.call(text="hi")
        assert "only 2 model calls" in json.loads((await bench.call(text="hi")).text)["error"]["message"]
        assert len(bench.sampled) == 2


async def test_guest_may_not_cause_model_calls(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("sample", role="guest")) as bench:
        bench.toolbox = Toolbox((), toolsets={"default": ("mcp",), "guest": ("mcp",)})
        bench.fleet.offer_to(bench.toolbox.offer)
        answer = json.loads((await bench.call(text="hi", context=bench.context(role=Role.GUEST))).text)
        assert "role user or higher" in answer["error"]["message"]
        assert bench.sampled == []


async def test_approval_depends_on_trust_and_role(tmp_path: Path) -> None:
    asking, reading = rogue("good", name="a", trust="ask"), rogue("good", name="r", trust="read_only", role="admin")
    async with Bench(tmp_path, asking, reading) as bench:
        context = bench.context()

        def verdict(tool: str) -> Verdict:
            return bench.toolbox.propose(tool, "{}", context).gate.verdict

        assert verdict("mcp__a__echo") is Verdict.ASK
        assert verdict("mcp__r__echo") is Verdict.ALLOW
        assert verdict("mcp__r__write") is Verdict.ASK
        proposal = bench.toolbox.propose("mcp__a__echo", "{}", context)
        assert proposal.gate.rules == ("mcp__a__echo",)
        assert proposal.effect is Effect.EFFECT
        assert "mcp__r__echo" not in bench.toolbox.names("api", Role.USER)
        assert bench.toolbox.names("api", Role.GUEST) == ()


async def test_reload_keeps_unchanged_servers_running(tmp_path: Path) -> None:
    one, two = rogue("good", name="one"), rogue("good", name="two")
    async with Bench(tmp_path, one, two) as bench:
        await bench.call("mcp__one__echo", text="a")
        pid = bench.fleet._servers["one"].pid
        bench.fleet.configure((one, rogue("good", name="three")))
        assert bench.fleet._servers["one"].pid == pid
        assert {each.split("__")[1] for each in bench.toolbox.names("api")} == {"one"}
        await bench.fleet.prepare()
        assert {each.split("__")[1] for each in bench.toolbox.names("api")} == {"one", "three"}


async def test_cancelled_call_leaves_a_working_connection(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("elicit")) as bench:
        call = asyncio.create_task(bench.call(text="a"))
        await until(lambda: bench.announced)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        assert bench.fleet._servers["rogue"].active == {}


async def test_processes_end_with_the_client(tmp_path: Path) -> None:
    async with Bench(tmp_path, rogue("hang")) as bench:
        call = asyncio.create_task(bench.call(text="a"))
        await until(lambda: bench.fleet._servers["rogue"].active)
        pid = bench.fleet._servers["rogue"].pid
        assert os.path.exists(f"/proc/{pid}")  # noqa: ASYNC240, PTH110
        call.cancel()
        await asyncio.wait([call])
    assert not os.path.exists(f"/proc/{pid}")  # noqa: ASYNC240, PTH110
