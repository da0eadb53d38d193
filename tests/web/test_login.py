"""Login to the dashboard: by link, by key, and what is refused."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from hermes.web.login_limit import MAX_WRONG, WINDOW_S
from tests.support.daemon_process import DaemonProcess
from tests.web.visitor import HTML, Visitor

pytestmark = pytest.mark.timeout(120)


def test_stranger_gets_the_login_page_and_nothing_else(daemon: DaemonProcess, stranger: Visitor) -> None:
    page = stranger.get("/")
    assert page.status == 200
    assert "hermes dashboard" in page.text
    assert "/v1" in page.text
    moved = stranger.get("/ui/sessions?phase=idle")
    assert (moved.status, moved.headers["Location"]) == (303, "/ui/login?next=%2Fui%2Fsessions%3Fphase%3Didle")
    for path in ("/ui/samples", "/ui/live/actors", "/ui/events"):
        assert stranger.get(path, accept="*/*").status == 401
    assert daemon.key not in page.text


def test_link_logs_in_once(daemon: DaemonProcess) -> None:
    link = urlsplit(str(daemon.admin.post("/dashboard/links")["link"]))
    code = link.query.removeprefix("code=")
    first, second = Visitor(daemon.address), Visitor(daemon.address)
    for each in (first, second):
        assert code in each.get(f"{link.path}?{link.query}").text  # looking at it does not use it up
    assert first.post("/ui/login", code=code, next="/").status == 303
    assert "Overview" in first.get("/").text
    refused = second.post("/ui/login", code=code, next="/")
    assert refused.status == 403
    assert "Log in" in second.get("/").text
    late = Visitor(daemon.address).get(f"{link.path}?{link.query}")
    for page in (refused, late):
        assert "does not work any more" in page.text
        assert "hermes dashboard" in page.text
        assert 'name="key"' in page.text
    assert first.get(f"{link.path}?{link.query}").status == 303  # is logged in already


def test_key_logs_in_and_leads_to_the_wanted_page(daemon: DaemonProcess, stranger: Visitor) -> None:
    page = stranger.log_in_by_key(daemon.key)
    assert (page.status, page.headers["Location"]) == (303, "/ui/sessions")
    assert stranger.get("/ui/sessions").status == 200


def test_wrong_key_is_refused(stranger: Visitor) -> None:
    page = stranger.log_in_by_key("wrong")
    assert page.status == 403
    assert "The key is wrong" in page.text
    assert stranger.get("/ui/sessions").status == 303


def test_too_many_wrong_logins_are_refused_for_a_while() -> None:
    with DaemonProcess() as daemon:
        stranger = Visitor(daemon.address)
        answers = [stranger.log_in_by_key("wrong").status for _ in range(MAX_WRONG + 1)]
        assert answers == [*[403] * MAX_WRONG, 429]
        refused = stranger.log_in_by_key(daemon.key)
        assert refused.status == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= WINDOW_S
        assert 'role="alert"' in refused.text
        assert stranger.post("/ui/login", code="wrong").status == 429
        assert stranger.get("/ui/sessions").status == 303
        stranger.log_in(daemon)  # a link cannot be guessed
        assert stranger.get("/ui/sessions").status == 200


@pytest.mark.parametrize("role", ["user", "guest"])
def test_named_key_is_refused_with_a_reason(daemon: DaemonProcess, stranger: Visitor, role: str) -> None:
    key = str(daemon.admin.post("/keys", {"name": f"friend-{role}", "role": role})["text"])
    page = stranger.log_in_by_key(key)
    assert page.status == 403
    assert "for the owner" in page.text
    assert stranger.get("/ui/sessions").status == 303


def test_key_may_not_do_what_the_api_does_not_allow(daemon: DaemonProcess, stranger: Visitor) -> None:
    stranger.log_in_by_key(daemon.key)
    page = stranger.get("/ui/settings")
    assert 'action="/ui/settings"><input type="hidden"' not in page.text
    for path, fields in (
        ("/ui/settings", {"name": "log.level", "value": "DEBUG"}),
        ("/ui/dead-letters/x/retry", {}),
        ("/ui/sessions/x/suspend", {}),
    ):
        refused = stranger.post(path, **fields)
        assert refused.status == 403
        assert "hermes dashboard" in refused.text


def test_logout_ends_the_login(daemon: DaemonProcess, visitor: Visitor) -> None:
    before = dict(visitor.cookies)
    assert visitor.post("/ui/logout").status == 303
    visitor.cookies = before
    assert visitor.get("/ui/sessions").status == 303


def test_cookie_is_out_of_reach_of_scripts_and_other_sites(daemon: DaemonProcess, stranger: Visitor) -> None:
    stranger.get("/")
    cookie = stranger.log_in_by_key(daemon.key).headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie


def test_cookie_does_not_open_the_api(visitor: Visitor) -> None:
    assert visitor.get("/v1/models", accept="application/json").status == 401


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example", "/\\evil.example", "/v1/models"])
def test_login_leads_to_own_pages_only(daemon: DaemonProcess, stranger: Visitor, place: str) -> None:
    stranger.get("/")
    assert stranger.post("/ui/login", key=daemon.key, next=place).headers["Location"] == "/"


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_form_without_its_token_changes_nothing(visitor: Visitor, token: str) -> None:
    page = visitor.post("/ui/sessions", token=token)
    assert page.status == 403
    assert "form is out of date" in page.text
    assert visitor.get("/ui/sessions").text.count("/ui/sessions/2") == 0


def test_token_of_another_login_is_refused(daemon: DaemonProcess, visitor: Visitor) -> None:
    other = Visitor(daemon.address)
    other.log_in(daemon)
    other.get("/")
    assert visitor.post("/ui/sessions", token=other.form_token).status == 403


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["origin", "opaque", "site"],
)
def test_form_of_another_site_is_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    kind = {"Accept": HTML, "Content-Type": "application/x-www-form-urlencoded"}
    body = f"form_token={visitor.form_token}".encode()
    assert visitor.send("POST", "/ui/sessions", {**kind, **headers}, body).status == 403
    assert visitor.send("POST", "/ui/logout", {**kind, "Origin": visitor.address}, body).status == 303


def test_login_form_needs_its_token(daemon: DaemonProcess, stranger: Visitor) -> None:
    assert stranger.post("/ui/login", token="", key=daemon.key).status == 403
    stranger.get("/")
    assert stranger.post("/ui/login", token="0" * 64, key=daemon.key).status == 403


def test_upload_needs_the_token_in_its_header(visitor: Visitor) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "*/*"}
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'
    assert visitor.send("POST", "/ui/files", headers, body).status == 403
    sent = visitor.send("POST", "/ui/files", {**headers, "X-Hermes-Form-Token": visitor.form_token}, body)
    assert sent.status == 200
    assert '"filename":"a.txt"' in sent.text


# ---------------------------------------------------------------- headers


@pytest.mark.parametrize("path", ["/", "/ui/sessions", "/ui/settings", "/ui/assets/page.js", "/ui/nothing"])
def test_policy_allows_no_inline_code_and_no_other_host(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Server"] == "hermes"


def test_pages_are_not_kept_by_caches(visitor: Visitor) -> None:
    assert visitor.get("/ui/sessions").headers["Cache-Control"] == "no-store"


def test_asset_is_sent_again_only_when_it_changed(visitor: Visitor) -> None:
    tag = visitor.get("/ui/assets/page.js").headers["ETag"]
    assert visitor.get("/ui/assets/page.js", **{"If-None-Match": tag}).status == 304
    assert visitor.get("/ui/assets/..%2Fdashboard.py").status == 404


@pytest.mark.parametrize("path", ["/", "/ui/login", "/ui/sessions"])
def test_foreign_host_name_is_refused(visitor: Visitor, path: str) -> None:
    page = visitor.get(path, Host="evil.example")
    assert page.status == 421
    assert "<h1>" in page.text


def test_without_the_dashboard_the_address_shows_a_plain_page() -> None:
    with DaemonProcess(environ={"HERMES_DASHBOARD_ENABLED": "false"}) as daemon:
        stranger = Visitor(daemon.address)
        assert "<h1>Hermes" in stranger.get("/").text
        assert stranger.get("/ui/login").status == 401  # an unknown route needs the key
        assert daemon.hermes("dashboard").returncode != 0


def test_second_login_of_a_browser_ends_the_first(daemon: DaemonProcess, visitor: Visitor) -> None:
    first = Visitor(daemon.address)
    first.cookies = dict(visitor.cookies)
    assert first.get("/ui/sessions").status == 200
    visitor.log_in(daemon)
    assert visitor.get("/ui/sessions").status == 200
    assert first.get("/ui/sessions").status == 303


@pytest.mark.parametrize("method", ["TRACE", "PUT", "DELETE"])
def test_method_that_no_page_has_is_not_allowed(daemon: DaemonProcess, method: str) -> None:
    assert Visitor(daemon.address).send(method, "/", {"Accept": HTML}).status == 405
