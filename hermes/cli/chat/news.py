"""News of a session for the prompt of `hermes chat`: messages and questions that this chat has not shown.

Examples are the end of a background process and the messages of other people. It polls the stored transcript, so
nothing is missed between two polls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.client import session_path
from hermes.cli.output import printable
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.chat.conversation import Conversation
    from hermes.cli.client import AdminClient

_TIMEOUT_S = 2.0  # short: the next poll follows soon
_MAX_MESSAGES = 50  # per poll


class News:
    def __init__(self, conversation: Conversation, client: AdminClient, *, resumed: bool) -> None:
        self._conversation = conversation
        self._client = client
        self._session = conversation.session
        self._seen: int | None = None if resumed else -1  # None: everything stored so far was shown
        self._asked = ""

    def poll(self) -> list[str]:
        """Return the new texts since the last poll."""
        try:
            return self._poll()
        except HermesError:  # no session or no daemon: the next message reports it
            return []

    def _poll(self) -> list[str]:
        view = self._get("")
        if view["session"]["id"] != self._session:  # a successor starts with the carried transcript
            self._session, self._seen = view["session"]["id"], None
        if self._seen is None:
            last = self._get("/messages", limit=1)["messages"]
            self._seen = last[-1]["seq"] if last else -1
            return []
        messages = self._get("/messages", after=self._seen, limit=_MAX_MESSAGES)["messages"]
        if messages:
            self._seen = messages[-1]["seq"]
        texts = [_news_text(each) for each in messages if each["turn"] not in self._conversation.turns]
        return [*filter(None, texts), *self._question(view.get("pending"))]

    def _question(self, asked: Mapping[str, Any] | None) -> list[str]:
        if asked is None or asked["call_id"] == self._asked or asked["turn_id"] in self._conversation.turns:
            return []
        self._asked = asked["call_id"]
        how = "/approve or /deny" if asked["kind"] == "approval" else "your next message is the answer"
        return [f"Question: {printable(str(asked['question']))} ({how})"]

    def _get(self, rest: str, **query: object) -> Any:
        path = f"/api{session_path(self._conversation.session)}{rest}"
        return self._client.get(path, timeout_s=_TIMEOUT_S, **query)


def _news_text(message: Mapping[str, Any]) -> str:
    """Return a message as text; empty for tool results and calls without text."""
    content = message["content"]
    if not isinstance(content, str) or message["role"] not in ("user", "assistant"):
        return ""
    text = printable(content).strip()
    return text if message["role"] == "assistant" else "\n".join(f"> {line}" for line in text.splitlines())
