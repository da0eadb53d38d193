"""Reviews with the real daemon: what they save, when, for whom, at which cost, and kills at each step."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Hold, Reply
from tests.support.scripted_model import ScriptedModel, answered, calling
from tests.support.telegram_server import TOKEN, TelegramServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
BOSS, ANN = 1, 7
FACT = {"action": "add", "target": "user", "content": "Likes short answers."}
SKILL = "---\nname: deploy\ndescription: Deploys the site.\n---\n\nRun make, then push.\n"


class Reviewer:
    """A model that saves something in each review, and answers everybody else by the rules of the scripted model."""

    def __init__(self, model: ScriptedModel, *calls: tuple[str, dict[str, Any]], endless: bool = False) -> None:
        self.calls = calls or (("memory", FACT),)
        self.requests: list[dict[str, Any]] = []
        self.endless = endless
        self.gate = asyncio.Event()
        self.gate.set()
        model.on_request = self._reply

    def _reply(self, body: dict[str, Any]) -> Reply | None:
        if "You work in the background" not in str(body["messages"][0]["content"]):
            return None
        self.requests.append(body)
        done = sum(message["role"] == "tool" for message in body["messages"])
        if self.endless or done < len(self.calls):
            called = calling(10, self.calls[done % len(self.calls)])
            return replace(called, parts=(Hold(gate=self.gate), *called.parts))
        return answered("Saved.")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(idle_timeout_s=60) as model:
        yield model


def daemon_of(model: ScriptedModel, more: str = "", **environ: str) -> DaemonProcess:
    return DaemonProcess(config=model.config + more, environ={"HERMES_AUXILIARY_REVIEW": "scripted", **environ})


def person_notes(daemon: DaemonProcess) -> str:
    file = daemon.home / "memories" / "USER.md"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def children(daemon: DaemonProcess) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.admin.get("/api/sessions", children=1)["sessions"]
    return [each for each in rows if each["child"]]


def changes(daemon: DaemonProcess, target: str = "user") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.admin.post("/memory/log", {"target": target})["changes"]
    return rows


def test_review_saves_what_lasts_after_every_second_message(model: ScriptedModel) -> None:
    reviewer = Reviewer(model)
    with daemon_of(model, "memory: {nudge_interval: 2}\n") as daemon:
        daemon.ask("say I like short answers", session="s")
        assert reviewer.requests == []
        daemon.ask("say two", session="s")
        eventually(lambda: person_notes(daemon) == "Likes short answers.\n")
        [tool] = reviewer.requests[0]["tools"]
        assert tool["function"]["name"] == "memory"
        assert "I like short answers" in reviewer.requests[0]["messages"][-1]["content"]
        daemon.ask("say three", session="next")
        assert "- Likes short answers." in model.requests[-1]["messages"][0]["content"]
        [child] = children(daemon)
        assert child["child"]["parent"] == "s"
        metrics = daemon.request("GET", "/metrics").body.decode()
        assert 'hermes_learning_changes_total{by="review",kind="memory"} 1.0' in metrics
        [change] = changes(daemon)
        assert (change["author"], change["session"]) == ("review", child["id"])


def test_review_keeps_nobody_waiting_and_the_next_one_follows_it(model: ScriptedModel) -> None:
    reviewer = Reviewer(model)
    reviewer.gate.clear()
    with daemon_of(model, "memory: {nudge_interval: 2}\n") as daemon:
        for number in range(6):
            assert daemon.ask(f"say {number}", session="s").text == str(number)
        eventually(lambda: len(reviewer.requests) == 1)
        assert person_notes(daemon) == ""
        model.in_loop(reviewer.gate.set)
        eventually(lambda: [each["phase"] for each in children(daemon)] == ["ended"] * 3)
        assert person_notes(daemon) == "Likes short answers.\n"


def test_review_that_never_ends_has_a_limit(model: ScriptedModel) -> None:
    reviewer = Reviewer(model, endless=True)
    with daemon_of(model, "memory: {nudge_interval: 1, review_max_steps: 3}\n") as daemon:
        daemon.ask("say one", session="s")
        eventually(lambda: [each["phase"] for each in children(daemon)] == ["ended"])
        assert len(reviewer.requests) == 4  # the last one has no tools
        assert not reviewer.requests[-1].get("tools")
        assert len(changes(daemon)) == 1


def test_review_writes_a_skill_after_a_task_with_many_calls(model: ScriptedModel) -> None:
    Reviewer(model, ("skill_manage", {"action": "create", "name": "deploy", "content": SKILL}))
    with daemon_of(model, "skills: {creation_nudge_interval: 2}\n") as daemon:
        daemon.ask("run echo one", session="s")
        daemon.ask("run echo two", session="s")
        file = daemon.home / "skills" / "deploy" / "SKILL.md"
        eventually(file.exists)
        assert file.read_text(encoding="utf-8") == SKILL
        made = daemon.admin.post("/skills/log", {"name": "deploy"})["changes"]
        assert [each["author"] for each in made] == ["review"]


def test_person_in_a_chat_is_told_in_one_line_and_other_people_learn_nothing(model: ScriptedModel) -> None:
    Reviewer(model)
    people = f'admins: ["{BOSS}"], allowed_users: ["{ANN}"]'
    with TelegramServer() as server:
        config = (
            f'telegram: {{enabled: true, base_url: "{server.base_url}", {people}}}\nmemory: {{nudge_interval: 1}}\n'
        )
        with daemon_of(model, config, TELEGRAM_BOT_TOKEN=TOKEN) as daemon:
            server.say(ANN, ANN, "say hello")
            server.until(lambda: "Memory updated: 1 entry added." in server.texts(ANN))
            assert server.texts(ANN).index("Memory updated: 1 entry added.") == len(server.texts(ANN)) - 1
            assert person_notes(daemon) == ""
            [file] = (daemon.home / "memories" / "people").rglob("USER.md")
            assert "-7-" in file.parent.name
            server.say(BOSS, BOSS, "say hello")
            server.until(lambda: any("Memory updated" in text for text in server.texts(BOSS)))
            prompts = [
                str(each["messages"][0]) for each in model.requests if each["messages"][-1]["content"] == "say hello"
            ]
            assert not any("Likes short answers." in prompt for prompt in prompts)


def test_change_by_a_review_waits_for_approval_where_the_person_wants_that(model: ScriptedModel) -> None:
    Reviewer(model)
    with daemon_of(model, "memory: {nudge_interval: 1, write_approval: true}\n") as daemon:
        daemon.ask("say one", session="s")
        eventually(lambda: [each["phase"] for each in children(daemon)] == ["ended"])
        assert person_notes(daemon) == ""
        [proposal] = json.loads(daemon.hermes("memory", "pending", "--json").stdout)["pending"]
        assert daemon.hermes("memory", "approve", str(proposal["number"])).returncode == 0
        assert person_notes(daemon) == "Likes short answers.\n"
        assert changes(daemon)[0]["author"] == "review"


def test_consolidation_merges_skills_of_the_agent_and_leaves_pinned_ones(model: ScriptedModel) -> None:
    def text(name: str, body: str) -> str:
        return f"---\nname: {name}\ndescription: Deploys the site to the staging host.\n---\n\n{body}\n"

    Reviewer(
        model,
        ("skill_view", {"name": "deploy-one"}),
        ("skill_view", {"name": "deploy-two"}),
        ("skill_manage", {"action": "edit", "name": "deploy-one", "content": text("deploy-one", "Both.")}),
        ("skill_manage", {"action": "delete", "name": "deploy-two"}),
    )
    with daemon_of(model) as daemon:
        skills = daemon.home / "skills"
        for name in ("deploy-one", "deploy-two", "deploy-three"):
            wish = {"action": "create", "name": name, "content": text(name, f"From {name}.")}
            daemon.ask(f"call skill_manage {json.dumps(wish)}", session="s")
        daemon.admin.post("/skills/pin", {"name": "deploy-three"})
        started = daemon.admin.post("/skills/consolidate", {})
        assert started["skills"] == ["deploy-one", "deploy-two"]
        eventually(lambda: not (skills / "deploy-two").exists())
        assert (skills / "deploy-one" / "SKILL.md").read_text(encoding="utf-8") == text("deploy-one", "Both.")
        assert (skills / "deploy-three").exists()
        eventually(lambda: [each["phase"] for each in children(daemon)] == ["ended"])
        made = daemon.admin.post("/skills/log", {"name": "deploy-one"})["changes"]
        assert (made[0]["author"], made[0]["session"]) == ("review", started["session"])
        assert daemon.admin.post("/skills/consolidate", {}) == {"skills": [], "session": ""}
        assert daemon.admin.post("/skills/revert", {"name": "deploy-two"})["number"]
        assert (skills / "deploy-two").exists()


STEPS = (
    "after ChildStarted",
    "child: started",
    "turn: about to run a tool",
    "memory: about to replace the file",
    "child: about to report",
)
MORE_STEPS = (
    "child: about to start",
    "before AppendChange",
    "after AppendChange",
    "memory: the file is replaced",
    "turn: a tool has run",
    "child: reported",
)


@pytest.mark.parametrize("step", [*STEPS, *(MORE_STEPS if "HERMES_TEST_ALL_STEPS" in os.environ else ())])
def test_kill_at_each_step_of_a_review_loses_and_doubles_nothing(model: ScriptedModel, step: str) -> None:
    Reviewer(model)
    with TelegramServer() as server:
        config = (
            f'telegram: {{enabled: true, base_url: "{server.base_url}", admins: ["{BOSS}"]}}\n'
            f"memory: {{nudge_interval: 1}}\n"
        )
        with daemon_of(model, config, TELEGRAM_BOT_TOKEN=TOKEN, HERMES_TEST_CRASH=step) as daemon:
            server.say(BOSS, BOSS, "say hello")
            assert daemon.process is not None
            assert daemon.process.wait(30) == -signal.SIGKILL
            daemon.kill()
            daemon.start({"HERMES_TEST_CRASH": ""})
            server.until(lambda: "Memory updated: 1 entry added." in server.texts(BOSS))
            eventually(lambda: [each["phase"] for each in children(daemon)] == ["ended"])
            [notes] = [
                each["entries"]
                for each in daemon.admin.post("/memory/show", {"person": f"telegram:{BOSS}"})["notes"]
                if each["target"] == "user"
            ]
            assert notes == ["Likes short answers."]
            assert server.texts(BOSS).count("Memory updated: 1 entry added.") == 1
            answers = [text for text in server.replies(BOSS) if text == "hello" or text.endswith(")\n\nhello")]
            assert len(answers) == 1  # perhaps marked as a possible repeat
            assert daemon.hermes("storage", "verify").returncode == 0
