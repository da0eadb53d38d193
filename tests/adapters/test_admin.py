"""The operator's socket: who gets in, what can be seen and done."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from loguru import logger

from hermes.adapters.admin import peer as peer_module
from hermes.adapters.admin.dashboard_api import DashboardApi
from hermes.adapters.admin.key_api import KeyApi
from hermes.adapters.admin.operator_api import OperatorApi
from hermes.adapters.admin.peer_ancestry import PeerAncestry, ProcessLook, descent_of
from hermes.adapters.admin.server import AdminServer
from hermes.adapters.http.listener import Lifetime
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.routes import api_routes
from hermes.config.admin_token import token_file
from hermes.domain.errors import AlreadyRunningError, HomeError, StorageError, StorageFullError
from hermes.domain.events import ActorFailed
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.read.live import LiveQuery, LiveSort
from hermes.domain.read.trace import TraceLine, TraceState, TraceStep
from hermes.domain.read.views import ActorView
from hermes.domain.session.state import Phase
from tests.adapters.conftest import ApiHarness, ask, chat, events, iterate, logged
from tests.support.fakes import NOW, a_dead_letter, a_session, process_view
from tests.support.waiting import until


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "hermes.sock"


@pytest.fixture
async def server(world: ApiHarness, path: Path) -> AdminServer:
    return await world.admin(path)


@pytest.fixture
async def admin(world: ApiHarness, server: AdminServer, path: Path) -> aiohttp.ClientSession:
    return await world.admin_client(path)


async def get(admin: aiohttp.ClientSession, path: str) -> Any:
    async with admin.get(path) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def post(admin: aiohttp.ClientSession, path: str, body: Any = None) -> tuple[int, Any]:
    async with admin.post(path, json=body) if body is not None else admin.post(path) as response:
        return response.status, await response.json()


# ---------------------------------------------------------------- the socket itself


async def test_socket_is_private_and_removed_with_the_server(server: AdminServer, path: Path) -> None:
    mode = (await asyncio.to_thread(path.stat)).st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    await server.stop(0)
    assert not await asyncio.to_thread(path.exists)


async def test_unanswered_socket_is_replaced(world: ApiHarness, path: Path) -> None:
    def leave_a_dead_socket() -> None:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))

    await asyncio.to_thread(leave_a_dead_socket)
    await world.admin(path)
    assert (await get(await world.admin_client(path), "/info"))["pid"] == 42


async def test_answered_socket_is_kept(world: ApiHarness, admin: aiohttp.ClientSession, path: Path) -> None:
    with pytest.raises(AlreadyRunningError, match="answers on"):
        await world.admin(path)
    assert (await get(admin, "/info"))["pid"] == 42


async def test_a_file_in_the_way_is_not_removed(world: ApiHarness, path: Path) -> None:
    await asyncio.to_thread(path.write_text, "precious")
    with pytest.raises(HomeError, match="not a socket"):
        await world.admin(path)
    assert await asyncio.to_thread(path.read_text) == "precious"


async def test_a_path_too_long_for_a_socket_is_said_plainly(world: ApiHarness, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="too long"):
        await world.admin(tmp_path / ("x" * 120))


async def test_a_missing_directory_is_said_plainly(world: ApiHarness, tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot create the admin socket"):
        await world.admin(tmp_path / "nowhere" / "hermes.sock")


@pytest.fixture
async def reachable() -> AsyncIterator[Path]:
    """A directory that every user can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as name:
        await asyncio.to_thread(Path(name).chmod, 0o755)
        yield Path(name) / "hermes.sock"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    ("uid", "answer"), [(0, b"HTTP/1.1 403"), (65534, b"")]
)  # a child of ours gets in, no further
async def test_another_user_is_turned_away_even_if_the_mode_lets_him_in(
    world: ApiHarness, reachable: Path, uid: int, answer: bytes
) -> None:
    await world.admin(reachable)
    await asyncio.to_thread(reachable.chmod, 0o666)
    program = (
        "import os, socket, sys\n"
        "os.setuid(int(sys.argv[1]))\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(sys.argv[2])\n"
        "try:\n"
        "    s.sendall(b'GET /info HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\n"
        "    sys.stdout.buffer.write(s.recv(12))\n"
        "except OSError: pass\n"
    )
    logged: list[str] = []
    sink = logger.add(logged.append, format="{level} {message}")
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(uid), str(reachable), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    finally:
        logger.remove(sink)
    assert (process.returncode, out) == (0, answer)
    refused = f"WARNING admin socket: refused process {process.pid} of user 65534\n"
    assert (logged == [refused]) if uid else ("started by a tool" in logged[0])


async def test_request_without_the_admin_token_is_refused(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    for given in ("", "Bearer", "Bearer guessed", "Basic " + admin.headers["Authorization"].removeprefix("Bearer ")):
        async with admin.get("/info", headers={"Authorization": given}) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (401, "invalid_admin_token"), given


async def test_each_start_has_a_token_of_its_own(world: ApiHarness, path: Path) -> None:
    tokens = set()
    for _ in range(2):
        server = await world.admin(path)
        tokens.add(await asyncio.to_thread(token_file(path).read_text))
        await server.stop(0)
    assert len(tokens) == 2


def test_descent_is_unknown_in_every_doubt() -> None:
    def table(**lookups: ProcessLook | None) -> Callable[[int], ProcessLook | None]:
        return lambda pid: lookups.get(f"p{pid}")

    def below(parent: int, *, is_shim: bool = False) -> ProcessLook:
        return ProcessLook(parent=parent, started=1, is_shim=is_shim)

    assert descent_of(30, 10, table(p30=below(20), p20=below(10))) is PeerAncestry.TOOL
    assert descent_of(30, 10, table(p30=below(20), p20=below(1))) is PeerAncestry.OTHER
    assert descent_of(30, 10, table(p30=below(20), p20=below(0))) is PeerAncestry.OTHER
    assert descent_of(30, 10, table(p30=below(20), p20=below(1, is_shim=True))) is PeerAncestry.TOOL
    assert descent_of(30, 10, table(p30=below(20))) is PeerAncestry.UNKNOWN  # an ancestor cannot be read
    assert descent_of(30, 10, table()) is PeerAncestry.UNKNOWN
    assert descent_of(0, 10, table()) is PeerAncestry.OTHER  # outside the daemon's namespace, where no tool can be
    assert descent_of(30, 10, lambda pid: below(pid + 1)) is PeerAncestry.UNKNOWN  # far too many generations


@pytest.mark.parametrize("has_pidfd", [True, False])
async def test_a_peer_that_has_ended_is_not_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pidfd: bool
) -> None:
    if not has_pidfd:
        monkeypatch.setattr(peer_module, "pidfd_runs", lambda _: None)
    accepted: asyncio.Queue[asyncio.Transport] = asyncio.Queue()

    class Accepting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.put_nowait(cast("asyncio.Transport", transport))

    server = await asyncio.get_running_loop().create_unix_server(Accepting, str(tmp_path / "s"))
    program = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "sys.stdin.readline()\n"
        "if os.fork() == 0: s.recv(1)\n"  # the child keeps the connection
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path / "s"), stdin=asyncio.subprocess.PIPE
    )
    transport = await accepted.get()
    identity, peer = peer_module.PeerIdentity(), peer_module.peer_of(transport)
    assert peer.pid == process.pid
    await asyncio.to_thread(identity.connected, transport, peer)
    assert await asyncio.to_thread(identity.is_same, transport, peer)
    await process.communicate(b"\n")
    assert not await asyncio.to_thread(identity.is_same, transport, peer)
    transport.close()
    server.close()


# ---------------------------------------------------------------- what can be seen


async def test_info_actors_and_store_are_readable(admin: aiohttp.ClientSession) -> None:
    assert (await get(admin, "/info"))["version"] == "1.2.3"
    actors = (await get(admin, "/actors"))["actors"]
    assert [actor["name"] for actor in actors] == ["s1", "journal"]
    assert actors[1]["last_error"] == "ValueError: no"
    assert list(actors[0]) == [field.name for field in dataclasses.fields(ActorView)]
    assert (await get(admin, "/store"))["engine"] == "memory"


async def test_a_session_is_shown_whole(admin: aiohttp.ClientSession) -> None:
    for text in ("one", "two"):
        await chat(admin, ask(text), **{"X-Hermes-Session-Id": "s"})
    whole = await get(admin, "/sessions/s?tail=2")
    assert set(whole) == {
        "session",
        "why",
        "waits_for",
        "lineage",
        "live",
        "mailbox",
        "queue",
        "preferences",
        "transcript",
    }
    assert whole["session"]["turns"] == 2
    assert [message["content"] for message in whole["transcript"]] == ["two", "Hello, world"]
    assert len((await get(admin, "/sessions/s"))["transcript"]) == 4
    assert (await get(admin, "/sessions/s?tail=0"))["transcript"] == []
    assert (await get(admin, "/sessions/s"))["why"] == "idle: new"
    assert [session["id"] for session in (await get(admin, "/api/sessions?limit=1"))["sessions"]] == ["s"]


async def test_verification_tells_the_problems(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    assert await get(admin, "/store/verify") == {"problems": []}
    world.operations.problems = ["record 7 of s is damaged"]
    assert await get(admin, "/store/verify") == {"problems": ["record 7 of s is damaged"]}


async def test_a_store_in_trouble_is_an_error_and_the_socket_goes_on(
    world: ApiHarness, admin: aiohttp.ClientSession
) -> None:
    world.operations.trouble = StorageFullError("no space left")
    async with admin.get("/store") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (503, "storage_full")
    assert (await get(admin, "/info"))["pid"] == 42


# ---------------------------------------------------------------- what can be done


@pytest.mark.parametrize(("verb", "phase"), [("end", "ended"), ("suspend", "suspended"), ("resume", "idle")])
async def test_a_session_can_be_ended_suspended_and_resumed(
    world: ApiHarness, admin: aiohttp.ClientSession, verb: str, phase: str
) -> None:
    world.desk.sessions[SessionId("s")] = a_session("s", phase=Phase.WAITING)
    status, body = await post(admin, f"/sessions/s/{verb}", {"reason": "because"})
    assert (status, body["session"]["phase"], body["session"]["reason"]) == (200, phase, "because")
    _, body = await post(admin, f"/sessions/s/{verb}")
    assert body["session"]["reason"] == "requested by the operator"


async def test_a_running_turn_can_be_stopped(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.desk.hold()
    waiting = asyncio.create_task(chat(admin, **{"X-Hermes-Session-Id": "s"}))
    await until(lambda: world.desk.submitted)
    status, body = await post(admin, "/sessions/s/stop", {"reason": "enough"})
    assert (status, body["session"]["running_turn"]) == (200, None)
    status, body, _ = await waiting
    assert (status, body["error"]["code"]) == (409, "cancelled")


async def test_a_session_can_be_deleted(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("s")] = a_session("s")
    async with admin.delete("/api/sessions/s") as response:
        assert await response.json() == {"id": "s", "deleted": True}
    assert world.desk.sessions == {}


async def test_a_message_can_be_traced(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    step = TraceStep(at=NOW, what="interrupted", took_s=3.0, problem="the daemon was killed")
    line = TraceLine(
        at=NOW, session=SessionId("s"), turn=TurnId("t"), state=TraceState.SENT, platform="toy", steps=(step,)
    )
    world.desk.traces["toy:a/b"] = [dataclasses.replace(line, turn=TurnId("t0")), line]
    shown = (await get(admin, "/trace/toy%3Aa%2Fb?limit=1"))["messages"]
    assert [(each["turn"], each["state"], each["problems"]) for each in shown] == [
        ("t", "sent", ["the daemon was killed"])
    ]
    assert shown[0]["steps"][0]["took_s"] == 3.0
    for path, status in (("/trace/nobody", 404), ("/trace/t?limit=0", 400)):
        async with admin.get(path) as response:
            assert response.status == status


async def test_background_processes_are_listed_and_ended(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.processes.known = {"proc_a": process_view("proc_a"), "proc_b": process_view("proc_b", "another")}
    await chat(admin, ask("hello"), **{"X-Hermes-Session-Id": "s"})
    listed = (await get(admin, "/api/processes"))["processes"]
    assert [process["id"] for process in listed] == ["proc_a", "proc_b"]
    assert (listed[0]["age_s"], listed[0]["ports"], listed[0]["blocks_reset"]) == (60.0, [8000], True)
    assert listed[0]["explanation"] == "make all is explained"
    [own] = (await get(admin, "/api/sessions/s/processes"))["processes"]
    assert own["id"] == "proc_a"
    assert (await get(admin, "/api/sessions/s/processes"))["processes"] == [own]
    status, answer = await post(admin, "/api/processes/proc_a/kill")
    assert (status, answer["process"]["running"], answer["process"]["signal"]) == (200, False, 15)
    status, answer = await post(admin, "/api/processes/proc_c/kill")
    assert (status, answer["error"]["code"]) == (404, "unknown_process")


async def test_a_background_process_is_read_and_ended_over_the_api(
    world: ApiHarness, admin: aiohttp.ClientSession
) -> None:
    world.processes.known = {"proc_a": process_view("proc_a")}
    world.processes.out = "Grüße\n".encode()
    assert [each["id"] for each in (await get(admin, "/api/processes"))["processes"]] == ["proc_a"]
    assert (await get(admin, "/api/processes/proc_a"))["process"]["running"]
    assert (await get(admin, "/api/processes/proc_a/log"))["text"] == "Grüße\n"
    part = await get(admin, "/api/processes/proc_a/log?offset=0&limit=5")
    assert (part["text"], part["next_offset"], part["total_bytes"]) == ("Grü", 4, 8)
    status, answer = await post(admin, "/api/processes/proc_a/kill")
    assert (status, answer["process"]["detail"]) == (200, "requested by the operator")
    for path in ("/api/processes/proc_b", "/api/processes/proc_b/log"):
        async with admin.get(path) as response:
            assert response.status == 404


async def test_grants_are_listed_and_withdrawn(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.desk.facts["grant:recursive-delete"] = b"1"
    assert await get(admin, "/grants") == {"grants": ["recursive-delete"]}
    assert await post(admin, "/grants/recursive-delete/withdraw") == (200, {"withdrawn": "recursive-delete"})
    assert await get(admin, "/grants") == {"grants": []}


async def test_dead_letters_are_listed_and_replayed(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.desk.letters["d1"] = a_dead_letter("d1", "s")
    (letter,) = (await get(admin, "/dead-letters"))["dead_letters"]
    assert letter["id"] == "d1"
    status, receipt = await post(admin, "/dead-letters/d1/replay")
    assert status == 200
    assert receipt == {
        "session": "s",
        "turn": "turn-d1",
        "position": 0,
        "duplicate": False,
        "notice": "",
        "handling": "started",
        "into": None,
        "opened": False,
    }
    status, body = await post(admin, "/dead-letters/d1/replay")
    assert (status, body["error"]["code"]) == (404, "unknown_dead_letter")


async def test_backup_goes_to_the_requested_directory(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    assert await post(admin, "/store/backup", {"path": "/backups/today"}) == (200, {"path": "/backups/today"})
    assert world.operations.backups == [Path("/backups/today")]
    for body in ({"path": "today"}, {"path": 5}, {}, {"path": "/a\0b"}):
        status, answer = await post(admin, "/store/backup", body)
        assert (status, answer["error"]["param"]) == (400, "path")
    assert len(world.operations.backups) == 1


async def test_backup_to_a_wrong_path_is_a_bad_request(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.operations.trouble = StorageError("/backups/today is there already")
    with logged() as lines:
        status, answer = await post(admin, "/store/backup", {"path": "/backups/today"})
    assert (status, answer["error"]["code"]) == (409, "backup_refused")
    assert answer["error"]["message"] == "/backups/today is there already"
    assert lines == ["WARNING backup failed: /backups/today is there already\n"]


async def test_daemon_stops_on_request(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    said = {"stopping": True, "restart": False, "reason": "upgrade"}
    assert await post(admin, "/stop", {"reason": "upgrade"}) == (202, said)
    assert (await post(admin, "/stop", {"reason": "again", "restart": True}))[1] == {
        "stopping": True,
        "restart": True,
        "reason": "again",
    }
    assert world.operations.stop_reasons == ["upgrade", "restart: again"]
    assert (await post(admin, "/stop", {"reason": "again", "restart": "yes"}))[0] == 400


@pytest.mark.parametrize("body", [[], {"reason": 5}, {"reason": ""}, {"reason": "x" * 501}, {"reason": "a\0b"}])
async def test_a_wrong_reason_stops_nothing(world: ApiHarness, admin: aiohttp.ClientSession, body: Any) -> None:
    assert (await post(admin, "/stop", body))[0] == 400
    assert world.operations.stop_reasons == []


@pytest.mark.parametrize("where", ["/sessions/..%2fx", "/sessions/nobody", "/metrics", "/sessions/s/x"])
async def test_what_is_not_there_is_said_in_the_same_shape(admin: aiohttp.ClientSession, where: str) -> None:
    async with admin.get(where) as response:
        assert response.status in (400, 404)
        assert set((await response.json())["error"]) == {"message", "type", "param", "code"}


async def test_the_whole_api_is_there_without_a_key(admin: aiohttp.ClientSession) -> None:
    status, body, headers = await chat(admin)
    assert (status, body["choices"][0]["message"]["content"]) == (200, "Hello, world")
    async with admin.post("/v1/chat/completions", json=ask(stream=True)) as response:
        assert (await events(response))[-1].data == "[DONE]"
    assert (await get(admin, f"/api/sessions/{headers['X-Hermes-Session-Id']}"))["session"]["turns"] == 1
    assert (await get(admin, "/health"))["status"] == "ok"


async def test_admin_session_has_the_cli_platform(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    await chat(admin, ask(user="ann"), **{"Idempotency-Key": "k"})
    (submission,) = world.desk.submitted
    assert (submission.source.platform, submission.source.user) == ("cli", "ann")
    client = await world.client(await world.api())
    _, _, headers = await chat(client, ask(user="ann"), **{"Idempotency-Key": "k"})
    assert headers["X-Hermes-Idempotent-Replay"] == "true", "both doors know each other's keys"


async def test_the_socket_lists_its_addresses_one_a_line(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    listed = await get(admin, "/")
    async with admin.get("/") as response:
        assert len((await response.text()).splitlines()) == len(listed)
    service = Service(
        sessions=world.desk,
        make_commands=cache(world.commands),
        hub=world.hub,
        operations=world.operations,
        processes=world.processes,
        new_turn_id=lambda: pytest.fail("no turn"),
        clock=lambda: NOW,
        lifetime=Lifetime(),
    )
    own = OperatorApi(service, KeyApi(service, world.keys), dashboard=DashboardApi(service, None))
    routes = [*own.routes(), *api_routes(service)]
    assert sorted((entry["method"], entry["path"]) for entry in listed) == sorted(
        (route.method, route.path.replace("{id:.+}", "{id}")) for route in routes
    )
    assert all(entry["what"] for entry in listed)
    async with admin.get("/nowhere") as response:
        assert response.status == 404
        assert "GET / lists" in (await response.json())["error"]["message"]


async def test_owner_sees_failed_actors_in_the_events_of_all_sessions(
    world: ApiHarness, admin: aiohttp.ClientSession
) -> None:
    async with admin.get("/api/events?type=actor,stream") as response:
        incoming = iterate(response)
        assert (await anext(incoming)).event == "stream.opened"
        world.hub.publish(ActorFailed(name="s1", problem="ValueError", verdict="restart"))
        failed = await anext(incoming)
    assert (failed.event, failed.data) == (
        "actor.failed",
        {"name": "s1", "problem": "ValueError", "verdict": "restart"},
    )


async def test_a_reload_tells_what_came_of_it(admin: aiohttp.ClientSession) -> None:
    async with admin.post("http://hermes/reload") as response:
        assert response.status == 200
        assert await response.json() == {"applied": {"log.level": ["INFO", "DEBUG"]}, "needs_restart": {}}


async def test_named_keys_are_created_listed_and_revoked(admin: aiohttp.ClientSession) -> None:
    status, made = await post(admin, "/keys", {"name": "ci", "role": "guest", "expires_s": 60, "budget_tokens": 5})
    assert (status, made["key"]["role"], made["key"]["expires_at"]) == (201, "guest", NOW + 60)
    assert made["text"].startswith("hk_")
    [listed] = (await get(admin, "/keys"))["keys"]
    assert listed == made["key"]
    assert made["text"] not in str(listed)
    assert (await post(admin, "/keys", {"name": "ci"}))[1]["error"]["code"] == "key_exists"
    assert (await post(admin, "/keys", {"name": "boss", "role": "owner"}))[0] == 400
    assert await post(admin, "/keys/ci/revoke") == (200, {"revoked": "ci"})
    assert (await get(admin, "/keys"))["keys"][0]["state"] == "revoked"
    assert (await post(admin, "/keys/nobody/revoke"))[0] == 404


async def test_operator_renames_and_prunes(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    world.desk.sessions[SessionId("s1")] = a_session("s1")
    async with admin.patch("/api/sessions/s1", json={"title": "Taxes"}) as response:
        assert response.status == 200
    async with admin.post("/sessions/prune", json={"older_than_s": 60, "dry_run": True}) as response:
        assert await response.json() == {"sessions": ["s1"], "dry_run": True}
    assert world.operations.pruned == [(60, True)]
    for body in ({}, {"older_than_s": 0}, {"older_than_s": True}, {"older_than_s": 1, "dry_run": 1}):
        async with admin.post("/sessions/prune", json=body) as response:
            assert response.status == 400


async def test_operator_sees_what_runs(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    found = await get(admin, "/running")
    assert found["sessions"] == []
    assert all(process["running"] for process in found["processes"])


async def test_live_sample_has_sessions_actors_and_figures(world: ApiHarness, admin: aiohttp.ClientSession) -> None:
    found = await get(admin, "/live?sort=tokens&find=big+build&limit=7&busy=1")
    assert world.operations.queries == [
        LiveQuery(sort=LiveSort.TOKENS, find="big build", limit=7, is_busy=True),
    ]
    assert (found["sessions"][0]["id"], found["sessions"][0]["mailbox"]) == ("s1", 2)
    assert (found["matching"], found["phases"], found["turns_calling"]) == (1, {"idle": 1}, 1)
    assert (found["commits"], found["usage"]["prompt_tokens"], found["loop_lag_s"]) == (10, 7, [0.001])
    assert found["actors"][0]["last_error"] == "ValueError: no"
    assert found["platforms"][0]["state"] == "down"


@pytest.mark.parametrize("query", ["sort=size", "limit=0", "limit=1001", f"find={'x' * 201}"])
async def test_live_sample_refuses_a_bad_query(admin: aiohttp.ClientSession, query: str) -> None:
    async with admin.get(f"/live?{query}") as response:
        assert response.status == 400
