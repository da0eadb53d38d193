"""Text position of one stream: what a client has received of a turn's text, and what it still needs.

A turn can have several model calls; their texts are separated by a blank line. A call that broke off is repeated from
its beginning. Text that repeats what was sent is skipped. If it differs, the client gets a note and the whole text
again. So the stream always ends with the whole text that counts.
"""

from __future__ import annotations

BLANK_LINE = "\n\n"
STARTS_AGAIN = "\n\n[The answer broke off and starts again.]\n\n"


class StreamCursor:
    def __init__(self) -> None:
        self._pieces: list[str] = []  # of the current text; joined on demand
        self._outgoing = ""  # sent, and not repeated yet
        self._muted = False
        self._earlier = False  # earlier texts were sent
        self._before = ""  # sent before the next text

    @property
    def said(self) -> str:
        self._pieces = ["".join(self._pieces)] if self._pieces else []
        return self._pieces[0] if self._pieces else ""

    def hear(self, text: str) -> str:
        """Add text and return the part of it to send."""
        if self._muted or not text:
            return ""
        if self._outgoing:
            if self._outgoing.startswith(text):
                self._outgoing = self._outgoing.removeprefix(text)
                return ""
            if not text.startswith(self._outgoing):
                return self._start_again(self.said.removesuffix(self._outgoing) + text)
            text = text.removeprefix(self._outgoing)
            self._outgoing = ""
        return self._add(text)

    def again(self) -> None:
        """Start over: the model call broke off and is repeated from its beginning."""
        self._outgoing = self.said
        self._muted = False

    def miss(self) -> None:
        """Note that events were missed: later text cannot be appended to what was sent."""
        self._muted = True

    def next_reply(self) -> None:
        if self._outgoing:  # the final text is shorter than what was sent
            self._before = (STARTS_AGAIN + self.said.removesuffix(self._outgoing)).rstrip()
        self._earlier = self._earlier or bool(self._pieces)
        self._pieces = []
        self._outgoing = ""
        self._muted = False

    def rest(self, whole: str) -> str:
        """Return what is left to send of a complete text."""
        said = self.said
        self._outgoing = ""
        if not whole.startswith(said):
            return self._start_again(whole)
        return self._add(whole.removeprefix(said))

    def _start_again(self, text: str) -> str:
        self._outgoing, self._pieces = "", [text]
        return STARTS_AGAIN + text

    def _add(self, text: str) -> str:
        if not text:
            return ""
        before, self._before = self._before, ""
        apart = BLANK_LINE if not self._pieces and self._earlier else ""
        self._pieces.append(text)
        return before + apart + text
