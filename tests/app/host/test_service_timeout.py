from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes.app.host.service_timeout import seconds_in, service_timeout_s, unit_in, within


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1min 30s", 90), ("10s", 10), ("1h 2ms", 3600.002), ("500ms\n", 0.5), ("infinity", None), ("", None)],
)
def test_systemd_time_spans_are_parsed(written: str, seconds: float | None) -> None:
    assert seconds_in(written) == (None if seconds is None else pytest.approx(seconds))


def test_unit_is_read_from_the_cgroup() -> None:
    assert unit_in("0::/system.slice/hermes.service\n") == ("hermes.service", False)
    user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/hermes.service\n"
    assert unit_in(user) == ("hermes.service", True)
    assert unit_in("0::/user.slice/session-2.scope\n") is None
    assert unit_in("") is None


def test_shorter_timeout_wins_with_a_margin() -> None:
    assert within(10, None) == 10
    assert within(10, 90) == 10
    assert within(10, 5) == 4
    assert within(10, 0.5) == 1


async def test_no_service_timeout_outside_of_systemd() -> None:
    assert await service_timeout_s({}) is None


async def test_failing_systemctl_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert await service_timeout_s({"NOTIFY_SOCKET": "/run/x", "INVOCATION_ID": "1"}) is None
