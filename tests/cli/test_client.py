"""The client of the admin socket: requests, streams, and every way in which a daemon can be missing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.client import AdminClient, AdminError, SilentError, session_path
from hermes.config.home import Home
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.text.server_event import RawEvent
from tests.cli.fake_admin import Answer, FakeAdmin, Stream, sse
from tests.support.waiting import eventually


@pytest.fixture
def client(home: Home) -> AdminClient:
    return AdminClient(home.socket)


def test_requests_carry_json_both_ways(admin: FakeAdmin, client: AdminClient) -> None:
    admin.routes |= {
        "GET /sessions": Answer(body={"sessions": []}),
        "POST /stop": Answer(status=202, body={"stopping": True}),
        "DELETE /sessions/x": Answer(status=204, body=b""),
    }
    assert client.get("/sessions", limit=3, after=None) == {"sessions": []}
    assert client.post("/stop", {"reason": "é\ud800"}) == {"stopping": True}
    assert client.delete("/sessions/x") == {}
    assert [asked.path for asked in admin.asked] == ["/sessions?limit=3", "/stop", "/sessions/x"]
    assert admin.asked[1].body == {"reason": "é\ud800"}


def test_a_refusal_is_the_daemons_own_words(admin: FakeAdmin, client: AdminClient) -> None:
    error = {
        "error": {"message": "There is no session x.", "type": "invalid_request_error", "code": "session_not_found"}
    }
    admin.routes["GET /sessions/x"] = Answer(status=404, body=error)
    with pytest.raises(AdminError, match=r"^There is no session x\.$") as caught:
        client.get("/sessions/x")
    assert caught.value.status == 404


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 5}', b"\xff"])
def test_a_refusal_without_words_names_the_status(admin: FakeAdmin, client: AdminClient, body: bytes) -> None:
    admin.routes["GET /x"] = Answer(status=502, body=body)
    with pytest.raises(AdminError, match="the daemon answered 502 Bad Gateway"):
        client.get("/x")


def test_an_answer_that_is_not_json_is_a_clear_error(admin: FakeAdmin, client: AdminClient) -> None:
    admin.routes["GET /x"] = Answer(body=b"<html>")
    with pytest.raises(HermesError, match="is not JSON"):
        client.get("/x")


def test_no_socket_means_that_no_daemon_runs(client: AdminClient, home: Home) -> None:
    expected = f"no daemon runs on {home.data_dir} (start one with `hermes daemon`)"
    with pytest.raises(NotRunningError) as caught:
        client.get("/info")
    assert str(caught.value) == expected
    with pytest.raises(NotRunningError):
        next(client.stream("/events"))


def test_stale_socket_means_no_daemon(client: AdminClient, home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(home.socket))
        with pytest.raises(NotRunningError, match="no daemon runs on"):
            client.get("/info")


def test_unusable_socket_is_explained(tmp_path: Path) -> None:
    with pytest.raises(HermesError, match="too long"):
        AdminClient(tmp_path / ("x" * 200)).get("/info")


def test_lost_connection_is_reported(client: AdminClient, home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
        server.listen()

        def hang_up() -> None:
            for _ in range(2):
                peer, _ = server.accept()
                peer.recv(100)
                peer.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(NotRunningError, match="closed the connection in the middle"):
            client.get("/info")
        with pytest.raises(NotRunningError, match="closed the connection in the middle"):
            next(client.stream("/events"))
        thread.join(30)


def test_a_daemon_that_does_not_answer_is_given_up_on(client: AdminClient, home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
        server.listen()
        with pytest.raises(HermesError, match=r"did not answer within 0\.05 s"):
            client.get("/info", timeout_s=0.05)


def test_a_daemon_that_takes_no_calls_is_silent_not_gone(client: AdminClient, home: Home) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(home.socket))
        server.listen(0)
        with suppress(BlockingIOError):
            while True:
                caller = stack.enter_context(socket.socket(socket.AF_UNIX))
                caller.setblocking(False)
                caller.connect(str(home.socket))
        with pytest.raises(SilentError, match="does not accept connections"):
            client.get("/info", timeout_s=0.05)


def test_answer_that_is_not_an_object_is_refused(admin: FakeAdmin, client: AdminClient) -> None:
    admin.routes["GET /info"] = Answer(body=[1])
    with pytest.raises(HermesError, match="not a JSON object"):
        client.get("/info")


def told(events: Iterator[RawEvent]) -> list[tuple[str, str]]:
    return [(event.name, event.data) for event in events]


def test_a_stream_gives_its_events(admin: FakeAdmin, client: AdminClient) -> None:
    parts = [
        b"\xef\xbb\xbf",
        b": ping\n\n",
        b"event: a\r\ndata: 1\r\n\r\n",
        b"data:two\ndata: lines\n\n",
        b"event: empty\n\n",
    ]
    admin.routes["GET /events"] = Stream(
        parts=[*parts[1:], "data: é".encode()[:-1], b"\xa9\n\n", b"data: unfinished"]
    )
    assert told(client.stream("/events")) == [("a", "1"), ("message", "two\nlines"), ("message", "é")]


def test_cut_stream_is_reported(admin: FakeAdmin, client: AdminClient) -> None:
    admin.routes["GET /events"] = Stream(parts=[sse("1")], cut=True)
    events = client.stream("/events")
    assert next(events).data == "1"
    with pytest.raises(NotRunningError, match="closed the connection in the middle"):
        next(events)


def test_a_refused_stream_is_the_daemons_own_words(admin: FakeAdmin, client: AdminClient) -> None:
    with pytest.raises(AdminError, match="There is nothing at /nothing"):
        next(client.stream("/nothing"))


def test_feed_yields_none_between_events(admin: FakeAdmin, client: AdminClient) -> None:
    looked = threading.Event()

    def parts() -> Iterator[bytes]:
        yield sse("1")
        assert looked.wait(30)
        yield sse("2")

    admin.routes["GET /events"] = Stream(parts=parts())
    seen = []
    with client.follow("/events") as feed:
        for arrived in feed.poll(0.01):
            if arrived is None:
                looked.set()
            else:
                seen.append(arrived.data)
    assert seen == ["1", "2"]


def test_feed_can_be_closed_early(admin: FakeAdmin, client: AdminClient) -> None:
    def endless() -> Iterator[bytes]:
        while not admin.left.wait(0.01):
            yield b": ping\n\n"

    admin.routes["GET /events"] = Stream(parts=endless())
    with client.follow("/events") as feed:
        assert next(feed.poll(0.01)) is None
        eventually(lambda: admin.asked)
    assert admin.left.wait(30)
    assert not [thread for thread in threading.enumerate() if thread.name == "hermes-feed"]


@pytest.mark.parametrize(("path", "cut"), [("/nothing", False), ("/events", True)])
def test_feed_raises_errors_of_the_stream(admin: FakeAdmin, client: AdminClient, path: str, cut: bool) -> None:
    admin.routes["GET /events"] = Stream(parts=[], cut=cut)
    expected = NotRunningError if cut else AdminError
    with client.follow(path) as feed, pytest.raises(expected):
        list(feed.poll(1))


@given(st.text(min_size=1))
def test_any_text_is_safe_as_a_session_in_a_path(text: str) -> None:
    if text.isprintable():
        path = session_path(text)
        assert path.isascii()
        assert path.count("/") == 2
        assert not set(path) & set("?# \n")
