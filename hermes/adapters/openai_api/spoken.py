"""The text of one stream: what a client has been sent of the replies of a turn, and what it still needs.

A turn can hold several replies: each is set off from the one before by a blank line. A reply that broke off is said
again from its beginning: what repeats what was sent is passed over, and where it goes another way, nothing more of it
is sent. Whoever sends the text asks at the end whether it came out right.
"""

from __future__ import annotations

BLANK_LINE = "\n\n"


class Spoken:
    def __init__(self) -> None:
        self.broken = False  # a reply was not finished as it had begun
        self._pieces: list[str] = []  # of the reply that is being said; joined when somebody asks
        self._owed = ""  # was sent, and has not been repeated yet
        self._muted = False
        self._earlier = False  # other replies were sent before it

    @property
    def said(self) -> str:
        self._pieces = ["".join(self._pieces)] if self._pieces else []
        return self._pieces[0] if self._pieces else ""

    def hear(self, text: str) -> str:
        """What of this is to be sent."""
        if self._muted or not text:
            return ""
        if self._owed:
            if self._owed.startswith(text):
                self._owed = self._owed.removeprefix(text)
                return ""
            if not text.startswith(self._owed):
                self._muted = True
                return ""
            text = text.removeprefix(self._owed)
            self._owed = ""
        return self._add(text)

    def again(self) -> None:
        """The reply broke off: it is said once more from its beginning."""
        self._owed = self.said
        self._muted = False

    def miss(self) -> None:
        """Something was not heard: what follows it cannot be put after what was sent."""
        self._muted = True

    def next_reply(self) -> None:
        self.broken = self.broken or bool(self._owed)
        self._earlier = self._earlier or bool(self._pieces)
        self._pieces = []
        self._owed = ""
        self._muted = False

    def rest(self, whole: str) -> str | None:
        """What is left to send of a reply that is known to its end; None: it began otherwise."""
        said = self.said
        if self.broken or not whole.startswith(said):
            return None
        return self._add(whole.removeprefix(said))

    def _add(self, text: str) -> str:
        if not text:
            return ""
        apart = BLANK_LINE if not self._pieces and self._earlier else ""
        self._pieces.append(text)
        return apart + text
