"""Table of programs that run other commands: their options, and which options contain a command."""

from __future__ import annotations

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    valued: str = ""  # short options that take a value
    flags: str = ""  # short options without a value
    long_valued: tuple[str, ...] = ()
    long_flags: tuple[str, ...] = ()
    positional: int = 0  # arguments before the command
    assignments: bool = False
    joined: bool = False  # the arguments are joined to a text for a shell


WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        valued="ugpCrtTUDRh",
        flags="AbEHiKklNnPSsVvB",
        long_valued=("user", "group", "prompt", "chdir", "chroot", "host", "role", "type", "command-timeout"),
        long_flags=(
            "preserve-env",
            "login",
            "shell",
            "non-interactive",
            "stdin",
            "background",
            "set-home",
            "askpass",
        ),
        assignments=True,
    ),
    "doas": Wrapper(valued="uCa", flags="nsL"),
    "pkexec": Wrapper(long_valued=("user",), long_flags=("disable-internal-agent", "keep-cwd")),
    "nohup": Wrapper(),
    "setsid": Wrapper(flags="cfw", long_flags=("ctty", "fork", "wait")),
    "nice": Wrapper(valued="n", flags="0123456789", long_valued=("adjustment",)),
    "ionice": Wrapper(valued="cnpPu", flags="t", long_valued=("class", "classdata"), long_flags=("ignore",)),
    "timeout": Wrapper(
        valued="sk",
        flags="v",
        long_valued=("signal", "kill-after"),
        long_flags=("foreground", "preserve-status", "verbose"),
        positional=1,
    ),
    "gtimeout": Wrapper(valued="sk", flags="v", positional=1),
    "stdbuf": Wrapper(valued="ioe", long_valued=("input", "output", "error")),
    "time": Wrapper(
        valued="fo", flags="pvaqV", long_valued=("format", "output"), long_flags=("portability", "verbose")
    ),
    "exec": Wrapper(valued="a", flags="cl"),
    "builtin": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "chroot": Wrapper(long_valued=("userspec", "groups"), long_flags=("skip-chdir",), positional=1),
    "chrt": Wrapper(flags="abdfiormv", positional=1),
    "taskset": Wrapper(flags="ac", long_flags=("all-tasks", "cpu-list"), positional=1),
    "choom": Wrapper(valued="np", long_valued=("adjust", "pid")),
    "uclampset": Wrapper(valued="mMp", flags="asR"),
    "eatmydata": Wrapper(),
    "dumb-init": Wrapper(flags="cv", valued="r"),
    "tini": Wrapper(flags="sgvw", valued="pe"),
    "catatonit": Wrapper(flags="gP"),
    "chpst": Wrapper(valued="ubUe/nlLmdofprtc", flags="vPV012"),
    "envdir": Wrapper(positional=1),
    "setlock": Wrapper(flags="nNxX", positional=1),
    "softlimit": Wrapper(valued="amdslfcor"),
    "fakechroot": Wrapper(),
    "nocache": Wrapper(),
    "systemd-inhibit": Wrapper(long_valued=("what", "who", "why", "mode")),
    "systemd-cat": Wrapper(valued="tp"),
    "pdsh": Wrapper(valued="wxlf", joined=True),
    "chronic": Wrapper(),
    "ifne": Wrapper(flags="n"),
    "trickle": Wrapper(valued="dutl", flags="sv"),
    "gtime": Wrapper(valued="fo", flags="pvaq"),
    "gnice": Wrapper(valued="n"),
    "gnohup": Wrapper(),
    "gstdbuf": Wrapper(valued="ioe"),
    "i386": Wrapper(),
    "x86_64": Wrapper(),
    "flock": Wrapper(valued="wE", flags="esxnouF", long_valued=("timeout",), long_flags=("nonblock",), positional=1),
    "fakeroot": Wrapper(),
    "sshpass": Wrapper(valued="pfdP", flags="ev"),
    "unbuffer": Wrapper(flags="p"),
    "catchsegv": Wrapper(),
    "dbus-run-session": Wrapper(),
    "faketime": Wrapper(flags="f", positional=1),
    "torsocks": Wrapper(),
    "torify": Wrapper(),
    "proxychains": Wrapper(valued="f", flags="q"),
    "proxychains4": Wrapper(valued="f", flags="q"),
    "caffeinate": Wrapper(valued="tw", flags="dimsu"),
    "valgrind": Wrapper(),
    "strace": Wrapper(valued="aeoOpPsSuEX", flags="cCdfFhikqrtTvVwxyYZzD"),
    "ltrace": Wrapper(valued="aAeFlnopsuxw", flags="bcCfhirStTV"),
    "watch": Wrapper(
        valued="n",
        flags="bcdegptwx",
        long_valued=("interval",),
        long_flags=("color", "differences", "beep", "errexit", "no-title", "exec", "precise"),
        joined=True,
    ),
    "at": Wrapper(positional=999),
    "setarch": Wrapper(flags="BFILRSTXZ3v", positional=1),
    "linux32": Wrapper(),
    "linux64": Wrapper(),
    "rlwrap": Wrapper(),
    "pipenv": Wrapper(positional=1),
    "poetry": Wrapper(positional=1),
}
XARGS = Wrapper(
    valued="adEILnPs",
    flags="0eilprtxo",
    long_valued=("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "replace"),
    long_flags=("null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"),
)
# Options of other programs whose value is a shell command.
RUNS_VALUE: dict[str, tuple[str, ...]] = {
    "tar": (
        "--checkpoint-action=exec",
        "--to-command",
        "-I",
        "--use-compress-program",
        "-F",
        "--info-script",
        "--rsh-command",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S",),
    "sftp": ("-S",),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "man": ("-P", "--pager"),
    "tcpdump": ("-z",),
    "zip": ("-TT", "--unzip-command"),
    "script": ("-c", "--command"),
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "flock": ("-c", "--command"),
    "xterm": ("-e",),
    "gnome-terminal": ("-e", "--command"),
    "make": ("--eval", "-E"),
    "gmake": ("--eval", "-E"),
    "wget": ("--use-askpass",),
    "git": ("--upload-pack", "--receive-pack", "--exec", "-x", "--extcmd", "--open-files-in-pager", "-O"),
    "nsenter": (),
    "hyperfine": ("--prepare", "-p", "--setup", "--cleanup"),
    "dmesg": ("--pager",),
    "socat": (),
}
# Programs that run a command in a project's environment.
PROJECT_RUNNERS = frozenset(
    {"uv", "poetry", "pipenv", "conda", "mamba", "hatch", "pdm", "direnv", "dotenv", "nix-shell", "nix"}
)
# Programs whose command may begin at any argument.
RUN_SOMEHOW = frozenset(
    {"tmux", "screen", "hyperfine", "entr", "expect", "systemd-run", "nsenter", "unshare", "bwrap", "firejail"}
    | {"prlimit", "numactl", "cpulimit", "start-stop-daemon", "ssh-agent", "xvfb-run", "gdb", "perf", "script"}
    | {"dtach", "runcon", "capsh", "setpriv", "gosu", "su-exec", "s6-setuidgid", "kubectl", "oc", "podman"}
    | {"docker", "lxc", "vagrant", "adb", "npx", "bunx", "uvx", "pipx", "doit", "xdg-open", "coproc", "ld.so"}
    | {"ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-musl-x86_64.so.1"}
)
