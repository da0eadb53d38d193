"""Parser of server-sent events. Pure: lines in, events out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEvent:
    id: str  # of the last event with an id, this one included
    name: str
    data: str


@dataclass(slots=True)
class EventParser:
    last_id: str = ""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> RawEvent | None:
        """Take a line without its end. Returns the event that it completes, if any."""
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                self.last_id = value
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
        return None

    def _complete(self) -> RawEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return RawEvent(id=self.last_id, name=name or "message", data="\n".join(data)) if data else None
