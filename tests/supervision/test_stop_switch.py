from __future__ import annotations

import pytest

from hermes.domain.errors import BadInputError, StorageFailedError
from hermes.supervision.shutdown import EXIT_STORAGE, StopRequest, StopTrigger
from hermes.supervision.stop_switch import StopSwitch


def test_request_is_forwarded_once() -> None:
    stop, forwarded = StopSwitch(), list[StopRequest]()
    stop.connect(forwarded.append)
    stop.request("first", StopTrigger.SIGTERM)
    stop.request("second", StopTrigger.SIGTERM)
    assert [each.reason for each in forwarded] == ["first"]


def test_request_during_the_start_is_forwarded_when_the_daemon_is_ready() -> None:
    stop, forwarded = StopSwitch(), list[StopRequest]()
    stop.request("early")
    assert stop
    stop.connect(forwarded.append)
    assert forwarded == [stop.pending]


def test_stop_cancels_a_restart_which_is_then_refused() -> None:
    stop = StopSwitch()
    stop.request("new version", restart=True)
    came_back = stop.comes_back
    stop.request("stop")
    assert (came_back, stop.comes_back) == (True, False)
    with pytest.raises(BadInputError) as refused:
        stop.request("again", restart=True)
    assert refused.value.code == "ending_already"


def test_late_signal_cancels_a_restart() -> None:
    stop = StopSwitch()
    stop.request_late()
    assert not stop
    stop.request("new version", restart=True)
    stop.request_late()
    assert not stop.comes_back


def test_second_interrupt_forces_the_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    exits: list[bool] = []
    monkeypatch.setattr("hermes.supervision.stop_switch.exit_interrupted", lambda: exits.append(True))
    stop = StopSwitch()
    stop.request("Ctrl-C", StopTrigger.INTERRUPT)
    assert not exits
    stop.request("Ctrl-C", StopTrigger.INTERRUPT)
    assert exits


def test_failed_store_stops_the_daemon_with_its_exit_code() -> None:
    stop = StopSwitch()
    stop.on_storage_failure(StorageFailedError("the disk is gone"))
    assert stop.pending is not None
    assert stop.pending.exit_code == EXIT_STORAGE


def test_embedded_daemon_refuses_to_stop() -> None:
    stop = StopSwitch(embedded=True)
    with pytest.raises(BadInputError):
        stop.request("stop")
    stop.on_storage_failure(StorageFailedError("the disk is gone"))
    assert not stop
