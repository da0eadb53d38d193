"""The matrix page: a table of all cells, and the reason of every cell that is not ok."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from tests.clients.catalog import Client
from tests.clients.matrix import Cell, Outcome
from tests.clients.scenarios import SCENARIOS

_WIDTH = 120
_LEGEND = (
    "**ok**: the scenario passed. **limit**: the {kind} itself cannot do this; the reason is below. **failed**: a "
    "bug that is still open. **-**: not run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTexts:
    """What differs between matrix pages."""

    title: str
    intro: str
    kind: str  # of a row
    mode: str
    scenarios: Mapping[str, Callable[..., object]]


CLIENTS_PAGE = PageTexts(
    title="Clients of other people",
    intro=(
        "These clients were written by other people. `make clients` installs each one in an exact version, starts "
        "the daemon with a scripted model, and runs the same twelve scenarios with the unmodified client. Then it "
        "writes this page."
    ),
    kind="client",
    mode="mode",
    scenarios=SCENARIOS,
)


def render(clients: Sequence[Client], cells: Iterable[Cell], page: PageTexts = CLIENTS_PAGE) -> str:
    """Return the page for all clients that have cells."""
    found = {(cell.client, cell.mode, cell.scenario): cell for cell in cells}
    shown = [client for client in clients if any(key == client.key for key, _, _ in found)]
    parts = [
        f"# {page.title}",
        _paragraph(page.intro),
        "## Matrix",
        _table(shown, found, page),
        _paragraph(_LEGEND.format(kind=page.kind)),
        *_reasons(f"Limits of the {page.kind}s", Outcome.LIMIT, shown, found),
        *_reasons("Failures", Outcome.FAILED, shown, found),
        "## Scenarios",
        _scenarios(page.scenarios),
        "## Versions",
        _versions(shown, found, page.kind),
    ]
    return "\n\n".join(parts) + "\n"


def _table(clients: Sequence[Client], found: dict[tuple[str, str, str], Cell], page: PageTexts) -> str:
    lines = [[page.kind, page.mode, *page.scenarios], ["---"] * (len(page.scenarios) + 2)]
    for client in clients:
        lines += [
            [client.title, mode, *(_mark(found.get((client.key, mode, scenario))) for scenario in page.scenarios)]
            for mode in client.modes
        ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _mark(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return "**failed**" if cell.outcome is Outcome.FAILED else cell.outcome.value


def _reasons(
    title: str, outcome: Outcome, clients: Sequence[Client], found: dict[tuple[str, str, str], Cell]
) -> list[str]:
    """A section that explains all cells with one outcome, equal reasons together; empty if there are none."""
    lines = []
    for client in clients:
        reasons: dict[str, list[str]] = {}
        for (key, mode, scenario), cell in found.items():
            if key == client.key and cell.outcome is outcome:
                reasons.setdefault(" ".join(cell.detail.split())[:300], []).append(f"{mode} {scenario}")
        lines += [_item(f"{client.title}, {', '.join(where)}: {reason}") for reason, where in reasons.items()]
    return [f"## {title}", "\n".join(lines)] if lines else []


def _scenarios(scenarios: Mapping[str, Callable[..., object]]) -> str:
    lines = ["| scenario | what is checked |", "| --- | --- |"]
    for name, scenario in scenarios.items():
        lines.append(f"| {name} | {' '.join((scenario.__doc__ or '').split())} |")
    return "\n".join(lines)


def _versions(clients: Sequence[Client], found: dict[tuple[str, str, str], Cell], kind: str) -> str:
    lines = [f"| {kind} | packages | date of the run |", "| --- | --- | --- |"]
    for client in clients:
        first = min(cell.date for (key, _, _), cell in found.items() if key == client.key)
        lines.append(f"| {client.title} | {', '.join(client.packages)} | {first} |")
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    return "\n".join(wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False))


def _item(text: str) -> str:
    lines = wrap(text, _WIDTH - 2, break_on_hyphens=False, break_long_words=False)
    return "- " + "\n  ".join(lines)
