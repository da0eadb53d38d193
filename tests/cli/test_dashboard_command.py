"""`hermes dashboard`: the link, and how it reaches a browser."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


def test_link_leads_to_the_login_and_opens_without_its_code_in_a_process_list(tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o755)
    with DaemonProcess(environ={"BROWSER": str(browser)}) as daemon:
        answer = json.loads(daemon.hermes("dashboard", "--open", "--json").stdout)
        assert answer["opened"] is True
        assert answer["link"].startswith(f"{daemon.address}/ui/login?code=")
        code = answer["link"].partition("code=")[2]
        given = str(eventually(lambda: opened.exists() and opened.read_text(encoding="utf-8").strip()))
        assert code not in given
        file = daemon.home / "dashboard.html"
        assert given == file.as_uri()
        assert file.stat().st_mode & 0o777 == 0o600
        assert html.escape(answer["link"]) in file.read_text(encoding="utf-8")
        lines = daemon.hermes("dashboard").stdout.splitlines()
        assert lines[0].startswith(f"{daemon.address}/ui/login?code=")
        assert code not in lines[0]
