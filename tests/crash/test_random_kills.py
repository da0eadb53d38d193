"""`kill -9` at random moments under load, against the real daemon and a real endpoint.

Each client remembers what was acknowledged to it (the status line of a stream is the acknowledgement). Afterwards the
model is shown every session once more: no acknowledged message may be missing from that prompt, none may stand there
twice, and their order is the order in which they were acknowledged. The store must verify after every single kill,
and no life may use more of the machine than it should.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hermes.domain.errors import HermesError
from hermes.storage.verify import verify
from tests.crash import figures
from tests.support.daemon_process import DaemonProcess
from tests.support.judge import Acknowledged, Crashed, History, Looked, Sent, judge
from tests.support.waiting import eventually

KILLS = int(os.environ.get("HERMES_TEST_KILLS", "12"))
CLIENTS = 8
MESSAGES = 100  # in a session: a model is shown all of them each time
SEED = int(os.environ.get("HERMES_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 32)

pytestmark = pytest.mark.timeout(120 + 10 * KILLS)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    log = tmp_path / "requests.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--log", str(log)], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().decode().strip(), log
        server.terminate()


def test_no_acknowledged_message_is_lost_or_doubled_by_kills_at_random_moments(endpoint: tuple[str, Path]) -> None:
    url, log = endpoint
    config = f'model: {{provider: openai, base_url: "{url}", name: fake, api_key_env: ""}}\n'
    chance = random.Random(SEED)
    print(f"seed {SEED}, {KILLS} kills")
    with DaemonProcess(config=config) as daemon:
        clients = [Client(number, daemon, random.Random(f"{SEED}-{number}")) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        history = History()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 2.5))
            history.add(*figures.at_the_end_of_a_life(daemon))
            daemon.address = ""  # until the next life: its port may be somebody else's meanwhile
            daemon.kill()
            history.add(Crashed(at=time.monotonic()))
            assert verify(daemon.home / "store") == []
            daemon.start()
            history.add(*figures.at_the_start_of_a_life(daemon))
        for client in clients:
            client.finish()
        answered = sum(client.answered for client in clients)
        assert answered > KILLS, "the load was too light to prove anything"
        for client in clients:
            history.add(*client.history.happenings)
        sent = {each.inbound for each in history.of(Sent)}
        history.add(*(look(daemon, log, session, sent) for session in sessions_of(history)))
    print(f"random kills: {KILLS} over HTTP, {len(sent)} messages, {answered} answers; {figures.most(history)}")
    assert judge(history) == []


class Client(threading.Thread):
    """Talks, often without a pause, and begins anew when it has said much; when the daemon is gone, it waits."""

    def __init__(self, number: int, daemon: DaemonProcess, chance: random.Random) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.history = History()
        self.answered = 0
        self._number = number
        self._daemon = daemon
        self._chance = chance
        self._session = ""
        self._done = threading.Event()
        self._problem: BaseException | None = None

    def finish(self) -> None:
        self._done.set()
        self.join(60)
        assert not self.is_alive()
        if self._problem is not None:
            raise self._problem

    def run(self) -> None:
        count = 0
        try:
            while not self._done.is_set():
                count += 1
                self._session = f"client-{self._number}-{count // MESSAGES}"
                self._say(f"client {self._number} message {count}", again=self._chance.random() < 0.5)
                if self._chance.random() < 0.5:
                    time.sleep(self._chance.uniform(0, 2))
        except BaseException as problem:  # noqa: BLE001 - told to the test's thread
            self._problem = problem

    def _say(self, text: str, *, again: bool) -> None:
        """Send it; after a cut either leave it at that, or send the same again under the same key."""
        self.history.add(Sent(inbound=text, at=time.monotonic()))
        for _ in range(1000):
            try:
                self._stream(text)
            except (OSError, http.client.HTTPException):
                if self._done.is_set() or not again:
                    return
                time.sleep(0.02)
            else:
                return

    def _stream(self, text: str) -> None:
        address = urlsplit(self._daemon.address)
        if not address.port:
            raise OSError("nobody is there")
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        try:
            body = {"model": "hermes", "stream": True, "messages": [{"role": "user", "content": text}]}
            headers = {
                "Authorization": f"Bearer {self._daemon.key}",
                "Content-Type": "application/json",
                "X-Hermes-Session-Id": self._session,
                "Idempotency-Key": text,
            }
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            if response.status == 409:  # the turn waits in a session that is suspended: it will be looked at later
                assert b"session_suspended" in response.read()
                self._take_down(response, text)
                return
            if response.status != 200:
                assert response.status in (429, 503), response.read()
                raise OSError(f"refused for now: {response.status}")
            self._take_down(response, text)
            if b"data: [DONE]" not in response.read():
                raise OSError("cut off")
            self.answered += 1
        finally:
            connection.close()

    def _take_down(self, response: http.client.HTTPResponse, text: str) -> None:
        session = response.headers["X-Hermes-Session-Id"]
        self.history.add(Acknowledged(inbound=text, at=time.monotonic(), session=session))


def sessions_of(history: History) -> list[str]:
    return list(dict.fromkeys(each.session for each in history.of(Acknowledged)))


def look(daemon: DaemonProcess, log: Path, session: str, sent: set[str]) -> Looked:
    """Show the session to the model once more: what it is shown is what was kept."""
    try:
        daemon.admin.post(f"/sessions/{session}/resume", {"reason": "the test looks"})
    except HermesError as error:
        assert "not suspended" in str(error)  # noqa: PT017 - most are not
    eventually(
        lambda: daemon.admin.get(f"/sessions/{session}?exact=1&tail=0")["session"]["phase"] == "idle", within_s=60
    )
    question, before = f"show me {session}", log.stat().st_size
    assert daemon.ask(question, session=session).status == 200
    prompt = next(texts for texts in prompts(log, before) if texts[-1] == question)
    return Looked(session=session, inbounds=tuple(text for text in prompt if text in sent))


def prompts(log: Path, start: int) -> Iterator[list[str]]:
    """From that place of the log on: after hundreds of kills it is long."""
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            yield [m["content"] for m in json.loads(line)["messages"] if m["role"] == "user"]
