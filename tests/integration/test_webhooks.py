"""Events from outside and the real daemon: webhooks, BOOT.md, hooks, quick commands and the channel directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.event.webhook import WebhookRoute, sign
from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
ANN = 7
SECRET = "a-secret-of-github"
ROUTES = """
webhooks:
  routes:
    triage:
      prompt: "say triaged {issue.title}"
      secret_env: GITHUB_WEBHOOK_SECRET
      events: [issues.opened, push]
      deliver: [telegram]
      per_minute: 3
"""
ISSUE = {"action": "opened", "issue": {"title": "it crashes", "number": 5}}


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


def config_of(server: TelegramServer, model: ScriptedModel, *more: str) -> str:
    telegram = (
        f'telegram: {{enabled: true, base_url: "{server.base_url}", allowed_users: ["{ANN}"], admins: ["{ANN}"]}}\n'
    )
    return "".join((model.config, telegram, "chat: {restart_banner: false}\n", *more))


def environ() -> dict[str, str]:
    return {"TELEGRAM_BOT_TOKEN": TOKEN, "GITHUB_WEBHOOK_SECRET": SECRET}


def post(
    daemon: DaemonProcess, payload: Any, delivery: str, *, event: str = "issues", secret: str = SECRET
) -> Answer:
    body = json.dumps(payload)
    signature = sign(WebhookRoute(name="triage", prompt=""), secret.encode(), body.encode())
    headers = {**signature, "X-GitHub-Delivery": delivery, "X-GitHub-Event": event, "Authorization": "none"}
    return daemon.request("POST", "/hooks/triage", payload, **headers)


def make_home(server: TelegramServer) -> None:
    server.say(ANN, ANN, "/sethome")
    server.until(lambda: len(server.replies(ANN)) == 1)


def test_webhook_runs_once_for_each_delivery_and_is_delivered(server: TelegramServer, model: ScriptedModel) -> None:
    with DaemonProcess(config=config_of(server, model, ROUTES), environ=environ()) as daemon:
        make_home(server)
        accepted = post(daemon, ISSUE, "d1")
        assert (accepted.status, accepted.json()["status"]) == (202, "accepted")
        server.until(lambda: len(server.replies(ANN)) == 2)
        again = post(daemon, ISSUE, "d1")
        assert (again.status, again.json()["status"]) == (202, "duplicate")
        assert post(daemon, ISSUE, "d2", secret="wrong").status == 401
        ignored = post(daemon, {**ISSUE, "action": "closed"}, "d3")
        assert (ignored.status, ignored.json()["status"]) == (200, "ignored")
        assert post(daemon, {}, "d4", event="push").json()["missing"] == ["issue.title"]
        server.until(lambda: len(server.replies(ANN)) == 3)
        assert post(daemon, ISSUE, "d5").status == 202
        assert post(daemon, ISSUE, "d6").status == 429
        assert daemon.request("POST", "/hooks/other", {}).status == 404
        server.until(lambda: len(server.replies(ANN)) == 4)
        first, second = (next(each for each in server.replies(ANN)[n:]) for n in (1, 2))
        assert "it crashes" in first
        assert "(missing: issue.title)" in second
        listed = daemon.admin.get("/webhooks")["webhooks"][0]
        assert listed["counts"] == {"accepted": 3, "duplicate": 1, "unsigned": 1, "ignored": 1, "limited": 1}
        run = daemon.admin.get(f"/sessions/{accepted.json()['session']}")["session"]
        assert (run["platform"], run["phase"]) == ("webhook", "ended")
    asked = str(model.requests[0]["messages"][-1]["content"])
    assert "<untrusted-" in asked
    tools = {each["function"]["name"] for each in model.requests[0]["tools"]}
    assert tools == {"web_fetch"}
    assert SECRET not in daemon.stderr()


@pytest.mark.parametrize(
    "point",
    [
        "child: requested",
        "before TurnFinished",
        *(
            pytest.param(point, marks=pytest.mark.slow)
            for point in ("webhook: received", "webhook: accepted", "child: about to start", "child: about to report")
        ),
    ],
)
def test_kill_between_acceptance_and_run_runs_a_webhook_once(
    point: str, server: TelegramServer, model: ScriptedModel
) -> None:
    with DaemonProcess(config=config_of(server, model, ROUTES), environ=environ()) as daemon:
        make_home(server)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": point})
        with suppress(OSError):  # killed before it answered
            post(daemon, ISSUE, "d1")
        assert daemon.process is not None
        daemon.process.wait(20)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        answer = post(daemon, ISSUE, "d1")  # as the sender does, which got no answer
        assert answer.json()["status"] == ("accepted" if point == "webhook: received" else "duplicate")
        assert post(daemon, {**ISSUE, "issue": {"title": "the next"}}, "d2").status == 202
        server.until(lambda: {"it crashes", "the next"} <= set(runs_in(server)))
        assert sorted(runs_in(server)) == ["it crashes", "the next"]


def runs_in(server: TelegramServer) -> list[str]:
    """Return the title of each report that the chat got."""
    return [title for each in server.replies(ANN) for title in ("it crashes", "the next") if title in each]


def test_boot_task_runs_once_at_each_start(server: TelegramServer, model: ScriptedModel, tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path)) / "h"
    home.mkdir(mode=0o700)
    with DaemonProcess(config=config_of(server, model), environ=environ(), home=home) as daemon:
        make_home(server)
        (home / "BOOT.md").write_text("Check the disks.\n")
        daemon.kill()
        daemon.start()
        server.until(lambda: sum("Check the disks." in each for each in server.replies(ANN)) == 1)
        daemon.terminate()
        daemon.start()
        server.until(lambda: sum("Check the disks." in each for each in server.replies(ANN)) == 2)
        daemon.terminate()
        (home / "BOOT.md").unlink()
        daemon.start()
        assert daemon.ask("say hello").text == "hello"
        assert sum("Check the disks." in each for each in server.replies(ANN)) == 2


HOOKS = """
hooks:
  pre_tool_call:
    - {matcher: terminal, command: "grep -q forbidden && { echo 'forbidden word' >&2; exit 2; }; exit 0"}
  post_tool_call:
    - {matcher: terminal, command: "echo '{\\"context\\": \\"checked by a hook\\"}'"}
  "agent:end": [{command: "cat >> $HERMES_HOME/ends"}]
  "daemon:stop": [{command: "touch $HERMES_HOME/stopped"}]
  "command:*": [{command: "cat >> $HERMES_HOME/commands"}]
quick_commands:
  hello: {type: exec, command: "echo hello $1"}
  where: {type: alias, target: /status}
  brief: {type: prompt, prompt: "say brief {argument}"}
"""


def test_hooks_block_calls_add_to_results_and_hear_of_turns(model: ScriptedModel) -> None:
    with DaemonProcess(config=model.config + HOOKS) as daemon:
        assert "Not run: hook pre_tool_call" in daemon.ask("run echo forbidden").text
        assert "forbidden word" in str(model.requests[-1]["messages"][-1]["content"])
        assert "checked by a hook" in daemon.ask("run echo fine").text
        ends = daemon.home / "ends"
        eventually(lambda: ends.exists() and ends.read_text().count('"agent:end"') == 2)
        hello = daemon.request("POST", "/api/commands", {"text": "/hello $(id) world"})
        assert (hello.json()["ok"], hello.json()["text"]) == (True, "hello $(id) world")
        assert "/hello" in daemon.request("POST", "/api/commands", {"text": "/help"}).json()["text"]
        assert daemon.request("POST", "/api/commands", {"text": "/where"}).json()["ok"]
        commands = daemon.home / "commands"
        eventually(lambda: commands.exists() and commands.read_text().count('"event": "command:') == 3)
        listed = daemon.hermes("hooks", "--json")
        assert json.loads(listed.stdout)["status"]["failed"] == 0
        assert daemon.terminate() == 0
        assert (daemon.home / "stopped").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("point", "asked"), [("hook: asked before a call", 2), ("turn: about to run a tool", 1)])
def test_kill_between_a_verdict_and_its_call_never_runs_a_call_without_one(
    point: str, asked: int, model: ScriptedModel
) -> None:
    hooks = (
        "hooks:\n  pre_tool_call: [{command: 'echo x >> $HERMES_HOME/asked'}]\n"
        "  post_tool_call: [{command: 'echo ran >> $HERMES_HOME/ran'}]\n"
    )
    with DaemonProcess(config=model.config + hooks, environ={"HERMES_TEST_CRASH": point}) as daemon:
        with suppress(OSError):
            daemon.ask("run echo fine", session="s")
        assert daemon.process is not None
        daemon.process.wait(20)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        eventually(lambda: daemon.admin.get("/sessions/s")["session"]["phase"] == "idle")
        assert (daemon.home / "asked").read_text() == "x\n" * asked
        ran = daemon.home / "ran"
        assert (ran.read_text() if ran.exists() else "") == ("ran\n" if asked == 2 else "")


def test_chat_is_known_by_its_name_and_gets_messages_by_it(server: TelegramServer, model: ScriptedModel) -> None:
    with DaemonProcess(config=config_of(server, model, HOOKS), environ=environ()) as daemon:
        server.say(ANN, ANN, "say hi")
        server.until(lambda: server.replies(ANN) == ["hi"])
        eventually(lambda: daemon.admin.get("/channels")["channels"] != [])
        (channel,) = daemon.admin.get("/channels")["channels"]
        assert (channel["target"], channel["kind"]) == (f"telegram:{ANN}", "dm")
        sent = daemon.hermes("send", "--to", f"telegram:{channel['name']}", "by name")
        assert sent.returncode == 0, sent.stderr
        assert server.replies(ANN)[-1] == "by name"
        unknown = daemon.hermes("send", "--to", "telegram:Nobody Here", "x")
        assert "no chat is known as telegram:Nobody Here" in unknown.stderr
        daemon.kill()
        daemon.start()
        assert daemon.admin.get("/channels")["channels"] == [channel]
        server.say(ANN, ANN, "/hello Ann")
        server.until(lambda: len(server.replies(ANN)) == 3)
        assert "is for the owner" in server.replies(ANN)[-1]
