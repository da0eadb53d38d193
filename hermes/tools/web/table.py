"""A table on its way from a page to text: one line a row, cells between bars."""

from __future__ import annotations


class HtmlTable:
    __slots__ = ("_headings", "_rows", "in_cell", "is_layout")

    def __init__(self) -> None:
        self.in_cell = False
        self.is_layout = False  # it only puts things side by side; its cells are read as blocks
        self._rows: list[list[str]] = []
        self._headings = False  # whether the first row is made of them

    def start_row(self) -> None:
        self._rows.append([])

    def add_cell(self, text: str, *, heading: bool) -> None:
        if not self._rows:
            self.start_row()
        self._headings = self._headings or (heading and len(self._rows) == 1)
        self._rows[-1].append(text.replace("|", "\\|"))
        self.in_cell = False

    def take_rows(self) -> list[str]:
        """The rows so far as plain lines; the table is empty afterwards."""
        rows = [" ".join(filter(None, row)) for row in self._rows]
        self._rows = []
        return [row for row in rows if row]

    def text(self) -> str:
        rows = [row for row in self._rows if any(row)]
        if self.is_layout or max(map(len, rows), default=0) < 2:
            return "\n".join(self.take_rows())
        lines = [f"| {' | '.join(row)} |" for row in rows]
        if self._headings:
            lines.insert(1, "|" + " --- |" * len(rows[0]))
        return "\n".join(lines)
