"""Keys of one endpoint. A key that the endpoint refuses or limits rests while another one is used."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.values import dataclass
from hermes.ports.given import Clock

REFUSED_REST_S = 600.0  # after 401, 402 and 403
LIMITED_REST_S = 60.0  # after 429, unless the endpoint names a time
_ROTATING = frozenset({FailureKind.AUTH, FailureKind.BILLING, FailureKind.RATE_LIMIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKey:
    value: str = ""  # empty: none is needed
    source: str = ""  # variable or file that it comes from


class KeyPool:
    def __init__(self, keys: Sequence[ProviderKey], clock: Clock) -> None:
        self._keys = tuple(keys) or (ProviderKey(),)
        self._clock = clock
        self._rests_until = dict.fromkeys(self._keys, 0.0)

    @property
    def size(self) -> int:
        return len(self._keys)

    def current(self) -> ProviderKey:
        """Return the first key that does not rest; if all rest, the one that is back first."""
        now = self._clock()
        return min(self._keys, key=lambda key: max(self._rests_until[key] - now, 0.0))

    def rotate(self, key: ProviderKey, failure: Failure) -> bool:
        """Let the key rest if the failure is about it. Return whether another key can be used now."""
        if len(self._keys) == 1 or failure.kind not in _ROTATING:
            return False
        limited = failure.kind is FailureKind.RATE_LIMIT
        rest_s = (failure.retry_after_s or LIMITED_REST_S) if limited else REFUSED_REST_S
        now = self._clock()
        self._rests_until[key] = now + rest_s
        return any(until <= now for until in self._rests_until.values())
