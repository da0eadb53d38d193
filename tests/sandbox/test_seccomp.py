"""The seccomp filter, interpreted as the kernel would."""

from __future__ import annotations

import errno
import struct

import pytest

from hermes.sandbox.seccomp import DEBUGGER_CALLS, MACHINES, program

ALLOW = 0x7FFF0000


def verdict(code: bytes, number: int, *arguments: int, audit: int) -> int | None:
    """Return the error of a call, or None if it is allowed. Interprets the classic BPF instructions that we use."""
    data = struct.pack("IIQ6Q", number, audit, 0, *(*arguments, *[0] * (6 - len(arguments))))
    instructions = list(struct.iter_unpack("HBBI", code))
    at = accumulator = 0
    while True:
        kind, if_true, if_false, value = instructions[at]
        at += 1
        if kind == 0x20:
            accumulator = struct.unpack_from("I", data, value)[0]
        elif kind == 0x06:
            return None if value == ALLOW else value & 0xFFFF
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[kind]
            at += if_true if holds else if_false


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def judge(machine: str, name: str, *arguments: int, debuggers: bool = False) -> int | None:
    code = program(machine, debuggers=debuggers)
    assert code is not None
    known = MACHINES[machine]
    return verdict(code, known.numbers[name], *arguments, audit=known.audit)


@pytest.mark.parametrize(
    "name",
    ["ptrace", "keyctl", "add_key", "bpf", "mount", "unshare", "setns", "chroot", "kexec_load",
     "init_module", "reboot",
     "open_by_handle_at", "perf_event_open", "userfaultfd", "pidfd_getfd", "mount_setattr"],
)  # fmt: skip
def test_administrators_calls_are_refused(machine: str, name: str) -> None:
    assert judge(machine, name) == errno.EPERM


@pytest.mark.parametrize("name", ["clone3", "io_uring_setup", "openat2", "memfd_secret"])
def test_calls_that_programs_can_do_without_are_absent(machine: str, name: str) -> None:
    assert judge(machine, name) == errno.ENOSYS


def test_namespaces_are_refused_and_threads_are_not(machine: str) -> None:
    assert judge(machine, "clone", 0x10000000) == errno.EPERM  # CLONE_NEWUSER
    assert judge(machine, "clone", 0x3D0F00) is None


def test_terminal_injection_is_refused_also_with_high_bits(machine: str) -> None:
    assert judge(machine, "ioctl", 0, 0x5412) == errno.EPERM
    assert judge(machine, "ioctl", 0, 0x1_0000_5412) == errno.EPERM
    assert judge(machine, "ioctl", 0, 0x541C) == errno.EPERM
    assert judge(machine, "ioctl", 0, 0x5401) is None


@pytest.mark.parametrize("bit", [0o4000, 0o2000], ids=["setuid", "setgid"])
def test_setuid_and_setgid_files_cannot_be_made(machine: str, bit: int) -> None:
    mode = bit | 0o755
    assert judge(machine, "fchmodat", 0, 0, mode) == errno.EPERM
    assert judge(machine, "fchmodat", 0, 0, 0o1755) is None
    assert judge(machine, "openat", 0, 0, 0o101, mode) == errno.EPERM
    assert judge(machine, "openat", 0, 0, 0o20200002, mode) == errno.EPERM, "O_TMPFILE"
    assert judge(machine, "openat", 0, 0, 0o2, mode) is None, "without O_CREAT there is no mode"
    assert judge(machine, "mknodat", 0, 0, 0o100000 | mode) == errno.EPERM


@pytest.mark.parametrize("family", [1, 2, 10])
def test_usual_sockets_work(machine: str, family: int) -> None:
    assert judge(machine, "socket", family, 1, 0) is None


@pytest.mark.parametrize(("family", "protocol"), [(40, 0), (17, 0), (38, 0), (16, 9), (16, 15)])
def test_other_sockets_are_refused(machine: str, family: int, protocol: int) -> None:
    assert judge(machine, "socket", family, 2, protocol) == errno.EAFNOSUPPORT


def test_routes_can_be_read(machine: str) -> None:
    assert judge(machine, "socket", 16, 3, 0) is None


def test_debuggers_can_be_allowed(machine: str) -> None:
    for name in DEBUGGER_CALLS:
        assert judge(machine, name, debuggers=True) is None
    assert judge(machine, "keyctl", debuggers=True) == errno.EPERM


def test_other_architectures_are_refused(machine: str) -> None:
    code = program(machine)
    assert code is not None
    assert verdict(code, 0, audit=0x40000003) == errno.EPERM
    assert verdict(code, 0x40000000 | 39, audit=MACHINES[machine].audit) == errno.EPERM, "x32"


def test_ordinary_calls_are_allowed(machine: str) -> None:
    code = program(machine)
    assert code is not None
    for number in (0, 1, 3, 9, 11):
        if number not in MACHINES[machine].numbers.values():
            assert verdict(code, number, audit=MACHINES[machine].audit) is None


def test_an_unknown_machine_has_no_filter() -> None:
    assert program("sparc") is None
