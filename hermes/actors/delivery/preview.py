"""Preview of a running turn in a chat: a fold over its live events. Pure."""

from __future__ import annotations

from hermes.domain.events import CallAnswered, CallAsked, CallBegan, CallEnded, Event, Notice, TextDelta, TextReset
from hermes.domain.values import dataclass, replace

CURSOR = " ▌"  # more is coming


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    text: str = ""  # of the answer so far
    doing: tuple[tuple[str, str], ...] = ()  # calls that run: id, and what they do in one line
    done: int = 0  # calls that have ended
    asking: bool = False  # waits for a person: no typing sign
    notice: str = ""  # why nothing moves

    def after(self, event: Event) -> Stream:
        match event:
            case TextDelta():
                return replace(self, text=self.text + event.text, notice="")
            case Notice():
                return replace(self, notice=event.text)
            case TextReset():
                return replace(self, text="")
            case CallBegan():
                named = event.summary.startswith(event.name)
                what = event.summary if named else ": ".join(filter(None, (event.name, event.summary)))
                return replace(self, text="", notice="", doing=(*self.doing, (event.call, what)))
            case CallEnded():
                left = tuple(each for each in self.doing if each[0] != event.call)
                return replace(self, doing=left, done=self.done + 1)
            case CallAsked():
                return replace(self, asking=True)
            case CallAnswered():
                return replace(self, asking=False)
        return self

    def written(self) -> str:
        """Return the answer so far."""
        return self.text.rstrip()

    def shown(self) -> str:
        """Return the preview. Empty: there is nothing to show yet."""
        if written := self.written():
            return written + CURSOR
        if self.doing:
            return "\n".join(f"⚙ {what}" for _, what in self.doing)
        if self.notice:
            return f"⏳ {self.notice}"
        return f"⚙ {self.done} done" if self.done else ""
