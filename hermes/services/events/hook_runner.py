"""Runner of one hook: a command with JSON on its input, or a POST request. Failures become answers with a problem."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hermes.domain.event.hook import Hook, HookAnswer, read_answer, read_json_answer

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable

MAX_OUTPUT: Final = 65_536  # bytes of an answer, and of its errors
# The only variables of the daemon that a command gets: none of them is a secret.
PASSED: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SHELL")


class HookRunner:
    def __init__(
        self, *, environ: Mapping[str, str], home: str, redact: Callable[[str], str], start_folder: str
    ) -> None:
        self._environ = environ
        self._home = home
        self._redact = redact
        self._start_folder = start_folder

    async def run(self, hook: Hook, payload: Mapping[str, Any]) -> HookAnswer:
        """Run the hook and return its answer, within its timeout."""
        if hook.handler is not None:
            return await _call(hook, payload)
        text = self._redact(json.dumps(payload, ensure_ascii=False, default=str))
        try:
            async with asyncio.timeout(hook.timeout_s):
                return await (self._post(hook, text) if hook.url else self._execute(hook, text, payload))
        except TimeoutError:
            return HookAnswer(problem=f"did not answer within {hook.timeout_s:g} s")
        except OSError as error:
            return HookAnswer(problem=f"could not be started: {error.strerror or type(error).__name__}")

    async def output(self, hook: Hook) -> tuple[str, str]:
        """Run a command without input. Returns what it wrote, and its problem, if any."""
        try:
            async with asyncio.timeout(hook.timeout_s):
                code, stdout, stderr = await self._run(hook, "", {})
        except TimeoutError:
            return "", f"did not end within {hook.timeout_s:g} s"
        except OSError as error:
            return "", f"could not be started: {error.strerror or type(error).__name__}"
        text = self._redact("\n".join(filter(None, (stdout.strip(), stderr.strip()))))
        return text, f"failed with exit code {code}" if code else ""

    # ------------------------------------------------------------ commands

    async def _execute(self, hook: Hook, text: str, payload: Mapping[str, Any]) -> HookAnswer:
        return read_answer(*await self._run(hook, f"{text}\n", payload))  # so that `cat >> FILE` keeps lines

    async def _run(self, hook: Hook, text: str, payload: Mapping[str, Any]) -> tuple[int, str, str]:
        argv = hook.argv or ("/bin/sh", "-c", hook.command)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=hook.folder or self._start_folder,
            env=self._variables(payload),
            start_new_session=True,
        )
        try:
            stdout, stderr, _ = await asyncio.gather(
                _read(process.stdout), _read(process.stderr), _write(process, text.encode("utf-8", "replace"))
            )
            code = await process.wait()
        finally:
            await _end(process)
        return code, stdout, stderr

    def _variables(self, payload: Mapping[str, Any]) -> dict[str, str]:
        passed = {name: self._environ[name] for name in PASSED if name in self._environ}
        return {
            **passed,
            "HERMES_HOME": self._home,
            "HERMES_HOOK_EVENT": str(payload.get("event", "")),
            "HERMES_SESSION_ID": str(payload.get("session_id", "")),
        }

    # ------------------------------------------------------------ URLs

    async def _post(self, hook: Hook, text: str) -> HookAnswer:
        from hermes.system.lean_aiohttp import import_aiohttp  # noqa: PLC0415 - slow

        import_aiohttp()
        import aiohttp  # noqa: PLC0415

        headers = {"Content-Type": "application/json", "User-Agent": "hermes"}
        if hook.token_env:
            if not (token := self._environ.get(hook.token_env, "").strip()):
                return HookAnswer(problem=f"the variable {hook.token_env} is not set")
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as client,
                client.post(
                    hook.url, data=text.encode("utf-8", "replace"), headers=headers, allow_redirects=False
                ) as response,
            ):
                answer = await response.content.read(MAX_OUTPUT)
                if not 200 <= response.status < 300:
                    return HookAnswer(problem=f"answered with status {response.status}")
        except aiohttp.ClientError as error:
            return HookAnswer(problem=f"could not be reached: {type(error).__name__}")
        return read_json_answer(answer.decode("utf-8", "replace"))


async def _call(hook: Hook, payload: Mapping[str, Any]) -> HookAnswer:
    """Call the function of a plugin: an async one on the event loop, another one in a thread."""
    assert hook.handler is not None
    event = str(payload.get("event", ""))
    try:
        async with asyncio.timeout(hook.timeout_s):
            if inspect.iscoroutinefunction(hook.handler):
                answer = await hook.handler(event, payload)
            else:
                answer = await asyncio.to_thread(hook.handler, event, payload)
            return read_json_answer(json.dumps(answer)) if isinstance(answer, dict) else HookAnswer()
    except TimeoutError:
        return HookAnswer(problem=f"did not answer within {hook.timeout_s:g} s")
    except Exception as error:  # noqa: BLE001 - the outermost call of a plugin's hook
        return HookAnswer(problem=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")


async def _read(stream: asyncio.StreamReader | None) -> str:
    """Return the output up to its limit. What follows is read and dropped."""
    assert stream is not None
    found = bytearray()
    while chunk := await stream.read(MAX_OUTPUT):
        found += chunk[: MAX_OUTPUT - len(found)]
    return found.decode("utf-8", "replace")


async def _write(process: Process, content: bytes) -> None:
    """Write the input. A command need not read it."""
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(content)
        await process.stdin.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.close()


async def _end(process: Process) -> None:
    """End what is left of the process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
