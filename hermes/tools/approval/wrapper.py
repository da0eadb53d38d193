"""Programs that run another command given in their arguments, and where in those the command is.

An option that is not in a wrapper's entry makes every rest of its arguments a possible command: guessing wrong then
costs a question, not a bypass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.tools.approval.syntax import ANY_DEPTH, UNKNOWN
from hermes.values import dataclass

SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "pwsh"})

SUFFIX_MOST = 48  # arguments of a guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """An argv that is run."""

    argv: tuple[str, ...]
    guess: bool = False  # it may as well be a mere argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A text that a shell runs."""

    text: str
    positional: tuple[str, ...] = ()  # from `$0`


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrapper:
    valued: str = ""  # short options that take a value
    flags: str = ""  # those that take none
    long_valued: tuple[str, ...] = ()
    long_flags: tuple[str, ...] = ()
    positional: int = 0  # arguments before the command
    assignments: bool = False
    joined: bool = False  # the arguments make a text for a shell


_WRAPPERS: dict[str, _Wrapper] = {
    "sudo": _Wrapper(
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
    "doas": _Wrapper(valued="uCa", flags="nsL"),
    "pkexec": _Wrapper(long_valued=("user",), long_flags=("disable-internal-agent", "keep-cwd")),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(flags="cfw", long_flags=("ctty", "fork", "wait")),
    "nice": _Wrapper(valued="n", flags="0123456789", long_valued=("adjustment",)),
    "ionice": _Wrapper(valued="cnpPu", flags="t", long_valued=("class", "classdata"), long_flags=("ignore",)),
    "timeout": _Wrapper(
        valued="sk",
        flags="v",
        long_valued=("signal", "kill-after"),
        long_flags=("foreground", "preserve-status", "verbose"),
        positional=1,
    ),
    "gtimeout": _Wrapper(valued="sk", flags="v", positional=1),
    "stdbuf": _Wrapper(valued="ioe", long_valued=("input", "output", "error")),
    "time": _Wrapper(
        valued="fo", flags="pvaqV", long_valued=("format", "output"), long_flags=("portability", "verbose")
    ),
    "exec": _Wrapper(valued="a", flags="cl"),
    "builtin": _Wrapper(),
    "busybox": _Wrapper(),
    "toybox": _Wrapper(),
    "chroot": _Wrapper(long_valued=("userspec", "groups"), long_flags=("skip-chdir",), positional=1),
    "chrt": _Wrapper(flags="abdfiormv", positional=1),
    "taskset": _Wrapper(flags="ac", long_flags=("all-tasks", "cpu-list"), positional=1),
    "choom": _Wrapper(valued="np", long_valued=("adjust", "pid")),
    "uclampset": _Wrapper(valued="mMp", flags="asR"),
    "eatmydata": _Wrapper(),
    "dumb-init": _Wrapper(flags="cv", valued="r"),
    "tini": _Wrapper(flags="sgvw", valued="pe"),
    "catatonit": _Wrapper(flags="gP"),
    "chpst": _Wrapper(valued="ubUe/nlLmdofprtc", flags="vPV012"),
    "envdir": _Wrapper(positional=1),
    "setlock": _Wrapper(flags="nNxX", positional=1),
    "softlimit": _Wrapper(valued="amdslfcor"),
    "fakechroot": _Wrapper(),
    "nocache": _Wrapper(),
    "systemd-inhibit": _Wrapper(long_valued=("what", "who", "why", "mode")),
    "systemd-cat": _Wrapper(valued="tp"),
    "pdsh": _Wrapper(valued="wxlf", joined=True),
    "chronic": _Wrapper(),
    "ifne": _Wrapper(flags="n"),
    "trickle": _Wrapper(valued="dutl", flags="sv"),
    "gtime": _Wrapper(valued="fo", flags="pvaq"),
    "gnice": _Wrapper(valued="n"),
    "gnohup": _Wrapper(),
    "gstdbuf": _Wrapper(valued="ioe"),
    "i386": _Wrapper(),
    "x86_64": _Wrapper(),
    "flock": _Wrapper(valued="wE", flags="esxnouF", long_valued=("timeout",), long_flags=("nonblock",), positional=1),
    "fakeroot": _Wrapper(),
    "sshpass": _Wrapper(valued="pfdP", flags="ev"),
    "unbuffer": _Wrapper(flags="p"),
    "catchsegv": _Wrapper(),
    "dbus-run-session": _Wrapper(),
    "faketime": _Wrapper(flags="f", positional=1),
    "torsocks": _Wrapper(),
    "torify": _Wrapper(),
    "proxychains": _Wrapper(valued="f", flags="q"),
    "proxychains4": _Wrapper(valued="f", flags="q"),
    "caffeinate": _Wrapper(valued="tw", flags="dimsu"),
    "valgrind": _Wrapper(),
    "strace": _Wrapper(valued="aeoOpPsSuEX", flags="cCdfFhikqrtTvVwxyYZzD"),
    "ltrace": _Wrapper(valued="aAeFlnopsuxw", flags="bcCfhirStTV"),
    "watch": _Wrapper(
        valued="n",
        flags="bcdegptwx",
        long_valued=("interval",),
        long_flags=("color", "differences", "beep", "errexit", "no-title", "exec", "precise"),
        joined=True,
    ),
    "at": _Wrapper(positional=999),
    "setarch": _Wrapper(flags="BFILRSTXZ3v", positional=1),
    "linux32": _Wrapper(),
    "linux64": _Wrapper(),
    "rlwrap": _Wrapper(),
    "pipenv": _Wrapper(positional=1),
    "poetry": _Wrapper(positional=1),
}
_XARGS = _Wrapper(
    valued="adEILnPs",
    flags="0eilprtxo",
    long_valued=("arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "replace"),
    long_flags=("null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"),
)
_SSH_VALUED = "bcDEeFIiJLlmOopQRSWw"
_PARALLEL_VALUED = frozenset(
    {"-j", "-a", "-n", "-N", "-L", "-S", "-d", "-C", "-I", "--jobs", "--arg-file", "--max-args", "--results"}
    | {"--joblog", "--delay", "--timeout", "--retries", "--colsep", "--sshlogin", "--workdir", "--tmpdir", "--load"}
)
_SSH_RUNS = re.compile(r"(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ](.*)", re.IGNORECASE | re.DOTALL)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_TESTS = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-mtime", "-mmin", "-atime", "-amin"}
    | {"-ctime", "-cmin", "-size", "-newer", "-user", "-group", "-perm", "-inum", "-links", "-lname", "-samefile"}
    | {"-empty"}
)
_FIND_NAMES = frozenset({"-name", "-iname"})
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)
# Options of ordinary programs whose value is a command for a shell.
_RUNS_VALUE: dict[str, tuple[str, ...]] = {
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
_GIT_RUNS = re.compile(
    r"(?:alias\.[^=]*=!|(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|gitproxy)|pager\.\w+|sequence\.editor"
    r"|diff\.external|diff\.\w+\.command|credential\.helper|gpg\.program|uploadpack\.\w+|filter\.\w+\.\w+)=!?)(.*)",
    re.DOTALL | re.IGNORECASE,
)


def name_of(argv: tuple[str, ...]) -> str:
    return argv[0].rpartition("/")[2].lower() if argv else ""


def unwrap(argv: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:  # noqa: C901, PLR0912 - one case a program
    """The commands that this one runs, as far as its arguments (and known input) tell."""
    name, arguments = name_of(argv), argv[1:]
    yield from _values_run(name, arguments)
    match name:
        case "eval":
            yield Script(text=" ".join(arguments))
        case "trap" if arguments and arguments[0] not in {"-l", "-p"}:
            yield Script(text=arguments[1] if arguments[0] == "--" and len(arguments) > 1 else arguments[0])
        case "alias":
            yield from (Script(text=value) for _, equals, value in map(_split_equals, arguments) if equals)
        case "command":
            rest = _after_options(arguments, _Wrapper(flags="p"))
            if not (arguments and re.fullmatch(r"-[pvV]*[vV][pvV]*", arguments[0])):
                yield from rest
        case "env":
            yield from _env(arguments)
        case "xargs" | "gxargs":
            yield from _xargs(arguments, stdin)
        case "parallel":
            yield from _parallel(arguments, stdin)
        case "find" | "gfind" | "fd" | "fdfind":
            yield from _find(name, arguments)
        case "ssh" | "mosh" | "slogin" | "autossh":
            yield from _ssh(arguments)
        case "ed" | "ex" | "red":
            yield from (Script(text=line.lstrip(" !")) for line in (stdin or "").split("\n") if line.startswith("!"))
        case "git":
            yield from _git_verbs(arguments)
        case "scp" | "sftp" | "sshfs":
            for argument in arguments:
                yield from _ssh_option(argument.removeprefix("-o"))
        case "bind" | "complete" | "compgen":
            yield from (Script(text=argument) for argument in arguments if " " in argument)
        case "su" | "runuser" if name == "runuser" and "-c" not in arguments:
            yield from _suffixes(arguments)
        case "at" | "batch" if stdin is not None:
            yield Script(text=stdin)
        case (
            "uv"
            | "poetry"
            | "pipenv"
            | "conda"
            | "mamba"
            | "hatch"
            | "pdm"
            | "direnv"
            | "dotenv"
            | "nix-shell"
            | "nix"
        ):
            yield from _runner(arguments)
        case (
            "tmux"
            | "screen"
            | "hyperfine"
            | "entr"
            | "expect"
            | "systemd-run"
            | "nsenter"
            | "unshare"
            | "bwrap"
            | (
                "firejail"
                | "prlimit"
                | "numactl"
                | "cpulimit"
                | "start-stop-daemon"
                | "ssh-agent"
                | "xvfb-run"
                | "gdb"
                | "perf"
                | "script"
                | "dtach"
                | "runcon"
                | "capsh"
                | "setpriv"
                | "gosu"
                | "su-exec"
                | "s6-setuidgid"
                | "kubectl"
                | "oc"
                | "podman"
                | "docker"
                | "lxc"
                | "vagrant"
                | "adb"
                | "npx"
                | "bunx"
                | "uvx"
                | "pipx"
                | "doit"
                | "xdg-open"
                | "coproc"
                | "ld.so"
                | "ld-linux-x86-64.so.2"
                | "ld-linux.so.2"
                | "ld-musl-x86_64.so.1"
            )
        ):
            yield from _suffixes(arguments)
            yield from (Script(text=argument) for argument in arguments if " " in argument)
        case _ if name in _WRAPPERS:
            yield from _after_options(arguments, _WRAPPERS[name])


def _split_equals(argument: str) -> tuple[str, str, str]:
    return argument.partition("=")


def _suffixes(arguments: tuple[str, ...]) -> Iterator[Inner]:
    for index, argument in enumerate(arguments[:24]):
        if argument and not argument.startswith("-"):
            yield Inner(argv=arguments[index : index + SUFFIX_MOST], guess=True)


def _after_options(arguments: tuple[str, ...], wrapper: _Wrapper) -> Iterator[Inner | Script]:
    index = _command_at(arguments, wrapper)
    if index is None:
        yield from _suffixes(arguments)
        return
    index += wrapper.positional
    while wrapper.assignments and index < len(arguments) and _ASSIGNS.match(arguments[index]):
        index += 1
    rest = arguments[index:]
    if rest and wrapper.joined:
        yield Script(text=" ".join(rest))
    elif rest:
        yield Inner(argv=rest)


def _command_at(arguments: tuple[str, ...], wrapper: _Wrapper) -> int | None:
    """Where the options end; nothing if one of them is not known."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument == "--":
            return index + 1
        if not argument.startswith("-") or argument == "-":
            return index
        index += 1
        if argument.startswith("--"):
            option, equals, _ = argument[2:].partition("=")
            if option in wrapper.long_valued:
                index += not equals
            elif option not in wrapper.long_flags:
                return None
        else:
            taken = _short_options(argument[1:], wrapper)
            if taken is None:
                return None
            index += taken
    return index


def _short_options(letters: str, wrapper: _Wrapper) -> int | None:
    """How many further arguments these letters take."""
    for position, letter in enumerate(letters):
        if letter in wrapper.valued:
            return 0 if position + 1 < len(letters) else 1
        if letter not in wrapper.flags:
            return None
    return 0


def _env(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    for index, argument in enumerate(arguments):
        for option in ("-S", "--split-string=", "-vS", "-iS"):
            if argument.startswith(option):
                rest = (argument[len(option) :], *arguments[index + 1 :])
                yield Script(text=" ".join(rest))
        if argument == "--split-string":
            yield Script(text=" ".join(arguments[index + 1 :]))
    known = _Wrapper(
        valued="uC",
        flags="i0v",
        long_valued=("unset", "chdir"),
        long_flags=("ignore-environment", "null", "debug"),
        assignments=True,
    )
    if arguments[:1] == ("-",):
        arguments = arguments[1:]
    yield from _after_options(arguments, known)


def _xargs(arguments: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:
    given = tuple(stdin.split()) if stdin is not None else (UNKNOWN,)
    mark = ""
    for index, argument in enumerate(arguments):
        if argument.startswith("-I"):
            mark = argument[2:] or (arguments[index + 1] if index + 1 < len(arguments) else "")
        elif argument in {"-i", "--replace"}:
            mark = "{}"
        elif argument.startswith(("--replace=", "-i")):
            mark = argument.partition("=")[2] or argument[2:]
    for inner in _after_options(arguments, _XARGS):
        if isinstance(inner, Inner):
            argv = inner.argv
            marked = tuple(each.replace(mark, " ".join(given)) for each in argv) if mark else argv
            yield Inner(argv=marked if mark else (*argv, *given), guess=inner.guess)


def _parallel(arguments: tuple[str, ...], stdin: str | None) -> Iterator[Inner | Script]:
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in _PARALLEL_VALUED else 1
    rest = arguments[index:]
    separators = [at for at, argument in enumerate(rest) if argument in {":::", "::::", ":::+"}]
    command = rest[: separators[0]] if separators else rest
    inputs = rest[separators[0] + 1 :] if separators else tuple((stdin or UNKNOWN).split("\n"))
    text = " ".join(command)
    for value in inputs[:16]:
        if not command:
            yield Script(text=value)
        elif "{}" in text:
            yield Script(text=text.replace("{}", value))
        else:
            yield Script(text=f"{text} {value}")


def found_paths(name: str, arguments: tuple[str, ...]) -> list[str]:
    """What `find` and `fd` print, as paths with gaps."""
    roots = []
    for argument in arguments:
        if argument.startswith(("-", "(", "!")) and argument not in {"-H", "-L", "-P"}:
            break
        if not argument.startswith("-"):
            roots.append(argument)
    following = (*arguments[1:], "")
    names = [
        value
        for argument, value in zip(arguments, following, strict=True)
        if argument in _FIND_NAMES and value not in {"*", "**", ".*"}
    ]
    if name.startswith("fd"):
        names, roots = [f"*{each}*" for each in roots[:1]], roots[1:]
    narrowed = any(
        argument in _FIND_TESTS and value not in {"*", "**", ".*"}
        for argument, value in zip(arguments, following, strict=True)
    )
    tails = [f"/{each}" for each in names] or ([f"/{UNKNOWN}"] if narrowed else [""])
    return [f"{root.rstrip('/')}/{ANY_DEPTH}{tail}" for root in (roots or ["."])[:4] for tail in tails[:4]]


def _find(name: str, arguments: tuple[str, ...]) -> Iterator[Inner]:
    found = found_paths(name, arguments)
    for index, argument in enumerate(arguments):
        if argument in _FIND_RUNS or argument in {"-x", "-X", "--exec", "--exec-batch"}:
            command = []
            for each in arguments[index + 1 :]:
                if each in {";", "+"}:
                    break
                command.append(each)
            if name.startswith("fd") and "{" not in "".join(command):
                command.append("{}")
            for place in found[:8]:
                yield Inner(argv=tuple(each.replace("{}", place) for each in command))


def _ssh(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    index = 0
    while index < len(arguments) and arguments[index].startswith("-") and arguments[index] != "--":
        argument = arguments[index]
        index += 1
        if argument[1:2] in _SSH_VALUED:
            value = argument[2:] or (arguments[index] if index < len(arguments) else "")
            index += not argument[2:]
            yield from _ssh_option(value)
    rest = tuple(each for each in arguments[index:] if each != "--")[1:]
    if rest:
        yield Script(text=" ".join(rest))


def _ssh_option(value: str) -> Iterator[Script]:
    if found := _SSH_RUNS.match(value):
        yield Script(text=found[1])


def _git_verbs(arguments: tuple[str, ...]) -> Iterator[Inner | Script]:
    for index, argument in enumerate(arguments):
        if argument == "foreach":
            yield Script(text=" ".join(each for each in arguments[index + 1 :] if each != "--recursive"))
        elif argument == "run" and "bisect" in arguments[:index]:
            yield Inner(argv=arguments[index + 1 :])
        elif argument.startswith("ext::"):
            yield Script(text=argument.removeprefix("ext::"))
        elif (argument == "-u" and "clone" in arguments[:index]) or (
            argument.startswith("--") and argument.endswith("-filter")
        ):
            yield from (Script(text=each) for each in arguments[index + 1 : index + 2])


def _runner(arguments: tuple[str, ...]) -> Iterator[Inner]:
    for index, argument in enumerate(arguments):
        if argument in {"run", "exec", "develop", "-c", "--run", "--command"}:
            yield from _suffixes(arguments[index + 1 :])
            return


def _values_run(name: str, arguments: tuple[str, ...]) -> Iterator[Script]:
    for index, argument in enumerate(arguments):
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        for option in _RUNS_VALUE.get(name, ()):
            given, equals, value = argument.partition("=")
            if argument == option:
                yield Script(text=following.removeprefix("exec="))
            elif option.startswith("--") and len(given) > 3 and option.partition("=")[0].startswith(given):
                yield Script(text=(value if equals else following).removeprefix("exec="))
            elif len(option) == 2 and argument.startswith(option) and not argument.startswith("--"):
                yield Script(text=argument[2:])
        if name in {"mapfile", "readarray"} and re.fullmatch(r"-[a-z]*C.*", argument, re.DOTALL):
            yield Script(text=argument.partition("C")[2] or following)
        if name in {"su", "runuser"} and re.fullmatch(r"-[a-z]*c", argument):
            yield Script(text=following)
        if name == "git" and (found := _GIT_RUNS.match(_git_setting(argument, following))):
            yield Script(text=found[1])
        if name in {"vim", "vi", "nvim", "view", "ex", "less", "more", "gdb", "lldb"}:
            text = argument if "!" in argument or "shell" in argument else ""
            if found := re.search(r"(?:!|\bshell\b|system\()\s*['\"]?([^'\"]*)", text):
                yield Script(text=found[1])


def _git_setting(argument: str, following: str) -> str:
    """`-c name=value` and `config name value` alike."""
    return argument if "=" in argument else f"{argument}={following}"
