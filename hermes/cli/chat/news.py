"""What happens in a session while its person sits at the prompt of `hermes chat`.

The end of a background process, what the agent says to it and may ask, what somebody else writes: whatever the turns
of this chat did not show already. It is looked for in what is stored, so nothing is missed in between.
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

_PATIENCE_S = 2.0  # the next look comes soon
_AT_ONCE = 50  # messages


class News:
    def __init__(self, conversation: Conversation, client: AdminClient, *, resumed: bool) -> None:
        self._conversation = conversation
        self._client = client
        self._session = conversation.session
        self._seen: int | None = None if resumed else -1  # None: all that is there now
        self._asked = ""

    def look(self) -> list[str]:
        """What is new, one text each."""
        try:
            return self._look()
        except HermesError:  # no session yet, or no daemon at the moment: whoever types will be told
            return []

    def _look(self) -> list[str]:
        view = self._get("")
        if view["session"]["id"] != self._session:  # it begins with what was said before
            self._session, self._seen = view["session"]["id"], None
        if self._seen is None:
            last = self._get("/messages", limit=1)["messages"]
            self._seen = last[-1]["seq"] if last else -1
            return []
        messages = self._get("/messages", after=self._seen, limit=_AT_ONCE)["messages"]
        if messages:
            self._seen = messages[-1]["seq"]
        told = [_told(each) for each in messages if each["turn"] not in self._conversation.turns]
        return [*filter(None, told), *self._question(view.get("pending"))]

    def _question(self, asked: Mapping[str, Any] | None) -> list[str]:
        if asked is None or asked["call_id"] == self._asked or asked["turn_id"] in self._conversation.turns:
            return []
        self._asked = asked["call_id"]
        how = "/approve or /deny" if asked["kind"] == "approval" else "your next message is the answer"
        return [f"It asks: {printable(str(asked['question']))} ({how})"]

    def _get(self, rest: str, **query: object) -> Any:
        path = f"/api{session_path(self._conversation.session)}{rest}"
        return self._client.get(path, timeout_s=_PATIENCE_S, **query)


def _told(message: Mapping[str, Any]) -> str:
    """Empty for what is no news to a person: what tools returned, calls without a word."""
    content = message["content"]
    if not isinstance(content, str) or message["role"] not in ("user", "assistant"):
        return ""
    text = printable(content).strip()
    return text if message["role"] == "assistant" else "\n".join(f"> {line}" for line in text.splitlines())
