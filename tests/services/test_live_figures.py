"""Samples of the daemon's figures: differences, means, and a bounded ring."""

from __future__ import annotations

from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace
from hermes.ports.metrics import TURN_BOUNDS_S, DaemonFigures, Distribution, TurnFigures
from hermes.services.live_figures import KEPT, LiveFigures
from tests.support.fakes import FakeOperations


class Daemon:
    def __init__(self) -> None:
        self.now = 100.0
        self.ended = {"answered": 1, "timeout": 1}
        self.latency = Distribution(TURN_BOUNDS_S)
        self.latency.observe(9.0)
        self.usage = Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.5)
        self.commits = 3

    async def figures(self) -> DaemonFigures:
        turns = TurnFigures(
            ended=dict(self.ended),
            latency_s=self.latency,
            first_token_s=Distribution(TURN_BOUNDS_S),
            used={"m": self.usage},
        )
        return replace(await FakeOperations().figures(), turns=turns, commits=self.commits)


async def test_sample_has_what_happened_since_the_one_before() -> None:
    daemon = Daemon()
    live = LiveFigures(daemon.figures, lambda: daemon.now)
    await live.take()
    assert not live.after(0)  # nothing to compare with
    daemon.now += 5
    daemon.ended = {"answered": 3, "timeout": 2}
    daemon.latency.observe(1.0)
    daemon.latency.observe(3.0)
    daemon.usage += Usage(prompt_tokens=7, completion_tokens=2, cost_usd=0.25)
    daemon.commits = 10
    await live.take()
    sample = live.latest
    assert sample is not None
    assert (sample.number, sample.took_s, sample.answered, sample.failed) == (1, 5.0, 2, 1)
    assert (sample.latency_s, sample.first_token_s) == (2.0, None)
    assert (sample.prompt_tokens, sample.completion_tokens, sample.cost_usd) == (7, 2, 0.25)
    assert sample.commits == 7


async def test_ring_is_bounded_and_read_from_a_number_on() -> None:
    daemon = Daemon()
    live = LiveFigures(daemon.figures, lambda: daemon.now)
    for _ in range(KEPT + 11):
        daemon.now += 5
        await live.take()
    assert [each.number for each in live.after(0)] == list(range(11, KEPT + 11))
    assert [each.number for each in live.after(KEPT + 8)] == [KEPT + 9, KEPT + 10]
    assert live.after(KEPT + 10) == []
    assert len(live.after(10**6)) == KEPT  # a number of an earlier run of the daemon
