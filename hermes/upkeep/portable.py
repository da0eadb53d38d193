"""Export format: sessions as lines of JSON, for archives, other tools and imports.

The first line is a header. Each record follows on a line of its own, with its session, sequence number and checksum.
The format is lossless, field by field. The checksum covers the values, not the text, so a tool may reformat a line.
Errors name the damaged line. Unknown records and fields are refused.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, TypeVar, get_args, get_origin, get_type_hints
from zlib import crc32

from hermes import __version__
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SESSION_ID_PATTERN, Seq, SessionId
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.values import dataclass

FORMAT: Final = 1
MAX_BYTES: Final = 1 << 30
MAX_LINE_BYTES: Final = 64 << 20
MAX_SESSIONS: Final = 10_000
_MARK: Final = "hermes_export"
_KINDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (*get_args(Record), BadRecord)}
T = TypeVar("T")

type_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)
Exported = dict[SessionId, list[LogEntry]]  # the log of each session, the oldest session first


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    session: SessionId
    entry: LogEntry


# ---------------------------------------------------------------- export


def to_lines(sessions: Exported, *, now: float) -> Iterator[str]:
    yield _line(
        {
            _MARK: FORMAT,
            "version": __version__,
            "exported_at": now,
            "sessions": list(sessions),
            "records": sum(map(len, sessions.values())),
        }
    )
    for session, entries in sessions.items():
        for entry in entries:
            kind = type(entry.record).__name__
            yield _line({"session": session, "seq": entry.seq, "kind": kind, "record": _plain(entry.record)})


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps({**values, "crc": _checksum(values)}, ensure_ascii=False)


def _checksum(values: Mapping[str, Any]) -> str:
    return f"{crc32(json.dumps(values, sort_keys=True, separators=(',', ':')).encode()):08x}"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


# ---------------------------------------------------------------- import


def from_lines(lines: Iterable[bytes]) -> Exported:
    """Parse an export. Raises BadInputError, which names the first bad line."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise BadInputError("the export is empty")
    names, count = _header(first[1])
    sessions: Exported = {name: [] for name in names}
    for number, raw in numbered:
        try:
            line = _record_line(raw)
            _add(sessions, line)
        except ValueError as error:
            raise BadInputError(f"line {number} is damaged ({error}); nothing was imported") from error
    found = sum(map(len, sessions.values()))
    if found != count or not all(sessions.values()):
        raise BadInputError(f"{count} records were exported and {found} are here; nothing was imported")
    return sessions


def _header(raw: bytes) -> tuple[list[SessionId], int]:
    try:
        values = _checked(raw)
        number, names, count = values[_MARK], values["sessions"], values["records"]
    except (ValueError, KeyError) as error:
        raise BadInputError(f"this is not an export of Hermes, or its first line is damaged ({error})") from error
    if number != FORMAT:
        known = f"this Hermes ({__version__}) supports {FORMAT}"
        raise BadInputError(
            f"the export has format {number}, but {known}: it is from version {values.get('version')}"
        )
    if isinstance(names, list) and len(names) > MAX_SESSIONS:
        raise BadInputError(f"the export names more than {MAX_SESSIONS:,} sessions; nothing was imported")
    try:
        return [_session_id(name) for name in _of(list, "sessions", names)], count
    except ValueError as error:
        raise BadInputError(f"line 1 is damaged ({error}); nothing was imported") from error


def _checked(raw: bytes) -> dict[str, Any]:
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - of the line, like everything else that is wrong
    if values.pop("crc", None) != _checksum(values):
        raise ValueError("its checksum does not match")
    return values


def _record_line(raw: bytes) -> _Line:
    values = _checked(raw)
    try:
        session, seq, kind, record = (values[name] for name in ("session", "seq", "kind", "record"))
    except KeyError as error:
        raise ValueError(f"it has no {error.args[0]!r}") from None
    if _of(str, "kind", kind) not in _KINDS:
        raise ValueError(f"unknown kind of record: {kind}")
    entry = LogEntry(seq=Seq(_of(int, "seq", seq)), record=_build(_KINDS[kind], record))
    return _Line(session=_session_id(session), entry=entry)


def _add(sessions: Exported, line: _Line) -> None:
    entries = sessions.get(line.session)
    if entries is None:
        raise ValueError("its session is not named in the first line")
    if line.entry.seq != len(entries):
        raise ValueError(f"expected record {len(entries)} of {line.session}, found {line.entry.seq}")
    entries.append(line.entry)


def _build(kind: type[T], values: Any) -> T:
    """Return an instance of a dataclass; missing fields get their defaults."""
    if not isinstance(values, dict):
        raise ValueError(f"not a {kind.__name__}")  # noqa: TRY004
    hints = type_hints(kind)
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if strange := sorted(values.keys() - known):
        raise ValueError(f"a {kind.__name__} has no field {strange[0]!r} here")
    try:
        return kind(**{name: _value(hints[name], name, value) for name, value in values.items()})
    except TypeError:
        raise ValueError(f"a {kind.__name__} without all of its fields") from None


def _value(hint: Any, name: str, value: Any) -> Any:
    if type(None) in get_args(hint):
        [inner] = [each for each in get_args(hint) if each is not type(None)]
        return None if value is None else _value(inner, name, value)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], name, each) for each in _of(list, name, value))
    if hint is SessionId:
        return _session_id(value)
    plain = getattr(hint, "__supertype__", hint)  # of a NewType
    if is_dataclass(plain):
        return _build(plain, value)  # type: ignore[arg-type]
    if plain is bytes:
        return _message(name, _bytes(name, value)) if hint is EncodedMessage else _bytes(name, value)
    if plain is float:
        return value if type(value) is int else _of(float, name, value)
    if issubclass(plain, StrEnum):
        return plain(_of(str, name, value))
    return _of(plain, name, value)


def _of(kind: type[T], name: str, value: Any) -> T:
    if type(value) is not kind:
        raise ValueError(f"{name!r} is not a {kind.__name__}")
    if isinstance(value, str):
        value.encode()  # an unpaired surrogate cannot be stored
    return value


def _session_id(value: Any) -> SessionId:
    """Check a session id by the rules of the API: file names depend on it."""
    if not re.fullmatch(SESSION_ID_PATTERN, _of(str, "session", value)):
        raise ValueError(f"{value[:40]!r} is not a valid session id")
    return SessionId(value)


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    try:
        return base64.b64decode(_of(dict, name, value)["base64"], validate=True)
    except (KeyError, TypeError, binascii.Error):
        raise ValueError(f"{name!r} is neither text nor base64") from None


def _message(name: str, raw: bytes) -> EncodedMessage:
    if not isinstance(json.loads(raw), dict):
        raise ValueError(f"{name!r} is not a message")  # noqa: TRY004
    return EncodedMessage(raw)


def read_export(file: Path, progress: Callable[[int, int], None] = lambda _done, _total: None) -> Exported:
    """Read an export. `progress` takes the bytes that were read, and those in all."""
    try:
        with file.open("rb") as source:
            size = file.stat().st_size
            return from_lines(_bounded(source, lambda done: progress(done, size)))
    except OSError as error:
        raise BadInputError(f"{file} cannot be read: {error.strerror}") from error


def _bounded(source: IO[bytes], progress: Callable[[int], None]) -> Iterator[bytes]:
    total = 0
    while line := source.readline(MAX_LINE_BYTES + 1):
        total += len(line)
        if len(line) > MAX_LINE_BYTES or total > MAX_BYTES:
            most = f"{MAX_LINE_BYTES >> 20} MB in a line, {MAX_BYTES >> 20} MB in all"
            raise BadInputError(f"the export is too large ({most}); nothing was imported")
        yield line
        progress(total)


def starts_with(entries: Sequence[LogEntry], beginning: Sequence[LogEntry]) -> bool:
    return list(entries[: len(beginning)]) == list(beginning)
