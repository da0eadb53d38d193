"""The real daemon and the real slack-sdk before a Slack that others wrote, by Socket Mode and by the Events API."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.domain.text.fence import without_fences
from tests.judges.local_slack import (
    ANN,
    APP_TOKEN,
    BOB,
    BOT,
    BOT_TOKEN,
    CHANNEL,
    SIGNING_SECRET,
    LocalSlack,
)
from tests.support.daemon_process import DaemonProcess
from tests.support.free_port import free_port
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)
SECRETS = {"SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN, "SLACK_SIGNING_SECRET": SIGNING_SECRET}


def _plain(reply: str) -> str:
    """The reply as the model wrote it, without fences: Slack escapes `<` and `>`."""
    return without_fences(html.unescape(reply))


@pytest.fixture(scope="module", params=["socket", "http"])
def port(request: pytest.FixtureRequest) -> int:
    """Where the daemon takes events in; 0: it fetches them itself."""
    return free_port() if request.param == "http" else 0


@pytest.fixture(scope="module")
def slack(packages: Path, tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[LocalSlack]:
    url = f"http://127.0.0.1:{port}/slack/events" if port else ""
    with LocalSlack(packages, tmp_path_factory.mktemp("slack"), events_url=url) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the agent works."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def daemon(slack: LocalSlack, model: ScriptedModel, folder: Path, port: int) -> Iterator[DaemonProcess]:
    way = f"transport: http, port: {port}" if port else "transport: socket"
    config = (
        f'{model.config}slack: {{enabled: true, base_url: "{slack.base_url}", admins: ["{ANN}"], {way}}}\n'
        f'terminal: {{cwd: "{folder}"}}\n'
    )
    with DaemonProcess(config=config, environ=SECRETS) as daemon:
        if port:
            eventually(lambda: "slack" in daemon.hermes("ps", "--actors").stdout)
        else:
            eventually(lambda: any("hello" in each["summary"] for each in slack.log("socket")))
        yield daemon


def test_a_first_conversation(slack: LocalSlack, daemon: DaemonProcess) -> None:
    said = slack.say(ANN, ANN, "say **hello** &amp; `goodbye`")
    private = said["channel"]
    assert slack.until_replies(private) == ["*hello* &amp; `goodbye`"]
    eventually(lambda: slack.reactions(private, said["ts"]) == {"white_check_mark"})
    slack.say(private, ANN, "say and again")
    assert slack.until_replies(private, 2)[1] == "and again"
    assert not any(secret in daemon.stderr() for secret in SECRETS.values())


def test_a_mention_in_a_thread_is_answered_there_and_it_goes_on_without_one(
    slack: LocalSlack, daemon: DaemonProcess
) -> None:
    root = slack.say(CHANNEL, BOB, "the build is red")["ts"]
    slack.say(CHANNEL, ANN, "say nothing to us", thread=root)
    slack.say(CHANNEL, ANN, f"<@{BOT}> say why?", thread=root)
    earlier = "[earlier in this thread: \n@bob: the build is red\n@ann: say nothing to us\n]"
    assert list(map(_plain, slack.until_replies(CHANNEL))) == [f"heard: {earlier}\n[ann] say why?"]
    slack.say(CHANNEL, ANN, "say and then?", thread=root)
    assert slack.until_replies(CHANNEL, 2)[1] == "and then?"
    ours = [each for each in slack.messages(CHANNEL) if each["user"] == BOT]
    assert {each["thread_ts"] for each in ours} == {root}


def test_a_slash_command(slack: LocalSlack, daemon: DaemonProcess) -> None:
    slack.slash(CHANNEL, ANN, "status")
    eventually(lambda: any("There is no conversation here yet" in each for each in slack.replies(CHANNEL)))


def test_an_approval_by_button(slack: LocalSlack, daemon: DaemonProcess, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    private = slack.say(ANN, ANN, f"run rm -rf {tmp_path}/folder")["channel"]
    eventually(lambda: any("rm -rf" in each for each in slack.replies(private)))
    assert (tmp_path / "folder").exists()
    slack.press(private, ANN, "once")
    eventually(lambda: any("results:" in each for each in slack.replies(private)))
    assert not (tmp_path / "folder").exists()


def test_a_long_answer_comes_in_parts(slack: LocalSlack, daemon: DaemonProcess) -> None:
    lines = [f"line {number} of a listing that goes on and on" for number in range(150)]
    said = slack.say(CHANNEL, ANN, f"<@{BOT}> say This is it:\n```\n" + "\n".join(lines) + "\n```\nThat was it.")

    def parts() -> list[str]:
        ours = (each for each in slack.messages(CHANNEL) if each["user"] == BOT)
        return [each["text"] for each in ours if each.get("thread_ts") == said["ts"]]

    eventually(lambda: "That was it." in "".join(parts()))
    assert len(parts()) > 1
    assert re.findall(r"line \d+ of.*", "\n".join(parts())) == lines
    assert all(len(each) <= 3000 and each.count("```") == 2 for each in parts())


def test_files_go_both_ways(slack: LocalSlack, daemon: DaemonProcess, folder: Path) -> None:
    private = slack.say(ANN, ANN, "say first")["channel"]
    slack.upload(private, ANN, "notes.txt", b"all of it", text="look")
    eventually(lambda: any("look\n[file (notes.txt, text/plain" in _plain(each) for each in slack.replies(private)))
    assert [each.read_bytes() for each in (daemon.home / "media").glob("*/*.txt")] == [b"all of it"]
    (folder / "report.txt").write_text("all is well")
    slack.say(private, ANN, f"call send_file {json.dumps({'path': 'report.txt'})}")
    eventually(lambda: slack.files(private) == ["report.txt"])


def test_stranger_gets_one_notice(slack: LocalSlack, daemon: DaemonProcess) -> None:
    private = slack.say(BOB, BOB, "say hello")["channel"]
    slack.say(private, BOB, "say hello")
    assert BOB in slack.until_replies(private)[0]
    slack.say(ANN, ANN, "say done")
    assert len(slack.replies(private)) == 1


def test_everything_was_acknowledged(slack: LocalSlack, daemon: DaemonProcess, port: int) -> None:
    if port:
        answers = [each for kind in ("events_api", "slash_commands", "interactive") for each in slack.log(kind)]
        assert {each["summary"] for each in answers if each["direction"] == "from_bot"} == {"HTTP 200"}
    else:
        sent = sum(len(slack.log(kind)) for kind in ("events_api", "slash_commands", "interactive"))
        assert len(slack.log("ack")) == sent > 0
