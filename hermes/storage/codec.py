"""Encoding of values: a format number and a checksum, followed by msgpack.

A dataclass is stored as the list of its field values, so the order of fields is part of the format. New fields go
last and have defaults; a test checks the order. Missing fields get their defaults when read. Trailing fields with
default values are omitted from a long list. Unknown extra fields or an unknown kind of record raise UnreadableError.
The checksum covers the key too, so a valid value under the wrong key counts as damaged.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints
from zlib import crc32

import msgpack

from hermes.domain.change import Change
from hermes.domain.child.child import Assignment, ChildLink
from hermes.domain.errors import StorageError
from hermes.domain.goal.goal import Goal
from hermes.domain.ids import Seq, SessionId
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.schedule import Schedule
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import BadRecord, Record
from hermes.domain.session.state import Preferences, Session, Turn
from hermes.domain.source import ChatContext, Handover, Place, Source
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.tool_call import Call, CallJudgement, Gate, InnerOutcome
from hermes.domain.turn.turn_failure import Failure
from hermes.domain.turn.usage import Usage

T = TypeVar("T")
Converter = Callable[[Any], Any]
_hints = cache(get_type_hints)
_BLOCK: Final = 8  # fields that are omitted together: a check for each one costs more than packing it

FORMAT: Final = 1
_FRAME = struct.Struct(">BI")
_RECORDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (*get_args(Record), BadRecord)}
UNSTORABLE: Final = (
    TypeError,
    ValueError,
    OverflowError,
    AttributeError,
    struct.error,
)  # errors that packing can raise
STORED: Final = frozenset(
    {
        *_RECORDS.values(),
        Session,
        Turn,
        Call,
        Gate,
        CallJudgement,
        Goal,
        InnerOutcome,
        Preferences,
        Usage,
        Failure,
        Source,
        ChatContext,
        Assignment,
        ChildLink,
        Seen,
        DeadLetter,
        Tally,
        ProcessRecord,
        Place,
        Handover,
        OutboxMessage,
        DeliveredMessage,
        Change,
        Job,
        JobRun,
        Schedule,
    }
)


class DamagedError(StorageError):
    """The stored bytes differ from the bytes that were written."""


class LostPageError(DamagedError):
    """The page that holds these bytes cannot be read or written."""

    def __init__(self) -> None:
        super().__init__("its page cannot be read")


class UnreadableError(StorageError):
    """The stored bytes are intact, but this version of Hermes cannot decode them."""


def seal(key: bytes, payload: bytes) -> bytes:
    return _FRAME.pack(FORMAT, crc32(payload, crc32(key))) + payload


def unseal(key: bytes, value: bytes) -> bytes:
    if len(value) < _FRAME.size:
        raise DamagedError("truncated")
    number, checksum = _FRAME.unpack_from(value)
    if number != FORMAT:
        raise UnreadableError(f"format {number} is unknown to this version")
    payload = value[_FRAME.size :]
    if checksum != crc32(payload, crc32(key)):
        raise DamagedError("checksum mismatch")
    return payload


def packer() -> Callable[[object], bytes]:
    """Return a pack function for one thread. It raises one of UNSTORABLE for a value that msgpack cannot encode."""
    pack: Callable[[object], bytes] = msgpack.Packer(default=values_of).pack
    return pack


def pack(value: object) -> bytes:
    return packer()(value)


def values_of(value: object) -> tuple[Any, ...]:
    """Return the field values of a dataclass, as they are packed. Faster than the callback from the packer."""
    return _lister(type(value))(value)


def unpack(payload: bytes) -> Any:
    try:
        return msgpack.unpackb(payload, use_list=False)
    except ValueError as error:
        raise UnreadableError("not msgpack") from error


def build(kind: type[T], values: Sequence[Any]) -> T:
    """Return an instance of a dataclass from its field values."""
    names, converters = _shape(kind)
    try:
        if len(values) > len(names):
            raise UnreadableError(f"{kind.__name__} has {len(values)} fields; this version knows {len(names)}")
        known = dict(zip(names, values, strict=False))
        for name, convert in converters:
            if name in known:
                known[name] = convert(known[name])
        return kind(**known)
    except (TypeError, ValueError) as error:
        raise UnreadableError(f"not a {kind.__name__}") from error


def open_as(kind: type[T], key: bytes, value: bytes) -> T:
    try:
        return build(kind, unpack(unseal(key, value)))
    except DamagedError as error:
        raise DamagedError(f"a stored {kind.__name__} is damaged ({error})") from error


def open_record(payload: bytes) -> tuple[SessionId, Seq, Record | BadRecord]:
    """Decode a log value. Return its session, its sequence number and the record."""
    try:
        session, seq, kind, values = unpack(payload)
    except (TypeError, ValueError) as error:
        raise UnreadableError("not a record") from error
    if kind not in _RECORDS:
        return session, seq, BadRecord(problem=f"unknown kind of record: {kind}")
    try:
        return session, seq, build(_RECORDS[kind], values)
    except UnreadableError as error:
        return session, seq, BadRecord(problem=str(error))


def _make_lister(kind: type) -> Callable[[object], tuple[Any, ...]]:
    """Compile a function that lists the field values: every append packs a whole session, so speed matters."""
    if kind not in STORED:
        raise TypeError(f"{kind.__name__} cannot be stored")
    defaults = {f"_{field.name}": field.default for field in fields(kind)}
    code = f"lambda value: {_cut_listing(kind, len(fields(kind)))}"
    made: Callable[[object], tuple[Any, ...]] = eval(code, defaults)  # noqa: S307 - made of our own field names
    return made


def _cut_listing(kind: type, stop: int) -> str:
    """Return code like that of _listing, which omits blocks of defaults at the end.

    A default is recognised by identity, which `replace` and decoding keep. An equal value is listed.
    """
    block = fields(kind)[max(stop - _BLOCK, 0) : stop]
    if len(block) < _BLOCK or any(field.default is MISSING for field in block):
        return _listing("value", kind, stop)
    unset = " and ".join(f"value.{field.name} is _{field.name}" for field in block)
    return f"({_cut_listing(kind, stop - _BLOCK)}) if {unset} else {_listing('value', kind, stop)}"


def _listing(value: str, kind: type, stop: int | None = None) -> str:
    """Return code that lists the field values: "(value.platform,value.user,)" for a Source."""
    hints = _hints(kind)
    return "(" + "".join(f"{_plain(f'{value}.{each.name}', hints[each.name])}," for each in fields(kind)[:stop]) + ")"


def _plain(value: str, hint: Any) -> str:
    """Return code for one field value. A dataclass, or a tuple of them, becomes a listing."""
    part: Any = next(filter(is_dataclass, (hint, *get_args(hint))), None)
    if part is None:
        return value
    if get_origin(hint) is tuple:
        return f"[{_listing('each', part)} for each in {value}] if {value} else ()"
    return f"None if {value} is None else {_listing(value, part)}"


def _make_shape(kind: type) -> tuple[tuple[str, ...], tuple[tuple[str, Converter], ...]]:
    hints = _hints(kind)
    names = tuple(field.name for field in fields(kind))
    converters = ((name, _converter(hints[name])) for name in names)
    return names, tuple((name, convert) for name, convert in converters if convert)


def _converter(hint: Any) -> Converter | None:
    """Return the function that restores the type of a field; None if msgpack keeps the type."""
    hint = getattr(hint, "__supertype__", hint)  # the base type of a NewType
    if get_origin(hint) is types.UnionType or type(None) in get_args(hint):
        [inner] = [_converter(each) for each in get_args(hint) if each is not type(None)]
        return inner and (lambda value: None if value is None else inner(value))
    if get_origin(hint) is tuple:
        each = _converter(get_args(hint)[0])
        return each and (lambda values: tuple(map(each, values)))
    if is_dataclass(hint):
        return lambda values: build(hint, values)  # type: ignore[arg-type]
    if hint in (str, int, float, bool, bytes):
        return None
    kind: type = hint
    assert issubclass(kind, StrEnum), f"a {kind} cannot be stored"
    return kind


# Computed at the first use of a kind: computing all of them would delay the start.
_lister: Callable[[type], Callable[[object], tuple[Any, ...]]] = cache(_make_lister)
_shape: Callable[[type], tuple[tuple[str, ...], tuple[tuple[str, Converter], ...]]] = cache(_make_shape)
