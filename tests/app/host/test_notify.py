"""Notifications to systemd."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hermes.app.host.notify import Notifier


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(5)
        yield listener


def say_everything(notifier: Notifier) -> None:
    notifier.ready()
    notifier.watchdog()
    notifier.extend_timeout(1.5)
    notifier.stopping()


EVERYTHING = [b"READY=1", b"WATCHDOG=1", b"EXTEND_TIMEOUT_USEC=1500000", b"STOPPING=1"]


def test_notification_over_a_path(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as listener:
        say_everything(Notifier.from_environ({"NOTIFY_SOCKET": path}))
        assert [listener.recv(1000) for _ in EVERYTHING] == EVERYTHING


def test_notification_over_the_abstract_namespace() -> None:
    name = f"hermes-test-{secrets.token_hex(8)}"
    with listening(f"\0{name}") as listener:
        say_everything(Notifier.from_environ({"NOTIFY_SOCKET": f"@{name}"}))
        assert [listener.recv(1000) for _ in EVERYTHING] == EVERYTHING


@pytest.mark.parametrize(
    "address", [None, "", "/nowhere/at/all", "@nobody-listens-here", "vsock:1:2", "relative", "/" + "x" * 300]
)
def test_missing_listener_is_ignored(address: str | None) -> None:
    say_everything(Notifier.from_environ({} if address is None else {"NOTIFY_SOCKET": address}))


def test_full_socket_does_not_block(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path):
        notifier = Notifier.from_environ({"NOTIFY_SOCKET": path})
        for _ in range(2000):
            notifier.watchdog()


def test_important_messages_are_sent_when_the_socket_has_room_again(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as listener:
        notifier = Notifier.from_environ({"NOTIFY_SOCKET": path})
        for _ in range(2000):
            notifier.watchdog()
        notifier.ready()
        listener.setblocking(False)
        with suppress(BlockingIOError):
            while listener.recv(1000) == b"WATCHDOG=1":
                pass
        for _ in range(2):
            notifier.watchdog()
        assert [listener.recv(1000) for _ in range(2)] == [b"READY=1\nWATCHDOG=1", b"WATCHDOG=1"]


@pytest.mark.parametrize(
    ("environ", "interval_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({}, None),
    ],
)
def test_watchdog_interval_is_half_of_its_timeout(environ: dict[str, str], interval_s: float | None) -> None:
    assert Notifier.from_environ({"NOTIFY_SOCKET": "@x", **environ}).watchdog_interval_s == interval_s
    assert Notifier.from_environ(environ).watchdog_interval_s is None
