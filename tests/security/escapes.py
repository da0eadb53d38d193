"""Ways out of a sandbox that are system calls rather than command lines, as small programs that run inside.

A program prints `GOT` when an attempt succeeded, and `DONE` at its end. Files, processes and connections outside are
judged besides. `needs` names the layers of the sandbox that hold it: without all of them it must succeed, else the
attempt proves nothing.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hermes.sandbox.seccomp import MACHINES


class Layer(StrEnum):
    SECCOMP = "seccomp"
    GIT_PIN = "git-pin"
    GIT_READ_ONLY = "git-read-only"
    NETWORK = "--unshare-net"
    IPC = "--unshare-ipc"
    NESTED = "--disable-userns"
    PROC_SYS = "/proc/sys"  # for root alone
    PROC_KEYS = "/proc/keys"
    CAPABILITIES = "--cap-drop"  # for root alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    name: str
    program: str
    needs: tuple[Layer, ...] = ()  # empty: it is held by what a sandbox cannot do without
    terminal: bool = False
    only_root: bool = False  # for another user the kernel's own rules hold it


_PRELUDE: Final = """
import ctypes, errno, os, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return result if result >= 0 else -ctypes.get_errno()
def attempt(name, action):
    try: result = action()
    except OSError as error: print(name, "held:", errno.errorcode.get(error.errno, error.errno)); return
    if isinstance(result, int) and not isinstance(result, bool) and result < 0:
        print(name, "held:", errno.errorcode.get(-result, -result))
    elif result is False: print(name, "held")
    else: print("GOT", name)
"""
NUMBERS: Final = {
    **(MACHINES[platform.machine()].numbers if platform.machine() in MACHINES else {}),
    **({"shmget": 29, "shmat": 30} if platform.machine() == "x86_64" else {"shmget": 194, "shmat": 196}),
    "pidfd_open": 434,
    "prlimit64": 302 if platform.machine() == "x86_64" else 261,
}

_ESCAPES: Final = (
    Escape(
        name="keyring",
        needs=(Layer.SECCOMP,),
        program="""
key = call(N["keyctl"], 10, -3, b"user", b"{key}", 0)  # search the session's keyring
print("key", key)
if key >= 0:
    text = ctypes.create_string_buffer(100)
    call(N["keyctl"], 11, key, text, 100)
    print("GOT keyring", text.value.decode())
""",
    ),
    Escape(
        name="names of keys",
        needs=(Layer.PROC_KEYS,),
        program="""
for path in ("/proc/keys", "/proc/key-users", "/proc/self/task/1/../../../keys"):
    attempt(path, lambda: bool(open(path).read()))
""",
    ),
    Escape(
        name="vsock",
        needs=(Layer.SECCOMP,),
        program="attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM).fileno())",
    ),
    Escape(
        name="netlink and kernel sockets",
        needs=(Layer.SECCOMP,),
        program="""
attempt("uevent", lambda: socket.socket(16, socket.SOCK_RAW, 15).fileno())
for family in (17, 29, 31, 38, 44):
    attempt(f"family {family}", lambda: socket.socket(family, socket.SOCK_RAW).fileno())
""",
    ),
    Escape(
        name="typed into the terminal",
        needs=(Layer.SECCOMP,),
        terminal=True,
        program="""
letter = ctypes.create_string_buffer(b"#")
for name, request in (("TIOCSTI", 0x5412), ("TIOCSTI with high bits", 0x5412 | 1 << 32), ("TIOCLINUX", 0x541C)):
    attempt(name, lambda: call(N["ioctl"], 0, request, letter))
""",
    ),
    Escape(
        name="nested user namespace",
        needs=(Layer.SECCOMP, Layer.NESTED),
        program="""
attempt("clone", lambda: call(N["clone"], 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0) or True)
arguments = ctypes.create_string_buffer(struct.pack("11Q", 0x10000000, *[0] * 10))
attempt("clone3", lambda: call(N["clone3"], arguments, 88) or os._exit(0) or True)
attempt("unshare", lambda: call(N["unshare"], 0x10000000))
""",
    ),
    Escape(
        name="ptrace",
        needs=(Layer.SECCOMP,),
        program="""
child = os.fork()
if not child:
    import time; time.sleep(30); os._exit(0)
for pid in (1, os.getppid(), child, {daemon}):
    attempt(f"seize {pid}", lambda: call(N["ptrace"], 0x4206, pid, 0, 0))
local = ctypes.create_string_buffer(8)
vector = ctypes.create_string_buffer(struct.pack("PP", ctypes.addressof(local), 8))
for pid in (1, child):
    attempt(f"memory of {pid}", lambda: call(N["process_vm_readv"], pid, vector, 1, vector, 1, 0))
os.kill(child, 9)
""",
    ),
    Escape(
        name="descriptors of another process",
        needs=(Layer.SECCOMP,),
        program="""
child = os.fork()
if not child:
    import time; time.sleep(30); os._exit(0)
for pid in (1, child, {daemon}):
    pidfd = call(N["pidfd_open"], pid, 0)
    attempt(f"descriptor of {pid}", lambda: call(N["pidfd_getfd"], pidfd, 0, 0))
os.kill(child, 9)
""",
    ),
    Escape(
        name="roots of other processes",
        program="""
for pid in (*(each for each in os.listdir("/proc") if each.isdigit()), "{daemon}"):
    for link in ("root", "cwd", "root/proc/1/root", "cwd/../.."):
        for path in ("{secret}", "{data}/api.key"):
            attempt(f"{pid} {link} {path}", lambda: open(f"/proc/{pid}/{link}{path}").read() != "")
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            attempt(f"{pid} fd {name}", lambda: bool(os.listdir(f"/proc/{pid}/fd/{name}/..")))
    except OSError: pass
""",
    ),
    Escape(
        name="daemon's process",
        program="""
attempt("signal", lambda: os.kill({daemon}, 9) is None)
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, {daemon}, 19) is None)
attempt("limits", lambda: call(N["prlimit64"], {daemon}, 7, ctypes.create_string_buffer(struct.pack("2Q", 1, 1)), 0))
attempt("memory", lambda: os.open("/proc/{daemon}/mem", os.O_RDWR))
attempt("environment", lambda: open("/proc/{daemon}/environ").read() != "")
attempt("pidfd", lambda: call(N["pidfd_open"], {daemon}, 0))
""",
    ),
    Escape(
        name="kernel settings",
        needs=(Layer.PROC_SYS,),
        only_root=True,
        program="""
for name in ("kernel/core_pattern", "kernel/poweroff_cmd", "vm/overcommit_memory", "kernel/modprobe"):
    attempt(name, lambda: os.open(f"/proc/sys/{name}", os.O_WRONLY))
for path in ("/proc/sysrq-trigger", "/proc/kcore", "/dev/kmsg", "/dev/mem", "/sys/kernel/uevent_helper"):
    attempt(path, lambda: os.open(path, os.O_WRONLY))
""",
    ),
    Escape(
        name="mounts",
        needs=(Layer.SECCOMP, Layer.CAPABILITIES),
        only_root=True,
        program="""
attempt("remount", lambda: call(N["mount"], 0, b"/usr", 0, 0x1020, 0))
attempt("proc", lambda: call(N["mount"], b"proc", b"/tmp", b"proc", 0, 0))
attempt("unmount", lambda: call(N["umount2"], b"{data}", 2))
attempt("open_tree", lambda: call(N["open_tree"], -100, b"/", 1))
attempt("fsopen", lambda: call(N["fsopen"], b"tmpfs", 0))
attempt("chroot", lambda: call(N["chroot"], b"/tmp"))
attempt("setns", lambda: call(N["setns"], os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
attempt("device", lambda: os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0)) is None)
attempt("host name", lambda: libc.sethostname(b"x", 1))
""",
    ),
    Escape(
        name="handles of files",
        needs=(Layer.SECCOMP,),
        program="""
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
attempt("name_to_handle_at", lambda: call(N["name_to_handle_at"], -100, b"/usr", handle, ctypes.byref(mount), 0))
attempt("open_by_handle_at", lambda: call(N["open_by_handle_at"], os.open("/usr", 0), handle, 0))
""",
    ),
    Escape(
        name="setuid by chmod",
        needs=(Layer.SECCOMP,),
        program="""
open("s1", "w").close()
for bit in (0o4000, 0o2000):
    attempt(f"chmod {bit:o}", lambda: os.chmod("s1", 0o755 | bit) is None)
    attempt(f"fchmod {bit:o}", lambda: os.fchmod(os.open("s1", os.O_RDONLY), 0o755 | bit) is None)
    attempt(f"fchmodat2 {bit:o}", lambda: call(N["fchmodat2"], -100, b"s1", 0o755 | bit, 0))
""",
    ),
    Escape(
        name="setuid by open",
        needs=(Layer.SECCOMP,),
        program="""
for bit in (0o4000, 0o2000):
    name = f"{bit:o}".encode()
    attempt(f"open {bit:o}", lambda: call(N["openat"], -100, b"s2" + name, os.O_CREAT | os.O_WRONLY, 0o755 | bit))
    attempt(f"mknod {bit:o}", lambda: call(N["mknodat"], -100, b"s3" + name, 0o755 | bit | stat.S_IFREG, 0))
how = ctypes.create_string_buffer(struct.pack("3Q", os.O_CREAT | os.O_WRONLY, 0o4755, 0))
attempt("openat2", lambda: call(N["openat2"], -100, b"s4", how, 24))
""",
    ),
    Escape(
        name="setuid by O_TMPFILE",
        needs=(Layer.SECCOMP,),
        program="""
file = call(N["openat"], -100, b".", os.O_TMPFILE | os.O_WRONLY, 0o4755)
if file >= 0:
    attempt("O_TMPFILE", lambda: libc.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, b"s5", 0x400))
""",
    ),
    Escape(
        name="hooks by renaming .git",
        needs=(Layer.GIT_PIN,),
        program="""
import shutil
def replaced():
    os.rename(".git", "aside")
    shutil.copytree("aside", ".git")
    return open(".git/hooks/pre-commit", "w").write("#!/bin/sh\\nid\\n")
attempt("hook", replaced)
""",
    ),
    Escape(
        name="hooks by writing",
        needs=(Layer.GIT_READ_ONLY,),
        program="""
for name in ("hooks/pre-commit", "config", "hooks/../config"):
    attempt(name, lambda: open(f".git/{name}", "a").write("#") > 0)
attempt("replace config", lambda: os.rename("a.txt", ".git/config") is None)
attempt("remove hooks", lambda: os.rename(".git/hooks", ".git/h") is None)
attempt("link hooks", lambda: os.symlink("/tmp", ".git/hooks/x") is None)
""",
    ),
    Escape(
        name="abstract socket",
        needs=(Layer.NETWORK,),
        program="attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0{abstract}') is None)",
    ),
    Escape(
        name="loopback",
        needs=(Layer.NETWORK,),
        program="""
attempt("TCP", lambda: socket.create_connection(("127.0.0.1", {port}), 2).fileno())
attempt("UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {port})) and False)
attempt("IPv6", lambda: socket.create_connection(("::1", {port}), 2).fileno())
attempt("a route", lambda: socket.create_connection(("192.0.2.1", 80), 1).fileno())
""",
    ),
    Escape(
        name="path sockets",
        program="""
for path in ("{data}/hermes.sock", "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket",
             "/tmp/.X11-unix/X0", "/run/systemd/private"):
    attempt(path, lambda: socket.socket(socket.AF_UNIX).connect(path) is None)
""",
    ),
    Escape(
        name="shared memory",
        needs=(Layer.IPC,),
        program="""
found = call(N["shmget"], {shm}, 0, 0)
if found >= 0:
    libc.shmat.restype = ctypes.c_void_p
    print("GOT", ctypes.string_at(libc.shmat(found, None, 0o10000)).decode())
""",
    ),
    Escape(
        name="hard links",
        program="""
for path in ("{canary}", "{secret}", "{data}/api.key", "{shared}/letter.txt", "/etc/passwd", "/usr/bin/env"):
    attempt(path, lambda: os.link(path, "linked") is None)
""",
    ),
    Escape(
        name="read-only directory",
        program="""
path = "{shared}/letter.txt"
attempt("read", lambda: open(path).read() == "")
attempt("write", lambda: os.open(path, os.O_WRONLY))
attempt("chmod", lambda: os.chmod(path, 0o777) is None)
attempt("times", lambda: os.utime(path, (1, 1)) is None)
attempt("attribute", lambda: os.setxattr(path, "user.x", b"x") is None)
attempt("owner", lambda: os.chown(path, os.getuid(), os.getgid()) is None)
attempt("rename", lambda: os.rename(path, "{shared}/y") is None)
attempt("through proc", lambda: os.open(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", os.O_WRONLY))
attempt("masked file", lambda: open("{shared}/token").read() != "")
attempt("masked directory", lambda: bool(os.listdir("{shared}/keys")))
""",
    ),
    Escape(
        name="moving the working directory",
        program="""
attempt("rename", lambda: os.rename(os.getcwd(), os.getcwd() + "x") is None)
attempt("remove", lambda: os.rmdir(os.getcwd()) is None)
os.chdir("..")
attempt("beside it", lambda: os.mkdir("made") is None and os.path.exists("{canary}"))
""",
    ),
    Escape(
        name="calls for administrators",
        needs=(Layer.SECCOMP,),
        program="""
attempt("io_uring", lambda: call(N["io_uring_setup"], 4, ctypes.create_string_buffer(120)))
attempt("userfaultfd", lambda: call(N["userfaultfd"], 1))
event = ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104))
attempt("perf", lambda: call(N["perf_event_open"], event, 0, -1, -1, 0))
attempt("bpf", lambda: call(N["bpf"], 0, ctypes.create_string_buffer(struct.pack("4I", 2, 4, 4, 1) + bytes(64)), 72))
attempt("kernel log", lambda: call(N["syslog"], 10, 0, 0))
attempt("kcmp", lambda: call(N["kcmp"], os.getpid(), os.getpid(), 0, 0, 1))
attempt("reboot", lambda: call(N["reboot"], 0, 0, 0, 0))
time = ctypes.create_string_buffer(struct.pack("2q", 1, 2_000_000_000))  # not a valid time: it would not be set
attempt("clock", lambda: call(N["clock_settime"], 0, time))
""",
    ),
    Escape(
        name="process that stays",
        program="""
if not os.fork():
    os.setsid()
    if not os.fork():
        for number in range(3, 100):
            try: os.close(number)
            except OSError: pass
        import signal, time
        for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3): os.dup2(null, number)
        time.sleep(300)
    os._exit(0)
""",
    ),
)  # fmt: skip
_X86_64: Final = (
    Escape(
        name="another architecture's system calls",
        needs=(Layer.SECCOMP,),
        program="""
import mmap
attempt("x32", lambda: call(0x40000000 | 39))
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000" "cd80" "c3"))  # mov eax, 20 (getpid); int 0x80; ret
child = os.fork()
if not child:
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    os._exit(0 if run() > 0 else 1)
attempt("int 0x80", lambda: os.waitpid(child, 0)[1] == 0)
""",
    ),
)
ESCAPES: Final = (*_ESCAPES, *(_X86_64 if platform.machine() == "x86_64" else ()))


def script(escape: Escape, **values: object) -> str:
    """The program as it runs, with the places that it tries to reach."""
    body = escape.program
    for name, value in values.items():
        body = body.replace(f"{{{name}}}", str(value))
    return f"{_PRELUDE}\nN = {NUMBERS!r}\n{body}\nprint('DONE')\n"
