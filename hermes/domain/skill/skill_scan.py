"""Scan of a skill: what in its files could do harm, with a verdict. Pure.

It finds known patterns and is no proof. A skill that passes is still run in the sandbox, and its commands are judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from hermes.domain.text.injection import suspicion
from hermes.domain.text.standing_order import is_order
from hermes.domain.values import dataclass


class ScanVerdict(StrEnum):
    SAFE = "safe"
    CAUTION = "caution"
    DANGEROUS = "dangerous"


class ScanRule(StrEnum):
    INJECTION = "injection"
    EXFILTRATION = "exfiltration"
    DESTRUCTIVE = "destructive"
    OBFUSCATION = "obfuscation"
    SECRET = "secret"  # noqa: S105 - it contains one, or reads one
    PERSISTENCE = "persistence"
    PRIVILEGE = "privilege"
    NETWORK = "network"
    BINARY = "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    rule: ScanRule
    verdict: ScanVerdict
    path: str
    line: int  # 0: the whole file
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    findings: tuple[ScanFinding, ...] = ()

    @property
    def verdict(self) -> ScanVerdict:
        worst = max((_SEVERITY.index(each.verdict) for each in self.findings), default=0)
        return _SEVERITY[worst]


_SEVERITY: Final = (ScanVerdict.SAFE, ScanVerdict.CAUTION, ScanVerdict.DANGEROUS)
_MAX_FINDINGS: Final = 50
_MAX_LINE: Final = 4000
_SCRIPTS: Final = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".lua", ".fish")
_DANGER, _CAUTION = ScanVerdict.DANGEROUS, ScanVerdict.CAUTION

_PRIVATE: Final = (
    r"(\.ssh/|id_rsa|id_ed25519|\.aws/|\.netrc|\.git-credentials|\.kube/config|\.gnupg|\.env\b(?!\.example)|"
    r"/etc/(passwd|shadow)|api\.key|admin\.token|hermes\.sock|\.hermes/|HERMES_HOME|keychain|wallet\.dat|"
    r"\$\{?\w*(api_?key|token|secret|passw|credential)\w*|login data|cookies\.sqlite)"
)
_SEND: Final = (
    r"(\b(curl|wget|nc|ncat|socat|telnet|scp|sftp|rsync)\b|requests\.(post|put|get)|urlopen|fetch\(|http\.client|"
    r"smtplib|socket\.(socket|create_connection)|axios|webhook|https?://)"
)
# rule, verdict, pattern of one line, reason
_LINES: Final = (
    (ScanRule.EXFILTRATION, _DANGER, rf"{_SEND}.*{_PRIVATE}|{_PRIVATE}.*{_SEND}", "sends private data elsewhere"),
    (
        ScanRule.EXFILTRATION,
        _DANGER,
        (
            r"\b(env|printenv|set|history)\b\s*\|.*\b(curl|wget|nc|ncat|base64)\b"
            r"|os\.environ\b.{0,80}(requests|urlopen|post\()"
            r"|(requests\.\w+|urlopen|post)\(.{0,200}os\.environ\b(?!\[)(?!\.get)"
        ),
        "sends environment variables elsewhere",
    ),
    (
        ScanRule.EXFILTRATION,
        _DANGER,
        r"!\[[^\]]*\]\(https?://[^)]*[?&=/]\s*(\{|\$|<|%7b)",
        "leaks data through a picture",
    ),
    (
        ScanRule.EXFILTRATION,
        _DANGER,
        (
            r"/dev/(tcp|udp)/|\b(nslookup|dig|host)\b.*(\$\(|`|\$\{?\w)|\bngrok\b|webhook\.site"
            r"|requestbin|pastebin\.com|transfer\.sh"
        ),
        "opens a channel to another machine",
    ),
    (
        ScanRule.DESTRUCTIVE,
        _DANGER,
        (
            r"\brm\s+(-\w*\s+)*-\w*[rf]\w*\s+(-\S+\s+)*[\"']?(/|~|\$HOME|\$\{HOME|\*)"
            r"|--no-preserve-root|\bmkfs\b|\bdd\b.*\bof=/dev/"
            r"|>\s*/dev/(sd|nvme|vd)|:\(\)\s*\{.*\};\s*:|\bshred\b|shutil\.rmtree\(\s*([\"'](/|~)"
            r"|os\.path\.expanduser|path\.home)"
            r"|\bfind\s+[/~].*-delete|chmod\s+-R\s+[0-7]*7\s+/|git\s+push\s+(?=.*(--force|\s-f)\b).*\b(main|master)\b"
        ),
        "destroys data",
    ),
    (
        ScanRule.OBFUSCATION,
        _DANGER,
        (
            r"\b(curl|wget)\b[^|;&]*\|\s*(sudo\s+)?(ba|z|da|fi)?sh\b|\b(curl|wget)\b[^|;&]*\|\s*(python"
            r"|perl|ruby|node)"
            r"|(ba|z)?sh\s+(-c\s+)?[\"']?<?\(?\$?\(?\s*(curl|wget)\b|eval\s+[\"']?\$\(\s*(curl|wget)"
        ),
        "runs code from the network",
    ),
    (
        ScanRule.OBFUSCATION,
        _DANGER,
        (
            r"base64\s+(-d|--decode|-D)[^|]*\|\s*(ba|z)?sh|\|\s*base64\s+(-d|--decode)\s*\|\s*\S*(sh|python|perl)"
            r"|\b(exec|eval)\s*\(.{0,80}(b64decode|unhexlify|fromhex|decompress|atob|rot13|decode\()"
            r"|xxd\s+-r.*\|\s*(ba)?sh|marshal\.loads|\beval\s+[\"']?\$\((echo|printf)|Function\(\s*atob"
        ),
        "hides the code that it runs",
    ),
    (
        ScanRule.OBFUSCATION,
        _CAUTION,
        r"[A-Za-z0-9+/]{400,}={0,2}|(\\x[0-9a-f]{2}){40,}",
        "contains a long encoded text",
    ),
    (
        ScanRule.OBFUSCATION,
        _CAUTION,
        r"(?<![\w.])(exec|eval)\s*\(\s*(?![\"')])|__import__\(|\bimportlib\.import_module\(",
        "runs computed code",
    ),
    (
        ScanRule.SECRET,
        _DANGER,
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(sk-[A-Za-z0-9_-]{20,}|ghp_[A-Za-z0-9]{30,}"
            r"|github_pat_\w{30,}|AKIA[0-9A-Z]{16}|"
            r"xox[bpars]-[\w-]{20,}|AIza[\w-]{35}|glpat-[\w-]{20,})"
        ),
        "contains a secret",
    ),
    (ScanRule.SECRET, _CAUTION, _PRIVATE, "names private files or keys"),
    (
        ScanRule.PERSISTENCE,
        _DANGER,
        (
            r">>?\s*[\"']?(~|\$HOME|/home/\w+|/root)/\.(bashrc|zshrc|profile|bash_profile|zshenv)"
            r"|authorized_keys|\bcrontab\s+(-(?!\w)|[^-l\s])"
            r"|/etc/(cron|systemd|init\.d|rc\.local|sudoers)|systemctl\s+(--user\s+)?enable"
            r"|launchctl\s+load|\bnohup\b.*&\s*disown"
        ),
        "makes itself permanent",
    ),
    (
        ScanRule.PERSISTENCE,
        _DANGER,
        (
            r"\b(write|append|add|save|put|edit|modify|change|update)\b.{0,60}\b(SOUL\.md|MEMORY\.md"
            r"|USER\.md|AGENTS\.md|config\.yaml)\b"
            r"|>>?\s*\S*(SOUL|MEMORY|USER|AGENTS)\.md"
        ),
        "changes the agent's own prompts or settings",
    ),
    (ScanRule.PRIVILEGE, _CAUTION, r"\bsudo\b|\bsu\s+-|\bdoas\b|\bpkexec\b", "asks for more rights"),
    (
        ScanRule.PRIVILEGE,
        _DANGER,
        (
            r"setuid|chmod\s+[0-7]*[46][0-7]{3}\s|chmod\s+\+s|approvals\.mode|outside_sandbox"
            r"|--dangerously|api\.allow_yolo|/yolo\b|/approve\s+always"
        ),
        "switches protection off",
    ),
)
_SCRIPT_LINES: Final = (
    (ScanRule.NETWORK, _CAUTION, _SEND, "uses the network"),
    (
        ScanRule.NETWORK,
        _CAUTION,
        r"\b(pip|pip3|npm|npx|uvx|gem|cargo|go)\s+(install|i|add|get|run)\b|\bnpx\s|\buvx\s",
        "installs packages",
    ),
)


def scan(files: Mapping[str, bytes]) -> ScanReport:
    """Return what was found in the files of a skill, worst first."""
    found: list[ScanFinding] = []
    for path in sorted(files):
        found += _in_file(path, files[path])
    found.sort(key=lambda each: -_SEVERITY.index(each.verdict))
    return ScanReport(findings=tuple(found[:_MAX_FINDINGS]))


def _in_file(path: str, data: bytes) -> Iterator[ScanFinding]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
        if _is_program(data):
            yield ScanFinding(rule=ScanRule.BINARY, verdict=_DANGER, path=path, line=0, reason="is a program")
        elif not path.startswith("assets/"):
            yield ScanFinding(rule=ScanRule.BINARY, verdict=_CAUTION, path=path, line=0, reason="is not text")
    if reason := suspicion(text):
        yield ScanFinding(rule=ScanRule.INJECTION, verdict=_DANGER, path=path, line=0, reason=reason)
    is_script = path.startswith("scripts/") or path.endswith(_SCRIPTS) or text.startswith("#!")
    for number, line in enumerate(_lines(text), 1):
        yield from _in_line(path, number, line, is_script=is_script)


def _in_line(path: str, number: int, line: str, *, is_script: bool) -> Iterator[ScanFinding]:
    rules: Iterable[tuple[ScanRule, ScanVerdict, str, str]] = (*_LINES, *_SCRIPT_LINES) if is_script else _LINES
    for rule, verdict, pattern, reason in rules:
        if re.search(pattern, line, re.IGNORECASE):
            yield ScanFinding(rule=rule, verdict=verdict, path=path, line=number, reason=reason)
    if not is_script and is_order(line):
        reason = "gives orders against the person"
        yield ScanFinding(rule=ScanRule.INJECTION, verdict=_DANGER, path=path, line=number, reason=reason)


def _lines(text: str) -> Iterator[str]:
    """Yield lines of limited length; a continued line counts as one."""
    for line in text.replace("\\\n", " ").splitlines():
        for start in range(0, max(1, len(line)), _MAX_LINE):
            yield line[start : start + _MAX_LINE + 200]


def _is_program(data: bytes) -> bool:
    return data.startswith((b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa", b"\0asm"))
