"""Check of code on an interpreter's command line: does it delete, run or hide something?

The check searches for words that can do harm. It also returns the strings in the code, because a command line in a
string is judged like any other.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from hermes.domain.values import dataclass
from hermes.shell_policy.bash.syntax import words

_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|deno|bun|osascript|tclsh|julia|rscript|groovy|guile)[\d.]*"
)
_CODE_OPTIONS: dict[str, re.Pattern[str]] = {
    "python": re.compile(r"-[A-Za-z]*c(.*)", re.DOTALL),
    "pypy": re.compile(r"-[A-Za-z]*c(.*)", re.DOTALL),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE](.*)", re.DOTALL),
    "ruby": re.compile(r"-[A-Za-z]*e(.*)", re.DOTALL),
    "node": re.compile(r"(?:-[a-z]*[ep]|--eval=?|--print=?)(.*)", re.DOTALL),
    "php": re.compile(r"-[BRErn]*[BREr](.*)", re.DOTALL),
}
_ANY_CODE_OPTION = re.compile(r"(?:-[ec]|--eval=?|eval|--execute=?)(.*)", re.DOTALL)
# In lower case; as whole words of the code.
_HARM_WORDS = words(
    "system subprocess popen popen2 popen3 popen4 exec execl execle execlp execv execve execvp execvpe execfile"
    " execsync execfilesync spawn spawnl spawnv spawnsync posix_spawn fork forkpty qx pty shutil rmtree unlink"
    " unlinksync rmdir rmdirsync removedirs remove_file remove_dir remove_tree rmsync rm_rf rm_r kill killpg delete"
    " fileutils truncate eval compile __import__ importlib getattr setattr globals chr fromhex fromcharcode"
    " b64decode b64encode base64 decode codecs marshal pickle ctypes cffi socket child_process worker_threads vm"
    " deno bun function constructor kernel passthru shell_exec proc_open pcntl_exec pack unpack write_text"
    " write_bytes chmod chown symlink posix nt commands expect writefile writefilesync appendfile appendfilesync"
    " rename renamesync send instance_eval public_send syscall dlopen runpy execute __builtins__ __dict__ __class__"
    " __subclasses__ __globals__ __getattribute__ __loader__ __spec__ modules startfile removesync copyfile urllib"
    " requests httpx aiohttp http smtplib ftplib imaplib poplib telnetlib nntplib xmlrpc xmlrpclib socketserver"
    " asyncio sqlite3 dbm shelve fileinput zipfile tarfile gzip bz2 lzma tempfile logging multiprocessing threading"
    " concurrent webbrowser code codeop pdb bdb ast inspect ensurepip site venv signal resource fcntl mmap touch"
    " mkdir makedirs mknod mkfifo hardlink_to symlink_to link_to replace_file unlink_file open_code fetch"
    " xmlhttprequest websocket fsockopen stream_socket_client curl_exec file_put_contents fopen fwrite sysopen"
    " syswrite opendir io net tls dgram dns cluster module require_once include_once autoload tcpsocket udpsocket"
    " net::http getbuiltinmodule binding mainmodule createrequire spawnargs getppid argv0 linkat process_vm_readv"
    " import_module run_module run_path load_source exec_module"
)
_WORD = re.compile(r"[a-z_]\w*")
_HARM_FORMS = re.compile(
    r"\brm\s*\(|\bremove\s*\(|\bvars\s*\(|\blocals\s*\(|\bimport\s*\(|\brequire\s*\((?!\s*['\"][\w./@-]+['\"]\s*\))"
    r"|['\"](?:node:)?(?:fs|net|os|cluster|module)(?:/\w+)?['\"]|%x|\bio\.|\bfile\.(?:write|open|new)|\bdir\.|do shell script"  # noqa: E501
    r"|\\x[0-9a-f]{2}|\\u00|\\[0-7]{3}|`|\bopen\s*\([^)]{0,200},\s*(?:mode\s*=\s*)?['\"][rb]*[wax+]|\bopen\b[^;\n]{0,80}[|>]"
    r"|\bos\.(?!path\b|getcwd|environ\b|sep\b|name\b|cpu_count|listdir|getpid|uname|linesep)|\bfrom\s+os\b|\bimport\s+os\s+as\b"
    r"|process\.(?:binding|mainmodule)"
)
_FORKS = re.compile(
    r"fork\s+while\s+fork|while\s*(?:\(?\s*(?:1|true)\s*\)?)[^;]*fork|fork\s*\(?\)?\s*(?:&&|\|\|)?\s*fork",
    re.IGNORECASE | re.DOTALL,
)
_DELETES_TREE = re.compile(
    r"rmtree|remove_tree|rm_rf|rm_r\b|rmsync|rmdir|\brm\s*\(|FileUtils|removedirs|RemoveAll", re.IGNORECASE
)
_TEXT = re.compile(
    r"'((?:[^'\\\n]|\\.){1,2000})'|\"((?:[^\"\\\n]|\\.){1,2000})\"|`([^`]{1,2000})`|(?:qx|%x|q|qq)\s*[({\[/!]([^)}\]/!]{1,500})"
)
MAX_TEXTS = 24
MAX_CODE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    harm: str  # first harmful word, or empty
    forks: bool
    deletes_tree: bool
    texts: tuple[str, ...]


def language_of(name: str) -> str:
    found = _INTERPRETERS.fullmatch(name)
    return {"nodejs": "node", "luajit": "lua"}.get(found[1], found[1]) if found else ""


def code_in(name: str, argv: tuple[str, ...]) -> str | None:
    """Return all code in an interpreter's arguments."""
    pattern = _CODE_OPTIONS.get(language_of(name), _ANY_CODE_OPTION)
    pieces = []
    for index, argument in enumerate(argv[1:], 1):
        if found := pattern.fullmatch(argument):
            pieces.append(found[1])
            pieces.extend(argv[index + 1 : index + 2])
    return "\n".join(pieces) if pieces else None


@lru_cache(maxsize=8)
def read_code(code: str) -> Code:
    code = unicodedata.normalize("NFKC", code)  # as Python reads names
    texts = [next(filter(None, found.groups()), "") for found in _TEXT.finditer(code)][:MAX_TEXTS]
    return Code(
        harm=_harm_in(code.lower()),
        forks=bool(_FORKS.search(code)),
        deletes_tree=bool(_DELETES_TREE.search(code)),
        texts=(*texts, " ".join(texts)) if len(texts) > 1 else tuple(texts),
    )


def _harm_in(code: str) -> str:
    if len(code) > MAX_CODE:
        return "too long to be checked"
    if words := _HARM_WORDS.intersection(_WORD.findall(code)):
        return min(words)
    form = _HARM_FORMS.search(code)
    return form[0].strip()[:40] if form else ""
