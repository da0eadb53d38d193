"""Turn meter: counts turns, their latency and their tokens from live events. Keeps no content."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hermes.domain.events import Event, TextDelta, TurnAccepted, TurnAnswered, TurnBegan, TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.turn.usage import Usage
from hermes.ports.given import Clock
from hermes.ports.metrics import TURN_BOUNDS_S, Distribution, TurnFigures

ANSWERED: Final = "answered"
_MAX_OPEN: Final = 100_000  # turns; beyond that, latency is not measured


class TurnMeter:
    NOTED: Final = (TextDelta, TurnAccepted, TurnBegan, TurnAnswered, TurnGaveUp)  # events for `note`

    def __init__(self, steady: Clock) -> None:
        self._steady = steady
        self._began: dict[TurnId, float] = {}
        self._silent: set[TurnId] = set()  # turns without text so far
        self._ended: Counter[str] = Counter()
        self._latency_s = Distribution(TURN_BOUNDS_S)
        self._first_token_s = Distribution(TURN_BOUNDS_S)
        self._used: dict[str, Usage] = {}

    def note(self, event: Event) -> None:
        match event:
            case TextDelta(turn=turn):
                if turn in self._silent:
                    self._silent.discard(turn)
                    self._first_token_s.observe(self._steady() - self._began[turn])
            case TurnAccepted(turn=turn) | TurnBegan(turn=turn):
                if turn not in self._began and len(self._began) < _MAX_OPEN:
                    self._began[turn] = self._steady()
                    self._silent.add(turn)
            case TurnAnswered(turn=turn, model=model, usage=usage):
                self._used[model] = self._used.get(model, Usage()) + usage
                self._end(turn, ANSWERED)
            case TurnGaveUp(turn=turn, failure=failure):
                self._end(turn, failure.kind.value)
            case _:
                pass

    def _end(self, turn: TurnId, outcome: str) -> None:
        self._ended[outcome] += 1
        self._silent.discard(turn)
        if (began := self._began.pop(turn, None)) is not None:
            self._latency_s.observe(self._steady() - began)

    def figures(self) -> TurnFigures:
        return TurnFigures(
            ended=dict(self._ended),
            latency_s=self._latency_s,
            first_token_s=self._first_token_s,
            used=dict(self._used),
        )
