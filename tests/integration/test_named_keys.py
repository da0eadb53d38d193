"""Named API keys against the real daemon, across a restart."""

from __future__ import annotations

from tests.daemon_process import DaemonProcess


def test_named_key_has_its_own_sessions_until_it_is_revoked() -> None:
    with DaemonProcess() as daemon:
        made = daemon.hermes("keys", "create", "ci", "--expires", "1d")
        assert made.returncode == 0, made.stderr
        ci = {"Authorization": f"Bearer {made.stdout.split()[0]}"}
        owners = daemon.ask("The owner's plan is secret.").session
        own = daemon.ask("My name is Ada.", **ci)
        assert own.status == 200
        for request in (
            daemon.request("GET", f"/api/sessions/{owners}/messages", **ci),
            daemon.request("DELETE", f"/api/sessions/{owners}", **ci),
            daemon.ask("What is the plan?", owners, **ci),
        ):
            assert request.status == 404
        daemon.kill()
        daemon.start()
        listed = daemon.request("GET", "/api/sessions", **ci).json()["sessions"]
        assert [(each["id"], each["platform"]) for each in listed] == [(own.session, "key-ci")]
        assert "Ada" in daemon.ask("Who am I?", own.session, **ci).text
        assert daemon.request("GET", "/api/processes", **ci).status == 403
        assert daemon.hermes("keys", "revoke", "ci").returncode == 0
        assert daemon.request("GET", "/v1/models", **ci).status == 401
        assert daemon.request("GET", f"/api/sessions/{own.session}").status == 200
