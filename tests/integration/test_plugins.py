"""A plugin that is installed into a folder, and runs in the real daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.block import ROOT
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(180)
SOURCE = ROOT / "tests/support/example_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example into a folder, without the network."""
    source, target = tmp_path_factory.mktemp("source") / "example", tmp_path_factory.mktemp("site")
    shutil.copytree(SOURCE, source)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)],
        check=True,
        timeout=120,
    )
    return target


def config_of(model: ScriptedModel, folder: Path, enabled: str = "example") -> str:
    settings = f"settings: {{example: {{log: {folder}/log, folder: {folder}/chat}}}}"
    return f"{model.config}plugins: {{enabled: [{enabled}], {settings}}}\n"


def test_plugin_adds_a_tool_a_command_hooks_and_a_platform(installed: Path, tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(installed)}
    with (
        ScriptedModel(idle_timeout_s=60) as model,
        DaemonProcess(config=config_of(model, tmp_path), environ=environ) as daemon,
    ):
        asked = daemon.ask('call count_letters {"text": "a b c"}')
        assert asked.text == "results: 3 letters"
        assert "no x here" in daemon.ask('call count_letters {"text": "xyz"}').text
        log = tmp_path / "log"
        eventually(lambda: log.exists() and log.read_text() == "agent:end True\nagent:end True\n")
        hello = daemon.request("POST", "/api/commands", {"text": "/greet Bob"}).json()
        assert hello["text"] == "Hello Bob on api, you are owner."
        (tmp_path / "chat/in/1.txt").write_text("say hi there")
        out = tmp_path / "chat/out.txt"
        eventually(lambda: out.exists() and out.read_text() == "ann: hi there\n")
        assert not (tmp_path / "chat/in/1.txt").exists()
        eventually(lambda: daemon.admin.get("/channels")["channels"] != [])
        sent = daemon.hermes("send", "--to", "folder:Ann", "by name")
        assert sent.returncode == 0, sent.stderr
        assert out.read_text().endswith("ann: by name\n")
        listed = json.loads(daemon.hermes("plugins", "--json").stdout)["plugins"]
        assert [(each["name"], each["version"], each["state"]) for each in listed] == [("example", "1.2", "loaded")]
        assert "tools: count_letters; commands: greet" in listed[0]["adds"]


def test_plugin_is_off_unless_it_is_named_and_a_broken_one_stops_nothing(installed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    info = broken / "broken-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hermes.plugins]\nbroken = broken:register\nold = old:register\n")
    (broken / "broken.py").write_text("HERMES_API = 1\ndef register(api):\n    raise RuntimeError('out of luck')\n")
    (broken / "old.py").write_text("HERMES_API = 99\ndef register(api):\n    raise SystemExit\n")
    environ = {"PYTHONPATH": f"{installed}:{broken}"}
    with ScriptedModel() as model:
        config = config_of(model, tmp_path, "broken, old, missing")
        with DaemonProcess(config=config, environ=environ) as daemon:
            assert daemon.ask("say hello").text == "hello"
            assert "Unknown tool" in daemon.ask('call count_letters {"text": "a"}').text
            found = json.loads(daemon.hermes("plugins", "--json").stdout)["plugins"]
            states = {each["name"]: (each["state"], each["problem"]) for each in found}
            assert states["example"] == ("installed", "")
            assert states["broken"] == ("failed", "RuntimeError: out of luck")
            assert states["old"][0] == "failed"
            assert "sets 99" in states["old"][1]
            assert "no installed package" in states["missing"][1]
            status = daemon.hermes("status").stdout
            assert "broken is not used: RuntimeError: out of luck" in status


def test_provider_of_a_plugin_is_a_choice_once_the_plugin_is_enabled(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with DaemonProcess(home=home, environ={"PYTHONPATH": str(installed)}) as daemon:
        model = "model: {provider: example_models, name: m}\n"
        (home / "config.yaml").write_text(model)
        refused = daemon.hermes("config", "check")
        assert "add example to plugins.enabled" in refused.stdout + refused.stderr
        (home / "config.yaml").write_text(f"{model}plugins: {{enabled: [example]}}\n")
        accepted = daemon.hermes("config", "check")
        assert accepted.returncode == 0, accepted.stdout + accepted.stderr
        (home / "config.yaml").write_text(model.replace("example_models", "example_model"))
        assert "must be one of" in (wrong := daemon.hermes("config", "check")).stdout + wrong.stderr
