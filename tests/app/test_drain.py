"""How long a stop waits for turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hermes.app import daemon
from hermes.app.operations import StopRequest
from hermes.config.settings import Config


class OverError(Exception):
    pass


class Busy:
    """A runner that never comes to rest; at each look so many pieces of work are in flight."""

    def __init__(self, looks: Sequence[int]) -> None:
        self._looks = iter(looks)

    @property
    def active(self) -> int:
        for number in self._looks:
            return number
        raise OverError

    async def until_idle(self) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("looks", "times"),
    [
        ([5, 5, 5, 5], 0),
        ([5, 3, 3, 2, 2], 2),
        ([5, 3, 5, 3, 5, 3, 5], 1),  # turns have several calls side by side, again and again
    ],
)
async def test_a_stop_is_put_off_as_often_as_there_is_less_work_than_ever(
    monkeypatch: pytest.MonkeyPatch, looks: list[int], times: int
) -> None:
    monkeypatch.setattr(daemon, "_PROGRESS_S", 0.0)
    parts: dict[str, Any] = dict.fromkeys(daemon.Daemon.__dataclass_fields__)
    parts |= {
        "config": Config(),
        "agent": SimpleNamespace(runner=Busy(looks)),
        "operations": SimpleNamespace(ask_for_time=lambda _: True),
    }
    put_off: list[bool] = []
    with pytest.raises(OverError):
        async with asyncio.timeout(30) as limit:
            await daemon.Daemon(**parts)._until_finished(
                StopRequest(reason="test"), limit, lambda: put_off.append(True)
            )
    assert len(put_off) == times
