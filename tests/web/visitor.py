"""A browser without scripts: keeps cookies, reads pages, sends forms."""

from __future__ import annotations

import http.client
import re
from email.message import Message
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from tests.support.daemon_process import DaemonProcess

HTML = "text/html,application/xhtml+xml"
WITHIN_S = 40.0


class Page:
    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def form_token(self) -> str:
        found = re.search(r'name="form[_-]token" (?:value|content)="([0-9a-f]*)"', self.text)
        return found[1] if found else ""


class Visitor:
    def __init__(self, address: str) -> None:
        self.address = address
        self.cookies: dict[str, str] = {}
        self.form_token = ""

    def get(self, path: str, *, accept: str = HTML, **headers: str) -> Page:
        return self.send("GET", path, {"Accept": accept, **headers})

    def post(self, path: str, *, accept: str = HTML, token: str | None = None, **fields: str) -> Page:
        """Send a form with the token of the last page."""
        token = self.form_token if token is None else token
        body = urlencode({"form_token": token, **fields}).encode()
        kind = "application/x-www-form-urlencoded"
        return self.send("POST", path, {"Accept": accept, "Content-Type": kind, "Origin": self.address}, body)

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Page:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=WITHIN_S)
        try:
            cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            connection.request(method, path, body or None, {**headers, **({"Cookie": cookies} if cookies else {})})
            answer = connection.getresponse()
            page = Page(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        if page.headers.get_content_maintype() == "text":
            self.form_token = page.form_token or self.form_token
        return page

    def log_in(self, daemon: DaemonProcess) -> None:
        """Log in by a link from the terminal."""
        link = urlsplit(str(daemon.admin.post("/dashboard/links")["link"]))
        self.get(f"{link.path}?{link.query}")
        assert self.post("/ui/login", code=link.query.removeprefix("code="), next="/").status == 303

    def log_in_by_key(self, key: str) -> Page:
        self.get("/")
        return self.post("/ui/login", key=key, next="/ui/sessions")
