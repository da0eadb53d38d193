"""Read access to sessions: through the daemon if one runs, else from the store under the lock of the home.

Both return the same values. The store is opened read-only. If a daemon holds it and does not answer (it hangs, starts
or stops), the store is read as well, and a line on stderr reports that.
"""

from __future__ import annotations

import re
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import quote

from hermes.cli.answered import only_match
from hermes.cli.client import AdminClient, AdminError, SilentError, session_path
from hermes.cli.output import one_line, print_text
from hermes.domain.errors import AlreadyRunningError, HermesError, NotRunningError, UnknownSessionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes.config.home import Home
    from hermes.domain.read.reader import Reader
    from hermes.domain.session.state import Session

LAST = "-"  # stands for the last active session
_LIKE_AN_ID = re.compile(r"-|[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_WHOLE_ID = re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}")
_PAGE = 100
_MAX_SEARCHED = 1000  # sessions, when only the first characters of an id are given
_MAX_NAMED = 5  # sessions in an error
_BUSY_S = 1.0  # longer than a daemon's start, and than most stops
_POLL_S = 0.05


class AmbiguousTitleError(HermesError):
    """Several sessions have a title that begins with the given text."""

    def __init__(self, given: str, sessions: Sequence[Mapping[str, Any]]) -> None:
        named = ", ".join(f"{each['id']} ({one_line(str(each['title']))})" for each in sessions[:_MAX_NAMED])
        more = ", …" if len(sessions) > _MAX_NAMED else ""
        super().__init__(f"{one_line(given)} is the beginning of several titles: {named}{more}; type an id")


class Records(Protocol):
    def page(self, limit: int, after: str | None) -> list[dict[str, Any]]: ...

    def waiting(self) -> list[str]:
        """Return the ids of the sessions that wait for a person's answer."""
        ...

    def view(self, session: str, *, tail: int, exact: bool) -> dict[str, Any]: ...

    def beginning(self, session: str) -> str:
        """Return the first message of a person."""
        ...

    def dead_letters(self) -> dict[str, Any]: ...

    def outbox(self) -> dict[str, Any]:
        """Return the messages that are not delivered yet."""
        ...

    def trace(self, name: str, limit: int) -> dict[str, Any]:
        """Return the trace of a message, or of the last messages of a session."""
        ...


class DaemonRecords:
    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def page(self, limit: int, after: str | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get("/api/sessions", limit=limit, after=after, children=1)[
            "sessions"
        ]
        return found

    def waiting(self) -> list[str]:
        actors = self._client.get("/actors")["actors"]  # a waiting session is always in memory
        return [str(each["name"]) for each in actors if (each["kind"], each["state"]) == ("session", "waiting")]

    def view(self, session: str, *, tail: int, exact: bool) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(session_path(session), tail=tail, exact=1 if exact else None)
        return found

    def beginning(self, session: str) -> str:
        path = f"/api{session_path(session)}/messages"
        try:
            return _first_words(self._client.get(path, after=-1, limit=1, exact=1)["messages"])
        except AdminError:  # deleted since it was listed, or the daemon is another version
            return ""

    def dead_letters(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get("/dead-letters")
        return found

    def outbox(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get("/outbox")
        return found

    def trace(self, name: str, limit: int) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"/trace/{quote(name, safe='')}", limit=limit)
        return found


class StoredRecords:
    """Records read from the store itself. `alive`: a daemon holds it but does not answer."""

    def __init__(self, reader: Reader, *, alive: bool = False) -> None:
        self._reader = reader
        self._alive = alive

    def page(self, limit: int, after: str | None) -> list[dict[str, Any]]:
        from hermes.adapters.http import presentation
        from hermes.domain.ids import SessionId

        start = None if after is None else SessionId(after)
        return [presentation.session(self._as_left(head)) for head in self._reader.recent(limit, start)]

    def waiting(self) -> list[str]:
        from hermes.domain.session.state import Phase

        return [
            name
            for name in self._reader.pending()
            if (head := self._reader.head(name)) and head.phase is Phase.WAITING
        ]

    def view(self, session: str, *, tail: int, exact: bool) -> dict[str, Any]:
        from hermes.adapters.http import presentation
        from hermes.domain.read.explain import explain
        from hermes.domain.read.lineage import find_lineage
        from hermes.domain.read.transcript_page import read_page
        from hermes.domain.read.views import SessionView

        stored = self._head(session, exact=exact)
        head = self._as_left(stored)
        why = explain(stored, time.time(), alive=self._alive)
        view = SessionView(session=head, why=why, lineage=find_lineage(self._reader, head), live=False, mailbox=0)
        messages = read_page(self._reader, head, None, tail) if tail else []
        return {**presentation.view(view), "transcript": presentation.transcript(messages)}

    def beginning(self, session: str) -> str:
        from hermes.adapters.http import presentation
        from hermes.domain.ids import Seq
        from hermes.domain.read.transcript_page import read_page

        messages = read_page(self._reader, self._head(session, exact=True), Seq(-1), 1)
        return _first_words(presentation.transcript(messages))

    def dead_letters(self) -> dict[str, Any]:
        from hermes.adapters.http import presentation

        return {"dead_letters": [presentation.dead_letter(letter) for letter in self._reader.dead_letters()]}

    def outbox(self) -> dict[str, Any]:
        from hermes.adapters.http import presentation

        return {"outbox": [presentation.outbox_message(each) for each in self._reader.outbox()]}

    def trace(self, name: str, limit: int) -> dict[str, Any]:
        from hermes.adapters.http import presentation
        from hermes.domain.read.trace_search import find_trace

        lines = find_trace(self._reader, name, limit=limit, now=time.time(), alive=self._alive)
        return {"messages": [presentation.trace_line(line) for line in lines]}

    def _head(self, session: str, *, exact: bool) -> Session:
        from hermes.domain.ids import SessionId
        from hermes.domain.read.lineage import Address, find_route

        head = find_route(self._reader, Address(session=SessionId(session), exact=exact)).head
        if head is None:
            raise UnknownSessionError(f"there is no session {session}")
        return head

    def _as_left(self, session: Session) -> Session:
        """Return the session as interrupted if its turn was running when the daemon ended."""
        from hermes.domain.read.explain import without_daemon
        from hermes.domain.session.state import Phase
        from hermes.domain.values import replace

        if self._alive or session.phase is not Phase.RUNNING:
            return session
        return replace(session, phase=Phase.RESUME_PENDING, reason=without_daemon(session))


@contextmanager
def open_records(environ: Mapping[str, str], *, quietly: bool = False) -> Iterator[Records]:
    from hermes.config.home import Home

    with ExitStack() as stack:
        yield _find_records(stack, Home.from_environ(environ), quietly=quietly)


def _find_records(stack: ExitStack, home: Home, *, quietly: bool) -> Records:
    client = AdminClient(home.socket)
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            client.info()
        except SilentError as error:
            return _in_use(stack, home, error, quietly=quietly)
        except NotRunningError:
            pass
        else:
            return DaemonRecords(client)
        try:
            return StoredRecords(stack.enter_context(stored(home)))
        except AlreadyRunningError as error:  # a starting or stopping daemon holds the lock, and has no socket
            if time.monotonic() > deadline:
                pid = f" (pid {error.pid})" if error.pid else ""
                busy = AlreadyRunningError(f"a daemon{pid} is starting or stopping on {home.data_dir}")
                return _in_use(stack, home, busy, quietly=quietly)
        time.sleep(_POLL_S)


def _in_use(stack: ExitStack, home: Home, error: HermesError, *, quietly: bool) -> Records:
    """Return the records of a home whose daemon does not answer. Raises `error` if there is no store."""
    data = home.store_dir / "data.mdb"
    if not data.exists() or not data.stat().st_size:  # not created yet
        raise error
    from hermes.storage.lmdb_reader import open_reader

    reader = stack.enter_context(open_reader(home.store_dir))
    if reader is None:
        raise error
    if not quietly:
        print_text(f"hermes: {error}. Reading the store instead:", file=sys.stderr)
    return StoredRecords(cast("Reader", reader), alive=True)


@contextmanager
def stored(home: Home) -> Iterator[Reader]:
    """Open the store of a home without a daemon, under its lock."""
    from hermes.config.home import lock

    absent = f"no daemon runs on {home.data_dir} (start one with `hermes daemon`)"
    if not home.store_dir.is_dir() or not any(home.store_dir.iterdir()):
        raise NotRunningError(f"{absent}; nothing is stored there yet") from None
    from hermes.storage.lmdb_reader import open_reader

    with lock(home), open_reader(home.store_dir) as reader:
        if reader is None:
            raise NotRunningError(f"{absent}; nothing is stored there yet")
        yield cast("Reader", reader)  # a Reader without `stats`


def recent(records: Records, limit: int, *, children: bool = False) -> Iterator[dict[str, Any]]:
    """Yield sessions, the last active first. `children`: also those that other sessions started."""
    after, left = None, limit
    while left and (page := records.page(min(_PAGE, left), after)):
        shown = [session for session in page if children or not session.get("child")]
        yield from shown
        after, left = page[-1]["id"], left - len(shown)


def resolve_named(records: Records, given: str) -> str:
    """Return the session id for `given`: as `resolve_id`, else by its title or the beginning of it, in any case."""
    if _LIKE_AN_ID.fullmatch(given):
        found = resolve_id(records, given)
        if found != given or _WHOLE_ID.fullmatch(given) or _is_known(records, given):
            return found
    wanted = _folded(given)
    titled = [each for each in recent(records, _MAX_SEARCHED) if _folded(each.get("title")).startswith(wanted)]
    found_by_title = [each for each in titled if _folded(each.get("title")) == wanted] or titled
    if not found_by_title:
        raise UnknownSessionError(f"there is no session with the id or title {one_line(given)}")
    if len(found_by_title) > 1:
        raise AmbiguousTitleError(given, found_by_title)
    return str(found_by_title[0]["id"])


def _folded(title: object) -> str:
    return " ".join(str(title or "").casefold().split())


def resolve_id(records: Records, given: str) -> str:
    """Return the session id for `given`: an id, or the first characters of an id or of its last part."""
    if given == LAST:
        return _last(records)
    if _WHOLE_ID.fullmatch(given) or _is_known(records, given):
        return given
    found = [
        session["id"] for session in recent(records, _MAX_SEARCHED, children=True) if _begins(session["id"], given)
    ]
    return only_match(found, given) or given  # the daemon refuses an unknown id


def _last(records: Records) -> str:
    for session in recent(records, 1):
        return str(session["id"])
    raise HermesError("there is no session yet; `hermes chat` starts one")


def _is_known(records: Records, given: str) -> bool:
    try:
        records.view(given, tail=0, exact=True)
    except UnknownSessionError:
        return False
    except AdminError as error:
        if error.status == 404:
            return False
        raise
    return True


def _begins(session: str, given: str) -> bool:
    return session.startswith(given) or session.rpartition("_")[2].startswith(given)


def resolve_resumed(client: AdminClient, given: str) -> str:
    """Return the session to continue, named by id or title. Raises AmbiguousTitleError."""
    return resolve_named(DaemonRecords(client), given)


def resolve_session(client: AdminClient, given: str) -> str:
    """Return the session id for `given`, as known to the daemon."""
    return resolve_id(DaemonRecords(client), given)


def _first_words(messages: list[dict[str, Any]]) -> str:
    from hermes.services.commands.wording import own_words

    said = (each for each in messages if each["role"] == "user" and not each.get("note"))
    return next((own_words(str(each["content"])) for each in said if each["content"]), "")
