"""Probe results from bubblewrap's error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.domain.errors import ConfigError
from hermes.sandbox.probe import Cause, Probe, judged, run_probe
from hermes.sandbox.sandbox import open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("bwrap: No permissions to creating new namespace, likely because the kernel", Cause.NO_NAMESPACES),
        ("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
         Cause.NAMESPACE_LIMIT),
        ("bwrap: setting up uid map: Permission denied", Cause.APPARMOR),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", Cause.APPARMOR),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", Cause.PROC_MASKED),
        ("bwrap: Creating new namespace failed: Operation not permitted", Cause.CONTAINER),
        ("bwrap: Unknown option --disable-userns", Cause.TOO_OLD),
        ("bwrap: something new", Cause.OTHER),
    ],
)  # fmt: skip
def test_cause_is_found_and_has_a_remedy(words: str, cause: Cause) -> None:
    probe = judged(1, "", words)
    assert probe.cause is cause
    assert not probe.works
    assert probe.remedy
    assert words[:50] in probe.detail


def test_proof_is_needed() -> None:
    assert judged(0, "sandboxed Seccomp:\t2", "") == Probe(cause=Cause.WORKS, filtered=True)
    assert judged(0, "sandboxed Seccomp:\t0", "") == Probe(cause=Cause.WORKS)
    assert judged(0, "", "").cause is Cause.NOT_PROVED
    assert judged(1, "", "").cause is Cause.OTHER


def test_missing_program_is_reported() -> None:
    assert run_probe(("/nowhere/bwrap",), ()).cause is Cause.NOT_INSTALLED


def test_missing_bubblewrap_disables_the_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox = open_sandbox(SandboxRules(), home=str(tmp_path), enabled=True)
    assert sandbox.probe.cause is Cause.NOT_INSTALLED
    assert not sandbox.works


def test_disabled_sandbox_is_not_probed(tmp_path: Path) -> None:
    assert open_sandbox(SandboxRules(), home=str(tmp_path), enabled=False).probe.cause is Cause.OFF


@pytest.mark.skipif("__import__('os').geteuid() != 0", reason="only root drops to another user")
@pytest.mark.parametrize("name", ["no-such-user", "root", "0"])
def test_bad_tool_user_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_sandbox(SandboxRules(), home=str(tmp_path), enabled=True, user_name=name)
