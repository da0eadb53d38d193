"""Each module imports alone, and looking at a daemon does not load what only the daemon needs."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import hermes

MODULES = ["hermes", *(module.name for module in pkgutil.walk_packages(hermes.__path__, "hermes."))]
SLOW = ["aiohttp", "openai", "lmdb", "msgpack", "rich", "yaml", "loguru", "pykka", "platformdirs", "asyncio", "shtab"]

# One interpreter that has imported nothing of ours, forked once a module: an import costs its own time only.
ALONE = """
import importlib, json, os, sys
import aiohttp.web, asyncio, jinja2, lmdb, loguru, msgpack, msgspec, pykka, textual.app, textual.widgets, yaml
failed = []
for name in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):  # an extra that is not installed
                print(f"{name}: {error!r}", flush=True)
                os._exit(1)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
sys.exit(bool(failed))
"""


@pytest.mark.timeout(300)  # hundreds of processes: a minute when the machine is busy
def test_each_module_imports_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, json.dumps(MODULES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["ps"],
        ["ps", "--json"],
        ["show", "x"],
        ["tail"],
        ["why", "x"],
        ["stop"],
        ["status"],
        ["service", "install", "--help"],
        ["chat", "--help"],
    ],
)
def test_commands_that_only_ask_the_daemon_import_nothing_slow(argv: list[str], tmp_path: Path) -> None:
    code = f"""
import json, sys
from hermes.cli.main import main
main({argv!r})
print(json.dumps([name for name in {SLOW!r} if name in sys.modules]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HERMES_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_the_configuration_needs_yaml_only_when_there_is_a_file(tmp_path: Path) -> None:
    code = """
import os, sys
from hermes.config.loader import load_config
from hermes.config.home import Home
load_config(Home.from_environ(os.environ), {})
print([name for name in ("yaml", "loguru", "platformdirs", "asyncio") if name in sys.modules])
"""
    environ = {**os.environ, "HERMES_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# What the first request, turn, chat message or document loads. Each of them takes 0.2 to 45 MB.
NOT_IDLE = (
    "openai", "httpx", "telegram", "slack_sdk", "textual", "jinja2", "yaml", "rich", "prometheus_client",
    "msgspec", "frozenlist._frozenlist", "idna", "unicodedata", "lmdb.verify", "difflib", "importlib.metadata",
    "zipfile", "cronsim", "statistics", "hermes.services.commands", "hermes.services.context",
    "hermes.services.events.quick_commands", "hermes.agent.models.protocols.completion",
    "hermes.agent.models.local_model", "hermes.media.reception",
    "hermes.domain.read.trace_search",
    "hermes.adapters.chat.intake", "hermes.adapters.openai_api.routes", "hermes.adapters.admin.routes",
    "hermes.adapters.openai_api.openapi.operations", "hermes.adapters.otel", "hermes.app.factories.turn_environment",
    "hermes.sandbox.network", "hermes.shell_policy", "hermes.tools.process_tool", "hermes.tools.web",
    "hermes.web.pages",
)  # fmt: skip
IDLE = """
import asyncio, json, os, sys
from pathlib import Path
from hermes.app.host.daemon_process import running
from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch

async def main():
    home = Home(data_dir=Path(sys.argv[1]), config_file=Path(sys.argv[1], "config.yaml"))
    async with running(home, load_config(home, os.environ), os.environ, StopSwitch()) as daemon:
        tasks = {task.get_name(): task for task in asyncio.all_tasks()}
        await tasks["sandbox"]
        print(json.dumps(sorted(sys.modules)))
        await daemon.stop(StopRequest(reason="the test is over"))

asyncio.run(main())
"""


def test_an_idle_daemon_has_not_imported_what_only_work_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IDLE, str(tmp_path)],
        env={**os.environ, "HERMES_API_PORT": "0", "HERMES_LOG_FILE": "false"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    imported = json.loads(done.stdout.splitlines()[-1])
    assert [
        name for name in imported if name.startswith(tuple(f"{each}." for each in NOT_IDLE)) or name in NOT_IDLE
    ] == []
