"""The real daemon as a process of its own, for tests that treat it as its users do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hermes.cli.client import AdminClient

STOPPED_WITHIN_S = 40.0


class DaemonProcess:
    """`with DaemonProcess(...) as daemon:` starts one on a home of its own and a free port."""

    def __init__(
        self,
        *,
        config: str = "",
        environ: dict[str, str] | None = None,
        home: Path | None = None,
        prefix: tuple[str, ...] = (),
    ) -> None:
        """`prefix` is a command that runs the daemon's."""
        self._prefix = prefix
        self._owned = tempfile.TemporaryDirectory(prefix="hermes-") if home is None else None
        self.home = home or Path(self._owned.name) / "home"  # type: ignore[union-attr]  # short: it holds a socket
        self.home.mkdir(mode=0o700, exist_ok=True)
        if config:
            (self.home / "config.yaml").write_text(config, encoding="utf-8")
        self._environ = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HERMES_")},
            "HERMES_HOME": str(self.home),
            "HERMES_API_PORT": "0",
            "HERMES_RESUME_BOOT_LOOP_STARTS": "0",  # tests kill it more often than that, and want it to go on
            "HERMES_SANDBOX_MODE": "off",  # effects are looked for outside; tests of the sandbox turn it on
            "HERMES_MODEL_PATIENCE_S": "0",  # a model that is down fails the turn within seconds
            "HERMES_AUXILIARY_TITLE": "none",  # model calls that no test expects
            "HERMES_AUXILIARY_REVIEW": "none",
            **(environ or {}),
        }
        self._log = self.home.parent / "daemon.stderr"
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if self._owned is not None:
            self._owned.cleanup()

    def start(self, environ: dict[str, str] | None = None, *, prefix: tuple[str, ...] | None = None) -> None:
        self._environ |= environ or {}
        self.begin(self._prefix if prefix is None else prefix)
        assert self.process is not None
        assert self.process.stdout is not None
        first = self.process.stdout.readline().decode()
        if " is ready at " not in first:
            code = self.process.wait(STOPPED_WITHIN_S)
            raise AssertionError(f"the daemon did not start (exit {code}): {first}{self.stderr()[-2000:]}")
        self.address = first.split(" is ready at ")[1].split()[0]

    def begin(self, prefix: tuple[str, ...] = ()) -> None:
        """Start it without waiting until it is ready."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "hermes.cli.main", "daemon"],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def stderr(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def kill(self) -> None:
        """SIGKILL, and whatever it was doing is cut off."""
        if self.process is not None:
            self.process.kill()
            self._reap()

    def end_processes(self) -> None:
        """End the background processes, which outlive the daemon."""
        if self.process is not None and self.process.poll() is not None:  # somebody stopped it
            self._reap()
        if self.process is None:
            self.start()
        for process in self.admin.get("/api/processes")["processes"]:
            if process["running"]:
                self.admin.post(f"/api/processes/{process['id']}/kill")

    def terminate(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOPPED_WITHIN_S)
        self._reap()
        return code

    def _reap(self) -> None:
        assert self.process is not None
        self.process.wait(STOPPED_WITHIN_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None

    @property
    def environ(self) -> dict[str, str]:
        return dict(self._environ)

    @property
    def key(self) -> str:
        return (self.home / "api.key").read_text(encoding="utf-8").strip()

    @property
    def admin(self) -> AdminClient:
        return AdminClient(self.home / "hermes.sock")

    def hermes(
        self, *arguments: str, stdin: str = "", timeout_s: float = 60, prefix: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """The command line, on this daemon's home."""
        return subprocess.run(
            [*prefix, sys.executable, "-m", "hermes.cli.main", *arguments],
            env=self._environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def ask(self, text: str, session: str | None = None, **headers: str) -> Answer:
        body = {"model": "hermes", "messages": [{"role": "user", "content": text}]}
        if session is not None:
            headers["X-Hermes-Session-Id"] = session
        return self.request("POST", "/v1/chat/completions", body, **headers)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        assert self.status == 200, self.body.decode(errors="replace")
        content: str = self.json()["choices"][0]["message"]["content"]
        return content

    @property
    def session(self) -> str:
        return self.headers["X-Hermes-Session-Id"]
