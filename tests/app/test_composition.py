"""Composition root: behaviour across several parts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import aiohttp
import pytest
from blockbuster import BlockBuster

from hermes.actors.kernel.actor import LoopActor, live_actors
from hermes.app.actor_system import assemble
from hermes.app.composition import running
from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.domain.errors import StorageError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch
from tests.support.actor_system import DIRECTORY_SETTINGS, make_ports, make_settings
from tests.support.daemon_process import DaemonProcess
from tests.support.journals import LoopJournal
from tests.support.model_server import STALL, stream
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually, until

_CONFIG = "api: {port: 0}\ndashboard: {enabled: false}\nlog: {file: false}\n"


@pytest.mark.usefixtures("logs_of_its_own")
async def test_restarted_directory_resumes_interrupted_turns(
    tmp_path: Path, nothing_blocks_the_loop: BlockBuster
) -> None:
    nothing_blocks_the_loop.deactivate()  # a start may block: there are no clients yet
    with ScriptedModel(idle_timeout_s=60) as model:
        model.on_request = lambda _: stream(STALL)
        home = Home(data_dir=tmp_path / "home", config_file=tmp_path / "config.yaml")
        home.config_file.write_text(model.config + _CONFIG, encoding="utf-8")
        config = load_config(home, {})
        async with asyncio.timeout(50), running(home, config, {}, StopSwitch()) as daemon:
            message = EncodedMessage(json.dumps({"role": "user", "content": "say here I am"}).encode())
            session, turn = SessionId("s"), TurnId("t1")
            source = Source(platform="api")
            await daemon.system.sessions.submit(
                Submission(turn=turn, messages=(message,), source=source, session=session)
            )
            await model.server.until(lambda: len(model.requests) == 1)
            model.on_request = lambda _: None

            daemon.system.children["directory"].tell(StorageError("a page could not be read"))

            await model.server.until(lambda: len(model.requests) == 2)
            await daemon.stop(StopRequest(reason="the test is over"))


@pytest.mark.usefixtures("logs_of_its_own")
async def test_health_and_chat_completions_do_not_iterate_over_all_actors(
    tmp_path: Path, nothing_blocks_the_loop: BlockBuster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_blocks_the_loop.deactivate()
    walks: list[int] = []

    def counted() -> list[LoopActor]:
        walks.append(1)
        return live_actors()

    monkeypatch.setattr("hermes.app.operations.live_actors", counted)
    home = Home(data_dir=tmp_path / "home", config_file=tmp_path / "config.yaml")
    home.config_file.write_text(_CONFIG, encoding="utf-8")
    environ = {"HERMES_API_KEY": "a-key-for-the-tests"}
    body = {"model": "hermes", "messages": [{"role": "user", "content": "hello"}]}
    headers = {"Authorization": f"Bearer {environ['HERMES_API_KEY']}"}
    async with (
        asyncio.timeout(50),
        running(home, load_config(home, environ), environ, StopSwitch()) as daemon,
        aiohttp.ClientSession(daemon.facts["address"], headers=headers) as client,
    ):
        walks.clear()
        async with client.get("/health") as response:
            assert response.status == 200
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 200
        assert walks == []
        daemon.operations.info()
        assert walks, "the count is of the function that goes through them"
        await daemon.stop(StopRequest(reason="the test is over"))


@pytest.mark.usefixtures("logs_of_its_own")
async def test_old_outputs_of_ended_conversation_are_removed(
    tmp_path: Path, nothing_blocks_the_loop: BlockBuster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing_blocks_the_loop.deactivate()
    monkeypatch.setattr("hermes.tools.terminal.output_retention.FIRST_AFTER_S", 0.01)
    monkeypatch.setattr("hermes.tools.terminal.output_retention.SWEEP_EVERY_S", 0.01)
    home = Home(data_dir=tmp_path / "home", config_file=tmp_path / "config.yaml")
    home.config_file.write_text("api: {enabled: false}\nlog: {file: false}\n", encoding="utf-8")
    config = load_config(home, {})
    async with asyncio.timeout(50), running(home, config, {}, StopSwitch()) as daemon:
        files = {}
        for name in ("open", "over"):
            await daemon.system.sessions.begin(Source(platform="api"), session=SessionId(name))
            files[name] = home.data_dir / "work" / name / "outputs" / "call.txt"
            files[name].parent.mkdir(parents=True)
            files[name].touch()
            os.utime(files[name], (1.0, 1.0))
        await daemon.system.sessions.end(SessionId("over"), "it is over")
        await until(lambda: not files["over"].exists())
        assert files["open"].exists()
        await daemon.stop(StopRequest(reason="the test is over"))


async def test_reload_in_boot_loop_keeps_held_turns() -> None:
    system = assemble(make_ports(LoopJournal(), lambda: 1.0), make_settings())
    system.hold(boot_loop=True)
    system.configure(make_settings(max_waiting=5))
    assert system.directory_settings.hold
    system.hold(boot_loop=False)
    assert system.directory_settings == DIRECTORY_SETTINGS


def test_sigterm_at_the_end_of_a_restart_cancels_it() -> None:
    strikes = {"HERMES_TEST_CRASH": "stop: over", "HERMES_TEST_CRASH_SIGNAL": "TERM"}
    with DaemonProcess(environ=strikes) as daemon:
        daemon.admin.post("/stop", {"reason": "new version", "restart": True})
        assert daemon.process is not None
        assert daemon.process.wait(30) == 0


def test_sighup_at_the_end_of_a_restart_is_ignored() -> None:
    strikes = {"HERMES_TEST_CRASH": "stop: over", "HERMES_TEST_CRASH_SIGNAL": "HUP"}
    with DaemonProcess(environ=strikes) as daemon:
        process = daemon.process
        assert process is not None
        assert process.stdout is not None
        daemon.admin.post("/stop", {"reason": "new version", "restart": True})
        greeting = iter(process.stdout.readline, b"")
        assert any(b" is ready at " in line for line in greeting)
        process.send_signal(signal.SIGHUP)
        eventually(lambda: "configuration reloaded" in daemon.stderr())
        assert process.poll() is None


def test_empty_configuration_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    tmp_path.chmod(0o700)
    with DaemonProcess(home=tmp_path) as daemon:
        assert daemon.process is not None
        assert daemon.process.stdout is not None
        assert daemon.process.stdout.readline() == b"  Note     config.yaml is empty; using defaults\n"
        assert "config.yaml is empty; using defaults" in daemon.stderr()
        assert daemon.admin.get("/info")["config_empty"] is True
