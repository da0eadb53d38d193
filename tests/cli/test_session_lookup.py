"""Lookup of sessions by id or prefix, with and without a daemon."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

import pytest

from hermes.cli import session_lookup
from hermes.cli.client import AdminClient
from hermes.cli.main import main
from hermes.cli.session_lookup import AmbiguousTitleError, resolve_resumed, resolve_session
from hermes.config.home import Home, lock, prepare
from hermes.domain.errors import HermesError, UnknownSessionError
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.row_keys import LATER
from tests.cli.fake_admin import Answer, Asked, FakeAdmin
from tests.cli.test_inspect import VIEW, session
from tests.storage.samples import append, message
from tests.storage.test_verify import drop
from tests.support.daemon_process import DaemonProcess

IDS = ["20260102_030405_1a2b3c4d", "20260102_030406_1a99ffff", "20260101_000000_abcdef01", "build"]


@pytest.fixture
def client(home: Home, admin: FakeAdmin) -> AdminClient:
    stored = [session(name) for name in IDS]

    def page(asked: Asked) -> Answer:
        return Answer(
            body={"sessions": [] if "after" in asked.path else stored[: 1 if "limit=1&" in asked.path else 4]}
        )

    admin.routes["GET /api/sessions"] = page
    admin.routes["GET /sessions/build"] = Answer(body=VIEW)
    return AdminClient(home.socket)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("-", IDS[0]),
        ("20260101", IDS[2]),
        ("1a2b", IDS[0]),
        ("abcdef01", IDS[2]),
        ("bu", "build"),
        ("build", "build"),  # also if another one began like that
        ("20250101_000000_00000000", "20250101_000000_00000000"),  # whole: not looked for
        ("nobody", "nobody"),  # for the daemon to refuse
    ],
)
def test_a_beginning_that_only_one_has_is_enough(client: AdminClient, given: str, found: str) -> None:
    assert resolve_session(client, given) == found


def test_a_beginning_that_several_have_is_not(client: AdminClient) -> None:
    with pytest.raises(HermesError, match=f"1a is ambiguous: it could be {IDS[0]}, {IDS[1]}; type more characters"):
        resolve_session(client, "1a")


def test_a_whole_id_costs_no_question(client: AdminClient, admin: FakeAdmin) -> None:
    resolve_session(client, IDS[0])
    assert admin.asked == []


def test_there_is_no_last_session_before_the_first(home: Home, admin: FakeAdmin) -> None:
    with pytest.raises(HermesError, match="there is no session yet"):
        resolve_session(AdminClient(home.socket), "-")


def test_that_very_session_can_be_asked_for(admin: FakeAdmin) -> None:
    admin.routes["GET /sessions/s0"] = Answer(body=VIEW)
    assert main(["show", "s0", "--exact", "--json"]) == 0
    assert admin.asked[-1].path == "/sessions/s0?tail=10&exact=1"
    assert main(["why", "s0", "--exact"]) == 0
    assert admin.asked[-1].path == "/sessions/s0?tail=0&exact=1"


def test_a_store_that_is_just_being_made_has_nothing_to_show(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    (home.store_dir / "data.mdb").write_bytes(b"")
    with lock(home):  # a daemon that starts or stops, and has no socket
        assert main(["sessions"]) == 75
    assert "is starting or stopping on" in capsys.readouterr().err


def test_lookup_waits_for_a_starting_daemon_or_reads_its_store(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with DaemonProcess() as daemon:
        name = daemon.ask("My name is Ada.").session
        daemon.kill()
        home = Home.from_environ({"HERMES_HOME": str(daemon.home)})
        monkeypatch.setenv("HERMES_HOME", str(daemon.home))
        with lock(home):  # as a daemon has it before its socket is there, and after it has closed it
            for argv in (["sessions"], ["why", name], ["show", name], ["trace", name]):
                assert main(argv) == 0
                told = capsys.readouterr()
                assert name in told.out
                assert "is starting or stopping on" in told.err
        monkeypatch.setattr(session_lookup, "_BUSY_S", 30.0)
        held = lock(home)
        Timer(0.3, held.close).start()  # it has stopped meanwhile
        assert main(["sessions"]) == 0
        assert capsys.readouterr().err == ""


def test_lookup_reads_the_store_of_a_daemon_that_does_not_answer() -> None:
    with DaemonProcess() as daemon:
        name = daemon.ask("My name is Ada.").session
        run = daemon.request("POST", "/v1/runs", {"input": "!hang", "session_id": name}).json()["run_id"]
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        commands = [("sessions",), ("show", name), ("why", name), ("trace", run), ("ps",), ("__complete", "sessions")]
        with ThreadPoolExecutor(len(commands)) as pool:
            listed, shown, why, trace, ps, offered = pool.map(lambda command: daemon.hermes(*command), commands)
    for done, said in ((listed, name), (shown, "Ada"), (why, f"{name} has been running since"), (trace, "running")):
        assert done.returncode == 0
        assert said in done.stdout
        assert "did not answer within 5 s; if it hangs, `kill -9 " in done.stderr
        assert done.stderr.endswith("Reading the store instead:\n")
    assert (ps.returncode, ps.stdout) == (1, "")
    assert "did not answer within 5 s" in ps.stderr
    assert (offered.stdout, offered.stderr) == (f"{name}\n", "")


def test_store_of_an_older_version_can_be_read(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    engine = LmdbEngine.open(home.store_dir)
    assert engine.commit([(append("build", 0, message("hello")),)]) == [None]
    engine.close()
    drop(home.store_dir, *LATER)
    assert main(["sessions"]) == 0
    assert main(["show", "build"]) == 0
    assert main(["why", "build"]) == 0
    assert "build" in capsys.readouterr().out


TITLES = {"s1": "Trip to Lima", "s2": "Trip to Cusco", "s3": "Trip", "s4": ""}


@pytest.fixture
def titled(home: Home, admin: FakeAdmin) -> AdminClient:
    stored = [{**session(name), "title": title} for name, title in TITLES.items()]
    admin.routes["GET /api/sessions"] = lambda asked: Answer(
        body={"sessions": [] if "after" in asked.path else stored}
    )
    admin.routes["GET /sessions/s2"] = Answer(body=VIEW)
    return AdminClient(home.socket)


@pytest.mark.parametrize(
    ("given", "found"), [("trip to  lima", "s1"), ("TRIP TO C", "s2"), ("trip", "s3"), ("s2", "s2")]
)
def test_session_is_resumed_by_title(titled: AdminClient, given: str, found: str) -> None:
    assert resolve_resumed(titled, given) == found


def test_beginning_of_several_titles_names_no_session(titled: AdminClient) -> None:
    with pytest.raises(AmbiguousTitleError, match=r"several titles: s1 \(Trip to Lima\), s2 \(Trip to Cusco\)"):
        resolve_resumed(titled, "trip to")
    with pytest.raises(UnknownSessionError):
        resolve_resumed(titled, "nothing of the kind")
