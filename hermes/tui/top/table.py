"""Tables of the live view: columns that fit the width of the terminal, and their cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from hermes.domain.values import dataclass
from hermes.tui.top import words
from hermes.tui.top.sample import Sample, SessionRow


class Tab(StrEnum):
    SESSIONS = "Sessions"
    ACTORS = "Actors"
    PROCESSES = "Processes"
    PLATFORMS = "Platforms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`width` 0: takes a share of the rest. Columns with a higher `drop` go first when there is no room."""

    name: str
    width: int
    right: bool = False
    drop: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    key: str
    state: str  # decides its colour
    cells: tuple[str, ...]


_MIN_REST = 14
_GAP = 2  # columns between two cells
_COLUMNS: Mapping[Tab, tuple[Column, ...]] = {
    Tab.SESSIONS: (
        Column(name="STATE", width=9),
        Column(name="STEP", width=0),
        Column(name="FOR", width=6, right=True),
        Column(name="MAIL", width=4, right=True),
        Column(name="TOKENS", width=6, right=True),
        Column(name="COST", width=6, right=True, drop=1),
        Column(name="TURNS", width=5, right=True, drop=4),
        Column(name="PLATFORM", width=8, drop=3),
        Column(name="SESSION", width=8, drop=2),
        Column(name="ABOUT", width=0),
    ),
    Tab.ACTORS: (
        Column(name="STATE", width=10),
        Column(name="KIND", width=12, drop=1),
        Column(name="NAME", width=0),
        Column(name="MAIL", width=4, right=True),
        Column(name="OLDEST", width=6, right=True, drop=3),
        Column(name="HANDLED", width=7, right=True),
        Column(name="SLOWEST", width=8, right=True, drop=2),
        Column(name="UP", width=6, right=True),
        Column(name="LAST ERROR", width=0),
    ),
    Tab.PROCESSES: (
        Column(name="PROCESS", width=17),
        Column(name="PID", width=7, right=True, drop=2),
        Column(name="FOR", width=6, right=True),
        Column(name="CPU", width=6, right=True),
        Column(name="MEMORY", width=8, right=True),
        Column(name="OUTPUT", width=8, right=True, drop=3),
        Column(name="SESSION", width=8, drop=1),
        Column(name="COMMAND", width=0),
    ),
    Tab.PLATFORMS: (
        Column(name="PLATFORM", width=12),
        Column(name="STATE", width=10),
        Column(name="PROBLEM", width=0),
    ),
}


def columns_of(tab: Tab) -> tuple[Column, ...]:
    return _COLUMNS[tab]


def fitted(tab: Tab, width: int) -> tuple[Column, ...]:
    """Return the columns that fit, with their widths."""
    columns = list(_COLUMNS[tab])
    elastic = sum(not each.width for each in columns)
    while (rest := _rest(columns, width)) < elastic * _MIN_REST and (droppable := [c for c in columns if c.drop]):
        columns.remove(max(droppable, key=lambda each: each.drop))
    shares = _shares(max(elastic, rest), elastic)
    return tuple(each if each.width else _widened(each, shares.pop()) for each in columns)


def _rest(columns: Sequence[Column], width: int) -> int:
    return width - sum(each.width + _GAP for each in columns)


def _shares(rest: int, elastic: int) -> list[int]:
    share = max(1, rest // elastic)
    return [max(1, rest - share * (elastic - 1)), *([share] * (elastic - 1))]


def _widened(column: Column, width: int) -> Column:
    return Column(name=column.name, width=max(width, len(column.name)), right=column.right)


def rows_of(tab: Tab, sample: Sample, abouts: Mapping[str, str], find: str = "") -> list[TableRow]:
    """Return all rows with all cells. The daemon filters sessions; the other tables are filtered here."""
    if tab is Tab.SESSIONS:
        return [_session(each, abouts) for each in sample.sessions]
    rows = {Tab.ACTORS: _actors, Tab.PROCESSES: _processes, Tab.PLATFORMS: _platforms}[tab](sample)
    wanted = find.casefold().split()
    return [row for row in rows if all(word in " ".join((row.key, *row.cells)).casefold() for word in wanted)]


def chosen(row: TableRow, tab: Tab, columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row for these columns."""
    cells = dict(zip((each.name for each in _COLUMNS[tab]), row.cells, strict=True))
    return [cells[each.name] for each in columns]


def _session(row: SessionRow, abouts: Mapping[str, str]) -> TableRow:
    cells = (
        words.phase(row),
        words.doing(row),
        words.age(row.step_age_s) if row.doing != "none" else "-",
        str(row.mailbox + row.queued) if row.mailbox + row.queued else "-",
        words.number(row.usage.tokens),
        words.money(row.usage.cost_usd),
        str(row.turns),
        row.platform,
        words.short_id(row.id),
        row.title or abouts.get(row.id, "") or "-",
    )
    return TableRow(key=row.id, state=row.phase, cells=cells)


def _actors(sample: Sample) -> list[TableRow]:
    return [
        TableRow(
            key=f"{each.kind}:{each.name}:{place}",
            state=each.state,
            cells=(
                each.state,
                each.kind,
                each.name,
                str(each.mailbox) if each.mailbox else "-",
                words.age(each.oldest_s) if each.mailbox else "-",
                words.number(each.handled),
                words.took(each.slowest_s),
                words.age(each.age_s),
                each.last_error or "-",
            ),
        )
        for place, each in enumerate(sample.actors)
    ]


def _processes(sample: Sample) -> list[TableRow]:
    return [
        TableRow(
            key=each.id,
            state="running",
            cells=(
                each.id,
                str(each.pid or "-"),
                words.age(each.age_s),
                words.age(each.cpu_s),
                words.size(each.memory_bytes),
                words.size(each.output_bytes),
                words.short_id(each.session_id),
                " ".join(words.printable(each.command).split()),
            ),
        )
        for each in sample.processes
    ]


def _platforms(sample: Sample) -> list[TableRow]:
    return [
        TableRow(key=each.name, state=each.state, cells=(each.name, each.state, each.problem or "-"))
        for each in sample.platforms
    ]
