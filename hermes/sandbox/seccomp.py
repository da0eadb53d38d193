"""The seccomp filter of a sandbox: a classic BPF program for `bwrap --seccomp FD`. Pure.

bubblewrap separates files, processes and networks. This filter closes what namespaces do not: the kernel keyring,
vsock and most netlink families, TIOCSTI, setuid and setgid files, nested namespaces, debugging of other processes,
and system calls that only administrators need. Calls that programs can do without answer ENOSYS: they fall back.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_LOAD, _EQUAL, _MIN, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT: Final = 0x40000000

_NEW_NAMESPACES: Final = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}
_TERMINAL_INJECTION: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_SETUID: Final = 0o6000  # S_ISUID and S_ISGID
_MAKES_A_FILE: Final = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_FAMILIES: Final = (1, 2, 10)  # unix, inet, inet6
_NETLINK, _NETLINK_ROUTE = 16, 0


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    value: int


class Machine(NamedTuple):
    """One architecture: its audit number and its system call numbers."""

    audit: int
    numbers: Mapping[str, int]


_REFUSED: Final = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "add_key", "request_key",
    "keyctl", "bpf", "userfaultfd", "perf_event_open", "mount", "umount2", "pivot_root", "chroot", "move_mount",
    "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "kexec_load",
    "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff", "reboot", "acct",
    "quotactl", "quotactl_fd", "syslog", "name_to_handle_at", "open_by_handle_at", "iopl", "ioperm",
    "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "nfsservctl", "vhangup", "lookup_dcookie",
)  # fmt: skip
_ABSENT: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "memfd_secret", "openat2")
DEBUGGER_CALLS: Final = frozenset(("ptrace", "process_vm_readv", "process_vm_writev"))

# Calls that set a file's mode: index of the mode argument, and of the flags argument that creates the file.
_MODES: Final[Mapping[str, tuple[int, int | None]]] = {
    "chmod": (1, None),
    "fchmod": (1, None),
    "fchmodat": (2, None),
    "fchmodat2": (2, None),
    "mknod": (1, None),
    "mknodat": (2, None),
    "creat": (1, None),
    "open": (2, 1),
    "openat": (3, 2),
}

_SHARED: Final = {
    "pidfd_getfd": 438, "move_mount": 429, "open_tree": 428, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "quotactl_fd": 443, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "clone3": 435, "memfd_secret": 447, "openat2": 437, "fchmodat2": 452,
}  # fmt: skip

MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(
        0xC000003E,
        _SHARED
        | {
            "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "add_key": 248,
            "request_key": 249, "keyctl": 250, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "mount": 165,
            "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "kexec_load": 246,
            "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "swapon": 167,
            "swapoff": 168, "reboot": 169, "acct": 163, "quotactl": 179, "syslog": 103, "name_to_handle_at": 303,
            "open_by_handle_at": 304, "iopl": 172, "ioperm": 173, "settimeofday": 164, "clock_settime": 227,
            "adjtimex": 159, "clock_adjtime": 305, "nfsservctl": 180, "vhangup": 153, "lookup_dcookie": 212,
            "clone": 56, "ioctl": 16, "socket": 41, "chmod": 90, "fchmod": 91, "fchmodat": 268, "mknod": 133,
            "mknodat": 259, "creat": 85, "open": 2, "openat": 257,
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        _SHARED
        | {
            "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "add_key": 217,
            "request_key": 218, "keyctl": 219, "bpf": 280, "userfaultfd": 282, "perf_event_open": 241, "mount": 40,
            "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "kexec_load": 104,
            "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106, "swapon": 224,
            "swapoff": 225, "reboot": 142, "acct": 89, "quotactl": 60, "syslog": 116, "name_to_handle_at": 264,
            "open_by_handle_at": 265, "settimeofday": 170, "clock_settime": 112, "adjtimex": 171,
            "clock_adjtime": 266, "nfsservctl": 42, "vhangup": 58, "lookup_dcookie": 18,
            "clone": 220, "ioctl": 29, "socket": 198, "fchmod": 52, "fchmodat": 53, "mknodat": 33, "openat": 56,
        },
    ),
}  # fmt: skip


def program(machine: str, *, debuggers: bool = False) -> bytes | None:
    """Return the filter for this architecture, or None if it has no table."""
    known = MACHINES.get(machine)
    if known is None:
        return None
    allowed = DEBUGGER_CALLS if debuggers else frozenset()
    code = [
        *_architecture(known),
        *_answers((name for name in _REFUSED if name not in allowed), known, errno.EPERM),
        *_answers(_ABSENT, known, errno.ENOSYS),
        *_when(known, "clone", _unless_bits(0, _NEW_NAMESPACES)),
        *_when(known, "ioctl", _unless_equal(1, _TERMINAL_INJECTION)),
        *(each for name, (mode, flags) in _MODES.items() for each in _when(known, name, _unless_setuid(mode, flags))),
        *_when(known, "socket", _families()),
        _answer(_ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *each) for each in code)


def _architecture(machine: Machine) -> Sequence[Instruction]:
    """Refuse system calls of another architecture: they have other numbers."""
    refused = _answer(_ERRNO | errno.EPERM)
    return (
        Instruction(_LOAD, 0, 0, _ARCHITECTURE_AT),
        Instruction(_EQUAL, 1, 0, machine.audit),
        refused,
        Instruction(_LOAD, 0, 0, _NUMBER_AT),
        Instruction(_MIN, 0, 1, _X32_BIT),
        refused,
    )


def _answers(names: Iterable[str], machine: Machine, error: int) -> Iterable[Instruction]:
    for name in names:
        yield from _when(machine, name, (_answer(_ERRNO | error),))


def _when(machine: Machine, name: str, body: Sequence[Instruction]) -> Sequence[Instruction]:
    """Run `body`, which always answers, for this system call. Other architectures may not have it."""
    if name not in machine.numbers:
        return ()
    return (Instruction(_EQUAL, 0, len(body), machine.numbers[name]), *body)


def _unless_bits(argument: int, bits: int) -> Sequence[Instruction]:
    return (
        _load(argument),
        Instruction(_ANY_BIT, 0, 1, bits),
        _answer(_ERRNO | errno.EPERM),
        _answer(_ALLOW),
    )


def _unless_equal(argument: int, values: tuple[int, int]) -> Sequence[Instruction]:
    """Refuse two values of an argument. Like the kernel, compare only its low half."""
    first, second = values
    return (
        _load(argument),
        Instruction(_EQUAL, 1, 0, first),
        Instruction(_EQUAL, 0, 1, second),
        _answer(_ERRNO | errno.EPERM),
        _answer(_ALLOW),
    )


def _unless_setuid(mode: int, flags: int | None) -> Sequence[Instruction]:
    check = _unless_bits(mode, _SETUID)
    if flags is None:
        return check
    return (_load(flags), Instruction(_ANY_BIT, 0, len(check) - 1, _MAKES_A_FILE), *check)


def _families() -> Sequence[Instruction]:
    """Socket families: unix, inet, inet6, and of netlink only routes."""
    known = len(_FAMILIES)
    return (
        _load(0),
        *(Instruction(_EQUAL, known - at + 3, 0, family) for at, family in enumerate(_FAMILIES)),
        Instruction(_EQUAL, 0, 2, _NETLINK),
        _load(2),
        Instruction(_EQUAL, 1, 0, _NETLINK_ROUTE),
        _answer(_ERRNO | errno.EAFNOSUPPORT),
        _answer(_ALLOW),
    )


def _load(argument: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _answer(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)
