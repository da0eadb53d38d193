"""Detection of commands that control the daemon: a tool could approve its own calls.

Any access to the daemon's command line, code, socket or port counts, except commands that only show something. If a
word may be a plain argument, only the names of commands that change something count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hermes.shell_policy.bash.syntax import UNKNOWN, words
from hermes.shell_policy.finding import Case, Finding
from hermes.shell_policy.protected_path import LookupContext

_SHOWS = words("ps sessions show why tail status completion help")
_SHOWS_INSIDE = {"config": words("path"), "storage": words("stats verify"), "dead-letters": words("list")}
_CHANGES = words(
    "answer approve always backup chat compress compact config daemon dead-letters delete deny drain end export grant"
    " import kill purge reject reset restart restore resume send service shutdown start steer stop storage suspend"
    " uninstall yes yolo grants"
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|coverage|ipython\d?")
_RUNS_MODULE = re.compile(r"-[A-Za-z]*?m(.*)", re.DOTALL)
_RUNS_OTHERS = words("runpy pdb cprofile profile trace coverage timeit ipython")
_MODULE = re.compile(r"hermes(?:\.\w+)*")
_SCRIPT = re.compile(r"(?:.*/)?hermes(?:/(?:\w+/)*\w+\.py)?")
_IMPORTS = re.compile(
    r"\bimport\s[^\n;]{0,200}\bhermes\b|\bfrom\s+hermes\b|(?:import_module|__import__|run_module|load_module|find_spec)"
    r"\s*\(\s*[\w=]*\s*['\"]hermes\b|\bhermes\.(?:cli|sock)\b|\bentry_points\b"
)
_CLIENTS = words(
    "curl wget http https xh httpie curlie websocat wscat socat nc ncat netcat nc.openbsd nc.traditional telnet"
    " openssl grpcurl aria2c lynx links w3m ab wrk hey ssh"
)
_SOCKET = re.compile(r"hermes[\w.-]*\.sock", re.IGNORECASE)
_LOCAL = r"localhost|127\.|::1|0\.0\.0\.0"
_UNIX = re.compile(
    r"(?:--(?:abstract-)?unix-socket=?|-[a-zA-Z]*U|unix(?:-\w+)?:|--uds)(.*)", re.IGNORECASE | re.DOTALL
)


def talks_to_daemon(case: Case) -> Iterator[Finding]:
    for way in (_by_command, _by_module, _by_connection):
        if why := way(case):
            yield Finding(rule="hermes-control", why=why)
            return


def code_talks_to_daemon(code: str, place: LookupContext) -> bool:
    if _IMPORTS.search(code) or _SOCKET.search(code):
        return True
    return names_port(code, place) and bool(_local(place.own.hosts).search(code))


def names_port(text: str, place: LookupContext) -> bool:
    """Return whether the text names a port of the daemon, other than for its health endpoint."""
    return bool(place.own.ports and _port(place.own.ports).search(text))


@lru_cache(maxsize=16)
def _port(ports: frozenset[int]) -> re.Pattern[str]:
    numbers = "|".join(str(port) for port in sorted(ports))
    return re.compile(rf"(?::|\b(?:tcp|udp)/[^/]*/|\s|,\s*|^)(?:{numbers})\b(?!/health\b)")


@lru_cache(maxsize=16)
def _local(hosts: tuple[str, ...], more: str = "") -> re.Pattern[str]:
    named = (re.escape(host) for host in hosts if host)
    return re.compile("|".join(filter(None, (_LOCAL, *named, more))), re.IGNORECASE)


def connects_to_unknown_socket(case: Case) -> bool:
    """Return whether the command connects to a socket whose name is only known at run time."""
    if case.name not in _CLIENTS:
        return False
    arguments = case.arguments
    for index, argument in enumerate(arguments):
        if found := _UNIX.fullmatch(argument):
            target = found[1] or "".join(arguments[index + 1 : index + 2])
            if re.search(rf"[*?\[{UNKNOWN}]", target.rpartition("/")[2]) or target.startswith(UNKNOWN):
                return True
    return False


def _by_command(case: Case) -> str:
    if case.name != "hermes" or _only_shows(case.arguments, guess=case.command.guess):
        return ""
    return "controls Hermes itself or answers for its owner"


def _only_shows(arguments: tuple[str, ...], *, guess: bool) -> bool:
    if guess:
        return not _CHANGES & set(arguments[:4])
    if not arguments or {"--version", "--help", "-h"} & {arguments[0], arguments[1] if len(arguments) == 2 else ""}:
        return True
    given = [each for each in arguments if not each.startswith("-")]
    if UNKNOWN in "".join(arguments[:1]):
        return False
    if given and given[0] in _SHOWS and arguments[0] == given[0]:
        return True
    return len(given) > 1 and given[1] in _SHOWS_INSIDE.get(given[0], ())


def _by_module(case: Case) -> str:
    if not _PYTHON.fullmatch(case.name):
        return ""
    why = "runs Hermes' own code"
    arguments = case.arguments
    others = False
    for index, argument in enumerate(arguments):
        if found := _RUNS_MODULE.fullmatch(argument):
            module = found[1] or "".join(arguments[index + 1 : index + 2])
            others = others or module.lower() in _RUNS_OTHERS
            rest = arguments[index + 1 + (not found[1]) :]
            if _MODULE.fullmatch(module):
                return "" if rest and _only_shows(rest, guess=False) else why
        elif _SCRIPT.fullmatch(argument) and (others or not index or arguments[index - 1].startswith("-")):
            rest = arguments[index + 1 :]
            return "" if rest and _only_shows(rest, guess=False) else why
        elif others and _MODULE.fullmatch(argument):
            return why
    return ""


def _by_connection(case: Case) -> str:
    targets = (each.target for each in case.command.redirections)
    redirected = any(re.match(r"/dev/(?:tcp|udp)/", each) and names_port(each, case.place) for each in targets)
    text = " ".join(case.arguments) if case.name in _CLIENTS else ""
    local = names_port(text, case.place) and _local(case.place.own.hosts, r"://0?[:/]").search(text)
    return "connects to Hermes itself" if redirected or local or _SOCKET.search(text) else ""
