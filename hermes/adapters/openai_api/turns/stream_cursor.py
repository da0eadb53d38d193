"""The text of one stream: what a client has been sent of the replies of a turn, and what it still needs.

A turn can hold several replies: each is set off from the one before by a blank line. A reply that broke off is said
again from its beginning. What repeats the text that was sent is passed over; where it differs, the client is told
that the reply starts again, and gets all of it. So the stream always ends with the whole reply that counts.
"""

from __future__ import annotations

BLANK_LINE = "\n\n"
STARTS_AGAIN = "\n\n[The answer broke off and starts again.]\n\n"


class StreamCursor:
    def __init__(self) -> None:
        self._pieces: list[str] = []  # of the reply that is being said; joined when somebody asks
        self._outgoing = ""  # was sent, and has not been repeated yet
        self._muted = False
        self._earlier = False  # other replies were sent before it
        self._before = ""  # goes out before the next text

    @property
    def said(self) -> str:
        self._pieces = ["".join(self._pieces)] if self._pieces else []
        return self._pieces[0] if self._pieces else ""

    def hear(self, text: str) -> str:
        """Return what of this is to be sent."""
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
        """The reply broke off: it is said once more from its beginning."""
        self._outgoing = self.said
        self._muted = False

    def miss(self) -> None:
        """Something was not heard: what follows it cannot be put after what was sent."""
        self._muted = True

    def next_reply(self) -> None:
        if self._outgoing:  # the reply that counts is shorter than what was sent
            self._before = (STARTS_AGAIN + self.said.removesuffix(self._outgoing)).rstrip()
        self._earlier = self._earlier or bool(self._pieces)
        self._pieces = []
        self._outgoing = ""
        self._muted = False

    def rest(self, whole: str) -> str:
        """Return what is left to send of a reply that is known to its end."""
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
