"""Real programs through the proxy. A program that is not installed skips its test."""

from __future__ import annotations

import asyncio
import filecmp
import hashlib
import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

from hermes.sandbox.network.proxy import GuardProxy, NetworkPolicy
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason
from tests.sandbox.proxied import (
    DEADLINE_S,
    HOST,
    LISTED,
    Names,
    allow_loopback,
    needed,
    proxied,
    self_signed,
    web_server,
)

BIG = 3_000_000
URLLIB = (
    "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"
)


class Site(BaseHTTPRequestHandler):
    """Static files of `root`, an upload, and a git repository below /git."""

    protocol_version = "HTTP/1.1"
    root: ClassVar[Path]

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def do_GET(self) -> None:
        if self.path.startswith("/git/"):
            self._git(b"")
        elif self.path == "/hello":
            self._say(b"hello", "text/plain")
        elif self.path == "/big":
            self._say(bytes(BIG), "application/octet-stream")
        elif (file := self.root / self.path.strip("/")).is_file():
            self._say(file.read_bytes(), "application/octet-stream")
        elif file.is_dir():
            links = "".join(f'<a href="{name.name}">{name.name}</a>' for name in sorted(file.iterdir()))
            self._say(links.encode(), "text/html")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.startswith("/git/"):
            self._git(body)
        else:
            self._say(hashlib.sha256(body).hexdigest().encode(), "text/plain")

    def _say(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _git(self, body: bytes) -> None:
        path, _, query = self.path.removeprefix("/git").partition("?")
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=True)
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        kind = next(line for line in head.decode().split("\r\n") if line.lower().startswith("content-type:"))
        self._say(answer, kind.partition(":")[2].strip())


@pytest.fixture
def site(tmp_path: Path) -> type[Site]:
    root = tmp_path / "site"
    root.mkdir()
    return type("ThisSite", (Site,), {"root": root})


@pytest.fixture
def http(site: type[Site]) -> Iterator[int]:
    with web_server(site) as port:
        yield port


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return self_signed(tmp_path)


@pytest.fixture
def https(site: type[Site], certificate: Path) -> Iterator[int]:
    with web_server(site, certificate) as port:
        yield port


async def test_curl_over_http(http: int, tmp_path: Path) -> None:
    curl = needed("curl")
    upload = tmp_path / "upload"
    upload.write_bytes(os.urandom(BIG))
    async with proxied(ports=[http]) as made:
        assert await made.run(curl, "-sSf", f"http://{HOST}:{http}/hello") == (0, "hello")
        # Two addresses in one run: curl would reuse the connection if it were kept open.
        code, said = await made.run(curl, "-sSf", f"http://{HOST}:{http}/hello", f"http://{HOST}:{http}/hello")
        assert (code, said) == (0, "hellohello")
        code, said = await made.run(
            curl, "-sSf", "-H", "Expect:", "--data-binary", f"@{upload}", f"http://{HOST}:{http}/upload"
        )
        assert (code, said) == (0, hashlib.sha256(upload.read_bytes()).hexdigest())
        code, _ = await made.run(curl, "-sSf", "-o", str(tmp_path / "big"), f"http://{HOST}:{http}/big")
        assert code == 0
        assert (tmp_path / "big").stat().st_size == BIG
        code, said = await made.run(curl, "-sS", f"http://evil.test:{http}/")
        assert "evil.test is not on the list" in said
    assert made.refused == [Reason.NOT_LISTED]
    assert sum(event.bytes_sent for event in made.events) > BIG
    assert sum(event.bytes_received for event in made.events) > BIG


async def test_curl_over_https(https: int, certificate: Path, tmp_path: Path) -> None:
    curl = (needed("curl"), "-sS", "--cacert", str(certificate))
    async with proxied(ports=[https]) as made:
        assert await made.run(*curl, f"https://{HOST}:{https}/hello") == (0, "hello")
        code, _ = await made.run(*curl, "-o", str(tmp_path / "big"), f"https://{HOST}:{https}/big")
        assert code == 0
        assert (tmp_path / "big").stat().st_size == BIG
        for host in ("evil.test", "127.0.0.1", "2130706433", "[::1]"):
            code, said = await made.run(*curl, f"https://{host}:{https}/hello")
            assert code == 56, said  # curl's code for a refused CONNECT
            assert "403" in said
        # Its TLS name is another host's than the one of CONNECT.
        other = ("--connect-to", f"evil.test:{https}:{HOST}:{https}")
        code, _ = await made.run(*curl, *other, f"https://evil.test:{https}/hello")
        assert code == 35  # curl's code for a failed handshake
    assert made.refused == [Reason.NOT_LISTED, *[Reason.NOT_A_NAME] * 3, Reason.OTHER_SERVER_NAME]


async def test_urllib(http: int, https: int, certificate: Path) -> None:
    async with proxied(ports=[http, https]) as made:
        python = (sys.executable, "-Ic", URLLIB)
        trust = {"SSL_CERT_FILE": str(certificate)}
        assert await made.run(*python, f"http://{HOST}:{http}/hello") == (0, "hello")
        assert await made.run(*python, f"https://{HOST}:{https}/hello", **trust) == (0, "hello")
        code, said = await made.run(*python, f"https://evil.test:{https}/hello", **trust)
        assert code == 1
        assert "sandbox: evil.test is not on the list of allowed hosts" in said


@pytest.fixture
def pip() -> tuple[str, ...]:
    command = (sys.executable, "-m", "pip", "--isolated", "--no-cache-dir", "--disable-pip-version-check")
    if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pip is not installed")
    return command


@pytest.fixture
def wheel(site: type[Site]) -> Path:
    """A package in the site's index."""
    folder = site.root / "simple" / "demo"
    folder.mkdir(parents=True)
    wheel = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("demo.py", "x = 1\n")
        file.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        file.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("demo-1.0.dist-info/RECORD", "")
    return wheel


async def test_pip_downloads_from_an_index(http: int, pip: tuple[str, ...], wheel: Path, tmp_path: Path) -> None:
    async with proxied(ports=[http]) as made:
        proxy = (
            "--proxy",
            f"http://127.0.0.1:{made.port}",
            "--retries",
            "2",
        )  # the proxy may close a reused connection
        index = ("--index-url", f"http://{HOST}:{http}/simple/", "--trusted-host", HOST)
        order = ("download", "--no-deps", "--dest", str(tmp_path / "out"))
        code, said = await made.run(*pip, *proxy, *order, *index, "demo")
        assert code == 0, said
    assert filecmp.cmp(tmp_path / "out" / wheel.name, wheel, shallow=False)
    assert {event.host for event in made.events} == {HOST}


@pytest.fixture
def git(site: type[Site], tmp_path: Path) -> str:
    """Git, and a repository with one file on the site."""
    git = needed("git")
    libexec = subprocess.run([git, "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(libexec, "git-http-backend").exists():
        pytest.skip("git has no http-backend")
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("cloned\n")
    who = ("-C", str(source), "-c", "user.name=a", "-c", "user.email=a@site.test")
    for order in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "first"]):
        subprocess.run([git, *who, *order], check=True)
    subprocess.run([git, "clone", "-q", "--bare", str(source), str(site.root / "demo.git")], check=True)
    return git


async def test_git_clones_over_http(git: str, http: int, tmp_path: Path) -> None:
    await clones(git, f"http://{HOST}:{http}", http, tmp_path / "clone")


async def test_git_clones_over_https(git: str, https: int, certificate: Path, tmp_path: Path) -> None:
    await clones(git, f"https://{HOST}:{https}", https, tmp_path / "clone", GIT_SSL_CAINFO=str(certificate))


async def clones(git: str, base: str, port: int, target: Path, **environ: str) -> None:
    environ |= {"GIT_TERMINAL_PROMPT": "0"}
    async with proxied(ports=[port]) as made:
        code, said = await made.run(git, "clone", "-q", f"{base}/git/demo.git", str(target), **environ)
        assert code == 0, said
        evil = base.replace(HOST, "evil.test")
        code, _ = await made.run(git, "clone", "-q", f"{evil}/git/demo.git", str(target) + "2", **environ)
        assert code != 0
    assert (target / "file").read_text() == "cloned\n"
    assert made.refused == [Reason.NOT_LISTED]


INSIDE = """
import json, socket, sys, urllib.request
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
daemon = socket.socket(fileno=int(sys.argv[1]))
socket.send_fds(daemon, [b"x"], [listener.fileno()])
daemon.close()
listener.close()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
said = [opener.open(sys.argv[2], timeout=20).read().decode()]
for direct in (sys.argv[3], "192.0.2.1"):
    try:
        socket.create_connection((direct, int(sys.argv[4])), timeout=5)
        said.append("connected")
    except OSError as error:
        said.append(type(error).__name__)
print(json.dumps(said))
"""


@pytest.fixture
def namespace() -> list[str]:
    command = [needed("bwrap"), "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap cannot make a network namespace here")
    return command


async def test_listening_socket_of_another_network_namespace(http: int, namespace: list[str]) -> None:
    """The socket was made inside a namespace without a route; the daemon serves it from outside."""
    ours, theirs = socket.socketpair()
    arguments = (str(theirs.fileno()), f"http://{HOST}:{http}/hello", "127.0.0.1", str(http))
    process = await asyncio.create_subprocess_exec(
        *(*namespace, sys.executable, "-Ic", INSIDE, *arguments),
        pass_fds=(theirs.fileno(),),
        stdout=asyncio.subprocess.PIPE,
    )
    theirs.close()
    with ours:
        ours.settimeout(DEADLINE_S)
        _, [descriptor], _, _ = await asyncio.to_thread(socket.recv_fds, ours, 1, 1)
    events: list[ProxyEvent] = []
    proxy = GuardProxy(resolve=Names().resolve, refusal=allow_loopback)
    policy = NetworkPolicy(allowed_hosts=LISTED, ports=frozenset({http}))
    serving = await proxy.serve(socket.socket(fileno=descriptor), policy=policy, report=events.append)
    try:
        async with asyncio.timeout(DEADLINE_S):
            output, _ = await process.communicate()
    finally:
        await serving.close()
    assert json.loads(output) == ["hello", "ConnectionRefusedError", "OSError"]
    assert [(event.kind, event.host) for event in events] == [(EventKind.ALLOWED, HOST)]
