"""Pictures of the dashboard for the documentation: `make browser BROWSER=--pictures` writes `docs/pictures/`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered, calling
from tests.support.waiting import eventually

FOLDER = Path(__file__).parents[2] / "docs/pictures"
BUSY_S = 150.0  # of work for the charts
LOG = "02:00:01 start\n02:14:37 copied 41.2 GB\n02:14:38 error: no space left on /srv/backup\n"
ANSWER = """The backup failed because **/srv/backup is full**: it stopped after 41.2 GB.

| directory | size | age |
| --- | --- | --- |
| `2026-08` | 38 GB | 3 months |
| `2026-09` | 40 GB | 2 months |

I can delete `2026-08`; the newer ones stay."""
TITLES = ("Plan the garden", "Translate the manual", "Invoices of October", "Photos by year", "Reading list")


def _reply(body: dict[str, Any]) -> Reply | None:
    last = body["messages"][-1]
    said = str(last["content"])
    if last["role"] == "tool":
        return answered(ANSWER, 1800)
    if said.startswith("Why did"):
        return calling(1200, ("terminal", {"command": "tail -n 3 backup.log"}))
    if said.startswith("Yes, delete"):
        return calling(2100, ("terminal", {"command": "rm -rf /srv/backup/2026-08"}))
    return answered("Done: " + said, 400)


def main() -> None:
    with ScriptedModel() as model:
        model.on_request = _reply
        with DaemonProcess(config=model.config) as daemon:
            _converse(daemon)
            _take(daemon)


def _converse(daemon: DaemonProcess) -> None:
    files = daemon.home / "work/backup-check/files"
    files.mkdir(parents=True, mode=0o700)
    (files / "backup.log").write_text(LOG, encoding="utf-8")
    daemon.ask("Why did last night's backup fail? Its log is backup.log.", session="backup-check")
    daemon.request("PATCH", "/api/sessions/backup-check", {"title": "Backup of last night"})
    for title in TITLES:
        made = daemon.request("POST", "/api/sessions", {"title": title}).json()["session_id"]
        daemon.ask(f"{title}: begin.", session=made)
    began, number = time.monotonic(), 0
    while time.monotonic() - began < BUSY_S:
        number += 1
        daemon.ask(f"Note number {number}", session=f"notes-{number % 7}")
        time.sleep(0.2 + (number * number % 11) / 5)
    asked = {"input": "Yes, delete the oldest one.", "session_id": "backup-check"}
    daemon.request("POST", "/v1/runs", asked)
    eventually(lambda: daemon.request("GET", "/api/approvals").json()["approvals"])


def _take(daemon: DaemonProcess) -> None:
    def picture(name: str, address: str, *, phone: bool = False, dark: bool = False) -> dict[str, Any]:
        width, height = (390, 800) if phone else (1200, 800)
        file = str(FOLDER / f"dashboard-{name}.png")
        return {"name": file, "address": address, "width": width, "height": height, "dark": dark}

    asked = {
        "packages": os.environ["HERMES_TEST_BROWSER"],
        "chromium": os.environ["HERMES_TEST_CHROMIUM"],
        "link": daemon.admin.post("/dashboard/links")["link"],
        "steps": ["login", "pictures"],
        "pictures": [
            picture("overview", "/"),
            picture("session", "/ui/sessions/backup-check"),
            picture("approvals", "/ui/approvals", dark=True),
            picture("trace", "/ui/trace?id=backup-check", dark=True),
            picture("map", "/ui/actors", dark=True),
            picture("phone", "/ui/sessions/backup-check#question", phone=True),
        ],
    }
    script = str(Path(__file__).parent / "visit.mjs")
    done = subprocess.run(["node", script], input=json.dumps(asked), capture_output=True, text=True, check=True)
    print(json.loads(done.stdout.splitlines()[-1])["steps"])
    if shutil.which("pngquant"):
        files = [each["name"] for each in asked["pictures"]]
        subprocess.run(["pngquant", "--force", "--ext", ".png", "32", *files], check=True)
