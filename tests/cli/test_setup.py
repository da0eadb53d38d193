"""`hermes setup`: tokens are checked and kept private, and the rest of the configuration is unchanged."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from hermes.app.factories.slack import tokens, tokens_in
from hermes.cli.main import main
from hermes.cli.setup import setup, slack_check
from hermes.cli.setup.platform_check import BadTokenError, UnreachableError
from hermes.config.home import Home
from hermes.config.loader import load_config
from tests.cli.conftest import Hermes, command
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support.slack_state import TEAM
from tests.support.telegram_server import TOKEN, Fault, TelegramServer

ANN = 7


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as server:
        yield server


def test_a_good_token_is_kept_in_a_private_file_and_the_comments_stay(
    server: TelegramServer, home: Home, hermes: Hermes
) -> None:
    home.config_file.write_text("# mine\nlog:\n  level: DEBUG  # loud\n")
    server.say(ANN, ANN, "hello")
    done = hermes("setup", "telegram", "--base-url", server.base_url, "--allow", str(ANN), input=f"{TOKEN}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "is set up (@" in done.stdout
    assert "Sent a first message to 7." in done.stdout
    assert "Next: run `hermes daemon`." in done.stdout
    assert len(server.replies(ANN)) == 1

    text = home.config_file.read_text()
    assert text.startswith("# mine\nlog:\n  level: DEBUG  # loud\n")
    assert TOKEN not in text + done.stdout
    telegram = load_config(home, {}).telegram
    assert (telegram.enabled, telegram.allowed_users) == (True, ("7",))
    assert telegram.token({}).reveal() == TOKEN
    kept = home.data_dir / "telegram.token"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert sorted(home.data_dir.glob("*.new")) == []

    more = hermes(
        "setup", "telegram", "--base-url", server.base_url, "--admin", "9", "--no-hello", "--json", input=TOKEN
    )
    assert json.loads(more.stdout)["greeted"] == {}
    telegram = load_config(home, {}).telegram
    assert (telegram.allowed_users, telegram.admins) == (("7",), ("9",))


@pytest.mark.parametrize(("typed", "said"), [
    ("", "the bot token is empty"),
    ("hunter2", "this is not a bot token"),
    ("123:wrong-token-of-nobody-in-particular", "Telegram does not know this token"),
])  # fmt: skip
def test_a_bad_token_changes_nothing_and_is_not_shown(
    server: TelegramServer, home: Home, hermes: Hermes, typed: str, said: str
) -> None:
    done = hermes("setup", "telegram", "--base-url", server.base_url, input=f"{typed}\n")
    assert done.returncode == 78
    assert said in done.stderr
    assert not typed or typed not in done.stderr
    assert list(home.data_dir.iterdir()) == []


def test_a_platform_that_does_not_answer_is_named_and_nothing_is_changed(
    server: TelegramServer, home: Home, hermes: Hermes
) -> None:
    server.fail("getMe", Fault.bad_gateway())
    away = hermes("setup", "telegram", "--base-url", server.base_url, input=TOKEN)
    assert "the response is not from Telegram" in away.stderr
    gone = hermes("setup", "telegram", "--base-url", "http://127.0.0.1:9", input=TOKEN)
    assert (gone.returncode, TOKEN in gone.stderr) == (75, False)
    assert "Telegram cannot be reached" in gone.stderr
    assert list(home.data_dir.iterdir()) == []


def test_a_wrong_id_changes_nothing(server: TelegramServer, home: Home, hermes: Hermes) -> None:
    done = hermes("setup", "telegram", "--base-url", server.base_url, "--allow", "ann", input=TOKEN)
    assert "must be numeric user ids" in done.stderr
    assert not home.config_file.exists()
    assert not (home.data_dir / "telegram.token").exists()


def test_privacy_mode_is_reported(server: TelegramServer, home: Home, hermes: Hermes) -> None:
    options = ("setup", "telegram", "--base-url", server.base_url, "--no-hello")
    assert "privacy mode" not in hermes(*options, input=TOKEN).stdout
    server.privacy = True
    told = " ".join(hermes(*options, input=TOKEN).stdout.split())
    assert (
        "Privacy mode of the bot is on: telegram.wake_words, free_response_chats and require_mention: false need"
        in told
    )
    assert "/setprivacy" in json.loads(hermes(*options, "--json", input=TOKEN).stdout)["remarks"][0]


def test_a_person_who_never_wrote_to_the_bot_cannot_be_greeted(
    server: TelegramServer, home: Home, hermes: Hermes
) -> None:
    server.fail("sendMessage", Fault(status=400, description="Bad Request: chat not found"))
    done = hermes("setup", "telegram", "--base-url", server.base_url, "--allow", "7", input=TOKEN)
    assert done.returncode == 0
    assert "Could not send a message to 7" in done.stdout
    assert "only write to users who wrote to it first" in done.stdout


def test_terminal_setup_hides_tokens_and_allows_a_second_try(server: TelegramServer, home: Home) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command("setup", "telegram", "--base-url", server.base_url, "--no-hello"),
        stdin=child, stdout=child, stderr=child, start_new_session=True, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    os.close(child)
    said = ""
    for prompt, line in (("Bot token", "hunter2"), ("Bot token", TOKEN), ("Id:", "7")):
        said += until_shown(parent, prompt)
        os.write(parent, f"{line}\n".encode())
    said += until_shown(parent, "Next: run")
    assert process.wait(20) == 0
    os.close(parent)
    assert "this is not a bot token" in said
    assert "@BotFather" in said
    assert TOKEN not in said
    assert load_config(home, {}).telegram.admins == ("7",)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, *typed: str) -> list[str]:
    """Answers for what is asked, in their order; returns the prompts."""
    prompts: list[str] = []
    answers = iter(typed)

    def answer(prompt: str, *, secret: bool = False) -> str:
        prompts.append(prompt)
        print(prompt)
        return next(answers)

    monkeypatch.setattr(setup, "_typed", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    return prompts


def test_a_wrong_id_is_asked_for_again_and_the_token_is_kept(
    server: TelegramServer, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = at_a_terminal(monkeypatch, TOKEN, "@ann", "-7", "7")
    assert main(["setup", "telegram", "--base-url", server.base_url, "--no-hello"]) == 0
    assert [prompt.split()[0] for prompt in prompts] == ["Bot", "Id:", "Id:", "Id:"]
    told = " ".join(capsys.readouterr().out.split())
    assert "@ann: must be numeric user ids" in told
    assert load_config(home, {}).telegram.admins == ("7",)


def test_missing_package_is_reported_first(
    server: TelegramServer, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "telegram", None)  # as if it were not installed
    at_a_terminal(monkeypatch, TOKEN, "")
    assert main(["setup", "telegram", "--base-url", server.base_url, "--no-hello"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("The package for Telegram is not installed. Install it with:\n")
    assert told.index("pip install") < told.index("Bot token")


def until_shown(descriptor: int, text: str) -> str:
    said = b""
    while text.encode() not in said:
        said += os.read(descriptor, 4096)
    return said.decode()


# ---------------------------------------------------------------- Slack


class _Slack(BaseHTTPRequestHandler):
    answers: ClassVar[dict[tuple[str, str], dict[str, object]]] = {
        ("/auth.test", "xoxb-good"): {"ok": True, "user": "hermes", "team": "Acme"},
        ("/auth.test", "xoxb-old"): {"ok": False, "error": "token_revoked"},
        ("/auth.test", "xoxb-odd"): {"ok": False, "error": "ratelimited"},
        ("/apps.connections.open", "xapp-good"): {"ok": True, "url": "wss://x"},
        ("/chat.postMessage", "xoxb-good"): {"ok": True},
    }

    def do_POST(self) -> None:
        token = self.headers["Authorization"].removeprefix("Bearer ")
        body = json.dumps(self.answers.get((self.path, token), {"ok": False, "error": "invalid_auth"})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def slack() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slack) as server:
        thread = threading.Thread(target=lambda: server.serve_forever(0.05))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(30)


def test_both_tokens_of_slack_are_checked_there(slack: str) -> None:
    setup = slack_check.SETUP
    bot, app = setup.tokens
    assert bot.check(slack, "xoxb-good") == "hermes in Acme"
    assert app.check(slack, "xapp-good") == "Socket Mode works"
    setup.greet(slack, "xoxb-good", "U1")


@pytest.mark.parametrize(("number", "token", "said"), [
    (0, "xapp-good", "starts with xoxb-"),
    (0, "xoxb-unknown", "Slack does not know this token"),
    (0, "xoxb-old", "was revoked"),
    (1, "xoxb-good", "starts with xapp-"),
    (1, "xapp-bad", "Slack does not know this token"),
])  # fmt: skip
def test_bad_slack_token_is_explained(slack: str, number: int, token: str, said: str) -> None:
    with pytest.raises(BadTokenError, match=said):
        slack_check.SETUP.tokens[number].check(slack, token)


def test_other_slack_errors_are_not_bad_tokens(slack: str) -> None:
    with pytest.raises(UnreachableError, match="ratelimited"):
        slack_check.SETUP.tokens[0].check(slack, "xoxb-odd")


@pytest.fixture
def workspace() -> Iterator[SlackServer]:
    with SlackServer() as server:
        server.change(lambda world: world.channels.update(UANN=TEAM))  # a person's id opens their direct messages
        yield server


def test_slack_is_set_up_with_good_tokens_and_a_hello(workspace: SlackServer, home: Home, hermes: Hermes) -> None:
    typed = f"{BOT_TOKEN}\n{APP_TOKEN}\n"
    options = ("setup", "slack", "--base-url", workspace.base_url, "--allow", "UANN")
    done = hermes(*options, input=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Slack is set up (hermes in a workspace, Socket Mode works)" in done.stdout
    assert "Sent a first message to UANN." in done.stdout
    assert len(workspace.replies("UANN")) == 1
    config = load_config(home, {})
    assert (config.slack.enabled, config.slack.allowed_users) == (True, ("UANN",))
    [found] = tokens(config.slack, {})
    assert found.app_token is not None
    assert (found.bot_token.reveal(), found.app_token.reveal()) == (BOT_TOKEN, APP_TOKEN)
    assert (home.data_dir / "slack.token").stat().st_mode & 0o777 == 0o600
    assert not any(token in home.config_file.read_text() + done.stdout for token in (BOT_TOKEN, APP_TOKEN))

    workspace.scopes -= {"files:read", "users:read"}
    less = hermes(*options, "--no-hello", input=typed)
    assert "without the scopes files:read, users:read: add them, as in `hermes slack manifest`" in less.stdout


@pytest.mark.parametrize(("typed", "said"), [
    ("xoxb-of-nobody\nxapp-x\n", "Bot token: Slack does not know this token"),
    (f"{BOT_TOKEN}\nxapp-of-nobody\n", "App token: Slack does not know this token"),
    (f"{APP_TOKEN}\n{BOT_TOKEN}\n", "starts with xoxb-"),
    (f"{BOT_TOKEN}\n", "the app token is empty"),
    (f"{BOT_TOKEN}\n{APP_TOKEN}\n", "it needs connections:write"),
])  # fmt: skip
def test_a_bad_token_of_slack_changes_nothing_and_is_not_shown(
    workspace: SlackServer, home: Home, hermes: Hermes, typed: str, said: str
) -> None:
    workspace.scopes.discard("connections:write")
    done = hermes("setup", "slack", "--base-url", workspace.base_url, input=typed)
    assert done.returncode == 78
    assert said in done.stderr
    assert not any(token in done.stderr for token in typed.split())
    assert list(home.data_dir.iterdir()) == []


def test_slack_advice_names_manifest_tokens_and_pairing(workspace: SlackServer, home: Home, hermes: Hermes) -> None:
    for word in ("`hermes slack manifest`", "OAuth & Permissions", "App-Level Tokens", "connections:write"):
        assert word in slack_check.SETUP.advice
    done = hermes("setup", "slack", "--base-url", workspace.base_url, input=f"{BOT_TOKEN}\n{APP_TOKEN}\n")
    assert "`hermes pairing approve slack CODE` approves it" in done.stdout


def test_failed_first_message_on_slack_is_reported(workspace: SlackServer, home: Home, hermes: Hermes) -> None:
    workspace.scopes.discard("chat:write")
    typed = f"{BOT_TOKEN}\n{APP_TOKEN}\n"
    done = hermes("setup", "slack", "--base-url", workspace.base_url, "--allow", "UANN", input=typed)
    assert done.returncode == 0
    assert (
        "Could not send a message to UANN: this token lacks a scope (missing_scope): it needs chat:write"
        in done.stdout
    )


def kept(home: Home) -> list[tuple[str, str, str, str]]:
    """Of each workspace: its id, and its secrets."""
    return [
        (
            each.team,
            each.bot_token.reveal(),
            each.app_token.reveal() if each.app_token else "",
            each.signing_secret.reveal() if each.signing_secret else "",
        )
        for each in tokens_in(load_config(home, {}).slack.tokens_file)
    ]


def test_second_workspace_is_added_and_repeated_setup_replaces_its_own(
    workspace: SlackServer, home: Home, hermes: Hermes
) -> None:
    workspace.tokens |= {"xoxb-other": "T0002", "xoxb-anew": TEAM}
    options = ("setup", "slack", "--base-url", workspace.base_url, "--no-hello")
    for bot in (BOT_TOKEN, "xoxb-other"):
        done = hermes(*options, input=f"{bot}\n{APP_TOKEN}\n")
        assert (done.returncode, done.stderr) == (0, "")
    assert f"Kept from an earlier setup: {TEAM}." in done.stdout
    assert kept(home) == [(TEAM, BOT_TOKEN, APP_TOKEN, ""), ("T0002", "xoxb-other", APP_TOKEN, "")]
    hermes(*options, input=f"xoxb-anew\n{APP_TOKEN}\n")
    assert kept(home) == [(TEAM, "xoxb-anew", APP_TOKEN, ""), ("T0002", "xoxb-other", APP_TOKEN, "")]
    assert len(tokens(load_config(home, {}).slack, {})) == 2


def test_token_file_without_teams_is_read_and_unknown_tokens_are_kept(
    workspace: SlackServer, home: Home, hermes: Hermes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace.tokens["xoxb-anew"] = TEAM
    own = tmp_path_factory.mktemp("own") / "mine.yaml"
    own.write_text(
        f"- bot_token: {BOT_TOKEN}\n  app_token: xapp-old\n- {{bot_token: xoxb-gone, app_token: xapp-x}}\n"
    )
    home.config_file.write_text(f"slack:\n  tokens_file: {own}\n")
    options = ("setup", "slack", "--base-url", workspace.base_url, "--no-hello")
    done = hermes(*options, input=f"xoxb-anew\n{APP_TOKEN}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert kept(home) == [(TEAM, "xoxb-anew", APP_TOKEN, ""), ("", "xoxb-gone", "xapp-x", "")]
    assert BOT_TOKEN in own.read_text()  # the owner's, and not touched


def test_over_http_the_signing_secret_is_asked_for_and_kept(
    workspace: SlackServer, home: Home, hermes: Hermes
) -> None:
    secret = "0123456789abcdef" * 2
    options = ("setup", "slack", "--base-url", workspace.base_url, "--no-hello")
    bad = hermes(*options, "--transport", "http", input=f"{BOT_TOKEN}\nhunter2\n")
    assert bad.returncode == 78
    assert "Signing secret: this is not a signing secret" in bad.stderr
    none = hermes(*options, "--transport", "http", input=f"{BOT_TOKEN}\n")
    assert "the signing secret is empty" in none.stderr
    assert list(home.data_dir.iterdir()) == []

    done = hermes(*options, "--transport", "http", input=f"{BOT_TOKEN}\n{secret}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert load_config(home, {}).slack.transport == "http"
    assert secret not in done.stdout + home.config_file.read_text()
    again = hermes(*options, input=f"{BOT_TOKEN}\n\n")  # as it is configured, with the secret that is there
    assert "signing secret unchanged" in again.stdout
    assert kept(home) == [(TEAM, BOT_TOKEN, "", secret)]

    workspace.tokens["xoxb-other"] = "T0002"
    back = hermes(*options, "--transport", "socket", input=f"xoxb-other\n{APP_TOKEN}\n")
    assert f"These workspaces are not set up for socket yet; set them up before the start: {TEAM}." in back.stdout
    assert hermes(*options, input=f"{BOT_TOKEN}\n{APP_TOKEN}\n").returncode == 0
    assert kept(home) == [(TEAM, BOT_TOKEN, APP_TOKEN, secret), ("T0002", "xoxb-other", APP_TOKEN, "")]
    assert load_config(home, {}).slack.transport == "socket"


def test_the_transport_is_slacks_alone(home: Home, hermes: Hermes) -> None:
    done = hermes("setup", "telegram", "--transport", "http", input="")
    assert (done.returncode, "--transport is for Slack only" in done.stderr) == (78, True)
