"""The daemon on a store that has lost a page."""

from __future__ import annotations

from hermes.storage.row_keys import LOG
from tests.storage.page_damage import lose
from tests.support.daemon_process import DaemonProcess


def test_a_lost_page_costs_some_records_and_no_session() -> None:
    with DaemonProcess() as daemon:
        names = [f"C{n}" for n in range(4)]
        for turn in range(8):
            for name in names:
                assert daemon.ask(f"!echo {turn} {'w' * 300}", name).status == 200
        daemon.kill()
        lost = len(lose(daemon.home / "store", LOG))
        daemon.start()
        for name in names:
            assert daemon.ask("!echo once more", name).text == "once more"
            assert daemon.request("GET", f"/api/sessions/{name}/messages").status == 200
        assert daemon.request("GET", "/health/ready").status == 200
        stats = daemon.hermes("storage", "stats", "--json")
        assert f'"bad_records": {lost}' in stats.stdout
        verified = daemon.hermes("storage", "verify")
        assert verified.returncode == 1
        assert "its page cannot be read" in verified.stdout
        assert "Traceback" not in daemon.stderr()
        assert daemon.terminate() == 0
