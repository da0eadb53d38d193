"""Source of the live view: the daemon behind its admin socket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import path_of
from hermes.cli.client import AdminClient, AdminError
from hermes.cli.inspection.inspect import message_text
from hermes.cli.inspection.tail import event_line, is_left_out
from hermes.cli.inspection.trace import step_lines
from hermes.cli.output import count
from hermes.cli.session_lookup import DaemonRecords
from hermes.domain.errors import HermesError
from hermes.tui.top.sample import Sample, sample_of
from hermes.tui.top.source import LiveSource, Pending, Said, SampleWish, SessionDetail

if TYPE_CHECKING:
    from collections.abc import Callable

_MESSAGES = 50
_TRACED = 10
_POLL_S = 0.25
_STALLED_POLLS = 4
_LINE = 72  # characters
_TIMEOUT_S = 5.0


class DaemonSource(LiveSource):
    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._records = DaemonRecords(client)

    def raw(self, wish: SampleWish) -> Any:
        """Return a sample as the daemon gives it."""
        try:
            return self._client.get(
                "/live",
                timeout_s=_TIMEOUT_S,
                sort=wish.sort,
                find=wish.find or None,
                limit=wish.limit,
                busy=1 if wish.is_busy else None,
                children=1 if wish.children else None,
            )
        except AdminError as error:
            if error.is_unknown_address:
                raise HermesError(
                    "the running daemon has no live view: it is another version; run `hermes restart`"
                ) from error
            raise

    def sample(self, wish: SampleWish) -> Sample:
        return sample_of(self.raw(wish))

    def beginning(self, session: str) -> str:
        return self._records.beginning(session)

    def page(self, session: str) -> SessionDetail:
        view = self._records.view(session, tail=_MESSAGES, exact=False)
        found = view["session"]
        traced = self._records.trace(found["id"], _TRACED)["messages"]
        usage = found["usage"]
        tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        waits = f", waits for {view['waits_for']}" if view.get("waits_for") else ""
        return SessionDetail(
            id=found["id"],
            title=found["title"],
            phase=f"{found['phase']}{waits}",
            facts=f"{found['platform']}, {count(found['turns'], 'turn')}, {count(tokens, 'token')}",
            transcript=tuple(
                Said(
                    who="note" if each.get("note") else str(each["role"]),
                    at=each["at"],
                    text=message_text(each),
                )
                for each in view["transcript"]
            ),
            timeline=tuple(line for each in traced for line in ["", *step_lines(each)])[1:],
            why=view["why"],
        )

    def pending(self, session: str) -> Pending | None:
        found = self._client.get(path_of("api", "sessions", session)).get("pending")
        if found is None:
            return None
        return Pending(
            session=found["session_id"],
            call=found["call_id"],
            question=found["question"],
            choices=tuple(found["choices"]),
            approval=found["kind"] == "approval",
        )

    def answer(self, pending: Pending, answer: str) -> None:
        body = {"answer": answer, "call_id": pending.call}
        self._client.post(path_of("api", "sessions", pending.session, "answer"), body)

    def stop(self, session: str) -> None:
        self._client.post(path_of("sessions", session, "stop"), {"reason": "stopped in hermes top"})

    def kill(self, process: str) -> None:
        self._client.post(path_of("api", "processes", process, "kill"))

    def follow(self, session: str, show: Callable[[str], None], is_over: Callable[[], bool]) -> None:
        text = StreamedText()
        with self._client.follow(f"/api/events?session_id={session}") as feed:
            for event in feed.poll(_POLL_S):
                if is_over():
                    return
                if event is None:
                    lines = text.pause()
                else:
                    name, fields = event.name, json.loads(event.data)
                    is_text = name == "message.delta"
                    lines = text.add(fields["text"]) if is_text else text.rest()
                    if not is_text and not is_left_out(name):
                        lines.append(event_line(name, fields))
                for line in lines:
                    show(line)


class StreamedText:
    """Cuts streamed text into lines: at line ends, after a line's worth of words, and when the text stalls."""

    def __init__(self) -> None:
        self._written = ""
        self._pauses = 0

    def add(self, text: str) -> list[str]:
        self._pauses = 0
        *lines, self._written = f"{self._written}{text}".split("\n")
        while len(self._written) > _LINE and " " in self._written[:_LINE]:
            place = self._written.rindex(" ", 0, _LINE)
            lines.append(self._written[:place])
            self._written = self._written[place + 1 :]
        return lines

    def pause(self) -> list[str]:
        """Note that nothing came for one poll. Return what waits, if the text stalls."""
        self._pauses += 1
        return self.rest() if self._pauses == _STALLED_POLLS else []

    def rest(self) -> list[str]:
        lines, self._written = [self._written] if self._written else [], ""
        return lines
