from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.ports.supervision import Park, Restart
from hermes.supervision.restart_policy import RestartIntensity

POLICY = RestartIntensity(max_restarts=3, within_s=60, first_delay_s=0.1, max_delay_s=1.0)


def test_each_restart_within_the_window_waits_longer_and_the_fourth_death_parks() -> None:
    deaths: list[float] = []
    verdicts = []
    for at in (0.0, 1.0, 2.0, 3.0):
        deaths.append(at)
        verdicts.append(POLICY(deaths, at))
    assert verdicts == [
        Restart(after_s=0.1),
        Restart(after_s=0.2),
        Restart(after_s=0.4),
        Park(reason="it died 4 times within 60 s"),
    ]


def test_old_deaths_are_forgiven() -> None:
    assert POLICY([0.0, 1.0, 2.0, 100.0], 100.0) == Restart(after_s=0.1)


@given(st.lists(st.integers(0, 1000).map(float), min_size=1, max_size=50).map(sorted))
def test_a_child_never_restarts_more_often_than_the_intensity_allows(times: list[float]) -> None:
    restarts = [at for index, at in enumerate(times) if isinstance(POLICY(times[: index + 1], at), Restart)]
    for at in restarts:
        assert sum(1 for other in restarts if at - 60 < other <= at) <= 3
