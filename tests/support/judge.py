"""What happened in a run, as values, and the one judge of it: `judge(history)` says every promise that was broken.

Every suite that kills, stops, starves or confuses Hermes writes down the same few facts (what was sent, acknowledged,
seen by a model, done by tools, delivered, and what the journal says in the end) and asks the same judge. A suite that
cannot know some of them leaves them out; the judge then says nothing about those.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import TypeAlias, TypeVar

from hermes.domain.session.state import Session
from hermes.domain.values import dataclass

LIMBO_S = 60.0  # how long an open session may do nothing while nothing hinders it

# ---------------------------------------------------------------- what happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    inbound: str  # the sender's own id of it, which is also its text
    at: float
    overtakes: bool = False  # it is to steer a turn in flight, and may be heard before what waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """Its sender was told that it is kept."""

    inbound: str
    at: float
    session: str = ""
    turn: str = ""  # empty: the suite cannot tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A model was shown a transcript. `ahead` says what of it was not on disk, if anything."""

    session: str
    inbounds: tuple[str, ...]
    ahead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A tool call changed something in the world."""

    call: str
    recorded: bool = True  # the journal said by then that it had begun


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyExpected:
    """Somebody who does not ask again is to get the final reply of a turn."""

    to: str
    turn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A final reply reached whoever waits for it: a request, or a chat."""

    to: str
    turn: str
    text: str
    marked: bool = False  # as a possible duplicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """People took back what they had said, in one session or (empty) wherever it was."""

    inbounds: tuple[str, ...]
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """A session was deleted. What the journal says in the end is, of this one, what it said right before that."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A background process has begun whose end its conversation wants to hear of."""

    process: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """A message was sent, and nobody could learn whether it arrived."""

    at: float


# ---------------------------------------------------------------- what is left in the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The journal holds the message."""

    inbound: str
    turn: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """The journal holds the message once more, as another turn, because somebody wanted another answer to it."""

    inbound: str
    turn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The end of a process was told to its conversation; `late`: to its person, because that was over."""

    process: str
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A message became part of another one's turn."""

    turn: str
    into: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The journal says how a turn ended."""

    turn: str
    text: str = ""
    failure: str = ""  # its kind; empty: it was answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a model would be shown of a session now."""

    session: str
    inbounds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A session's row, and what folding its log gives."""

    row: Session
    fold: Session | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A session has work, and since when it has done nothing about it."""

    session: str
    phase: str
    quiet_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much there is of something that must stay bounded: memory, threads, descriptors, readers, actors."""

    what: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """A call was approved, or ran although it needed approval."""

    call: str
    role: str  # of its turn
    approver: str  # the role of whoever approved it; empty: nobody did
    granted: bool = False  # what was granted for longer covers it


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Something that must not happen at all was noticed on the way, such as an exception that nobody caught."""

    problem: str


Happening: TypeAlias = (
    Sent
    | Acknowledged
    | Shown
    | Effect
    | ReplyExpected
    | Delivered
    | Withdrawn
    | Erased
    | Launched
    | Crashed
    | Uncertain
    | Accepted
    | Retried
    | Told
    | Merged
    | Settled
    | Looked
    | Stored
    | Open
    | Sample
    | Permitted
    | Complaint
)
T = TypeVar("T")


class History:
    def __init__(self, happenings: Iterable[Happening] = (), *, surveyed: bool = False) -> None:
        self.happenings = list(happenings)
        self.surveyed = surveyed  # the whole journal was read in the end: what it does not hold is lost

    def add(self, *happenings: Happening) -> None:
        self.happenings.extend(happenings)

    def of(self, kind: type[T]) -> list[T]:
        return [each for each in self.happenings if isinstance(each, kind)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


# ---------------------------------------------------------------- the judge


def judge(history: History) -> list[Violation]:
    return [Violation(rule=name, detail=detail) for name, rule in RULES.items() for detail in rule(history)]


def _lost(history: History) -> Iterator[str]:
    """An acknowledged message is in the transcript, unless its turn ended without an answer before it got there, or
    it was taken back.
    """
    looked = {inbound for look in history.of(Looked) for inbound in look.inbounds}
    looked.update(inbound for each in history.of(Withdrawn) for inbound in each.inbounds)
    unanswered = {each.turn for each in history.of(Settled) if each.failure}
    turns = {each.inbound: each.turn for each in _named(history) if each.turn}
    into = _merges(history)
    for inbound in _acknowledged(history):
        excused = _end_of(turns.get(inbound, ""), into) in unanswered
        if inbound not in looked and not excused:
            yield f"{inbound} was acknowledged and is in no transcript"
    if history.surveyed:
        kept = {each.inbound for each in history.of(Accepted)}
        yield from (f"{inbound} is not in the journal" for inbound in _acknowledged(history) if inbound not in kept)


def _named(history: History) -> list[Acknowledged | Accepted]:
    return [each for each in history.happenings if isinstance(each, Acknowledged | Accepted)]


def _looks(history: History) -> list[Shown | Looked]:
    return [each for each in history.happenings if isinstance(each, Shown | Looked)]


def _acknowledged(history: History) -> dict[str, float]:
    """Each acknowledged message, and when that was the first time."""
    first: dict[str, float] = {}
    for each in history.of(Acknowledged):
        first[each.inbound] = min(each.at, first.get(each.inbound, inf))
    return first


def _merges(history: History) -> dict[str, str]:
    return {each.turn: each.into for each in history.of(Merged)}


def _end_of(turn: str, into: Mapping[str, str]) -> str:
    """The turn that it became part of, or itself."""
    seen = {turn}
    while turn in into and into[turn] not in seen:
        turn = into[turn]
        seen.add(turn)
    return turn


def _doubled(history: History) -> Iterator[str]:
    for inbound, times in Counter(each.inbound for each in history.of(Accepted)).items():
        if times > 1:
            yield f"{inbound} was accepted {times} times"
    named: dict[str, set[str]] = defaultdict(set)
    for each in _named(history):
        if each.turn:
            named[each.inbound].add(each.turn)
    yield from (f"{inbound} is turns {sorted(turns)}" for inbound, turns in named.items() if len(turns) > 1)
    for shown in _looks(history):
        twice = [inbound for inbound, times in Counter(shown.inbounds).items() if times > 1]
        if twice:
            yield f"session {shown.session} shows {twice} twice"


def _ahead(history: History) -> Iterator[str]:
    for shown in history.of(Shown):
        if shown.ahead:
            yield f"the model of session {shown.session} was shown what is not on disk: {shown.ahead}"


def _effects(history: History) -> Iterator[str]:
    for call, times in Counter(each.call for each in history.of(Effect)).items():
        if times > 1:
            yield f"{call} had its effect {times} times"
    yield from (
        f"{each.call} had an effect before it was recorded" for each in history.of(Effect) if not each.recorded
    )


def _unsettled(history: History) -> Iterator[str]:
    ends = Counter(each.turn for each in history.of(Settled))
    yield from (f"turn {turn} ended {times} times" for turn, times in ends.items() if times > 1)
    if not history.surveyed:
        return
    into = _merges(history)
    for turn in dict.fromkeys(each.turn for each in (*_named(history), *history.of(Retried)) if each.turn):
        if not ends[_end_of(turn, into)]:
            yield f"turn {turn} was taken and never ended"


def _replies(history: History) -> Iterator[str]:
    said = {each.turn: each.text for each in history.of(Settled) if not each.failure}
    into, doubts = _merges(history), len(history.of(Crashed)) + len(history.of(Uncertain))
    replies: dict[tuple[str, str], list[Delivered]] = defaultdict(list)
    for each in history.of(Delivered):
        replies[each.to, each.turn].append(each)
        expected = said.get(_end_of(each.turn, into), each.text if not history.surveyed else None)
        if each.text != expected:
            yield f"{each.to} got {each.text!r} for turn {each.turn}, and the journal says {expected!r}"
    for (to, turn), got in replies.items():
        plain = sum(not each.marked for each in got)
        if plain > 1:
            yield f"{to} got the reply of turn {turn} {plain} times, and was not warned"
        if len(got) - plain > doubts:
            yield f"{to} got {len(got) - plain} marked duplicates of turn {turn} for {doubts} doubts"
    texts: dict[str, set[str]] = defaultdict(set)
    for each in history.of(Delivered):
        texts[each.turn].add(each.text)
    yield from (f"turn {turn} has the replies {sorted(got)}" for turn, got in texts.items() if len(got) > 1)
    for outgoing in history.of(ReplyExpected):
        if not replies[outgoing.to, outgoing.turn]:
            yield f"{outgoing.to} never got the reply of turn {outgoing.turn}"


def _disordered(history: History) -> Iterator[str]:
    """What was acknowledged before another message was sent is heard before it, unless that one steers or answers."""
    sent: dict[str, float] = {}
    for each in history.of(Sent):
        sent.setdefault(each.inbound, each.at)
    merged = _merges(history)
    overtakes = {each.inbound for each in history.of(Accepted) if each.turn in merged}
    overtakes.update(each.inbound for each in history.of(Sent) if each.overtakes)
    acknowledged = _acknowledged(history)
    for look in _looks(history):
        earliest, which = inf, ""
        for inbound in reversed(look.inbounds):
            if earliest < sent.get(inbound, -inf) and inbound not in overtakes:
                late = f"{which}, which was acknowledged before it was sent"
                yield f"session {look.session} has {inbound} before {late}"
            if acknowledged.get(inbound, inf) < earliest:
                earliest, which = acknowledged[inbound], inbound


def _withdrawn(history: History) -> Iterator[str]:
    """Nothing that was taken back is shown to a model again."""
    gone: dict[str, set[str]] = defaultdict(set)
    for each in history.happenings:
        if isinstance(each, Withdrawn):
            gone[each.session].update(each.inbounds)
        elif isinstance(each, Shown):
            yield from (
                f"session {each.session} shows {inbound}, which was taken back"
                for inbound in each.inbounds
                if inbound in gone[each.session] or inbound in gone[""]
            )


def _untold(history: History) -> Iterator[str]:
    """The end of a process reaches its conversation once, or its person where that is over."""
    told = Counter(each.process for each in history.of(Told) if not each.late)
    yield from (f"the end of {process} was told {times} times" for process, times in told.items() if times > 1)
    if not history.surveyed:
        return
    heard, erased = {each.process for each in history.of(Told)}, {each.session for each in history.of(Erased)}
    for each in history.of(Launched):
        if each.process not in heard and each.session not in erased:
            yield f"the end of {each.process} of session {each.session} was never told"


def _limbo(history: History) -> Iterator[str]:
    for each in history.of(Open):
        if each.quiet_s > LIMBO_S:
            yield f"session {each.session} is {each.phase} and did nothing for {each.quiet_s:.0f} s"


def _unbounded(history: History) -> Iterator[str]:
    for each in history.of(Sample):
        if each.value > each.limit:
            yield f"{each.what}: {each.value:g}, more than {each.limit:g}"


def _unfaithful(history: History) -> Iterator[str]:
    for each in history.of(Stored):
        if each.fold != each.row:
            yield f"session {each.row.id}: its log gives {each.fold}, its row says {each.row}"


def _unapproved(history: History) -> Iterator[str]:
    for each in history.of(Permitted):
        standing = each.granted and each.role != "guest"
        if each.approver not in ("owner", "admin") and not standing:
            yield f"{each.call} ran in a turn of role {each.role}, approved by {each.approver or 'nobody'}"


def _complaints(history: History) -> Iterator[str]:
    return (each.problem for each in history.of(Complaint))


RULES: dict[str, Callable[[History], Iterator[str]]] = {
    "an acknowledged message is never lost": _lost,
    "one message is at most one turn": _doubled,
    "a model sees only what is on disk": _ahead,
    "effects happen at most once, and recorded": _effects,
    "an accepted turn ends, once": _unsettled,
    "one final reply per turn": _replies,
    "order is kept": _disordered,
    "what was taken back stays so": _withdrawn,
    "the end of a process is told, once": _untold,
    "no session is in limbo": _limbo,
    "what grows is bounded": _unbounded,
    "the log gives the same state as the row": _unfaithful,
    "what needs approval runs only when it was given": _unapproved,
    "nothing unexpected happens": _complaints,
}
