"""Named API keys against the real daemon, across a restart."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel


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


def test_approval_for_a_named_key_is_the_owners(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with ScriptedModel(idle_timeout_s=60) as model, DaemonProcess(config=model.config) as daemon:
        ci = {"Authorization": f"Bearer {daemon.hermes('keys', 'create', 'ci').stdout.split()[0]}"}
        asked = daemon.ask(f"run rm -rf {folder}", **ci)
        session = asked.session
        assert asked.status == 200
        assert f"hermes approve {session}" in asked.text
        assert "Say yes" not in asked.text
        assert asked.json()["hermes"]["pending"]["choices"] == ["deny"]
        shown = daemon.request("GET", f"/api/sessions/{session}").json()["pending"]["choices"]
        assert shown[0] == "once"
        for refused in (
            daemon.ask("yes", session, **ci),
            daemon.request("POST", f"/api/sessions/{session}/answer", {"answer": "once"}, **ci),
        ):
            error = refused.json()["error"]
            assert (refused.status, error["code"]) == (403, "needs_approver")
            assert f"hermes approve {session}" in error["message"]
        assert folder.exists()
        shown = daemon.hermes("why", session).stdout
        assert f"It wants to run: rm -rf {folder}" in shown
        assert f"rm -rf {folder}" in daemon.hermes("sessions", "--waiting").stdout
        assert daemon.request("POST", f"/api/sessions/{session}/answer", {"answer": "no"}, **ci).status == 200
        assert folder.exists()


def test_named_key_has_no_background_processes() -> None:
    with ScriptedModel(idle_timeout_s=60) as model, DaemonProcess(config=model.config) as daemon:
        ci = {"Authorization": f"Bearer {daemon.hermes('keys', 'create', 'ci').stdout.split()[0]}"}
        started = daemon.ask('call terminal {"command": "sleep 60", "background": true}', **ci)
        assert "background needs the tool process" in started.text
        assert "is not enabled here" in daemon.ask('call process {"action": "list"}', started.session, **ci).text
        assert daemon.request("GET", "/api/processes").json()["processes"] == []
