"""Tables of a section, for the terminal and for Markdown."""

import dataclasses
from collections.abc import Sequence
from typing import Any

_NUMERIC = "0123456789"
"""First characters of the cells in a column of numbers."""


@dataclasses.dataclass
class Table:
    """Rows of text under a title, with a sentence or two on what they compare."""

    title: str
    text: str
    header: Sequence[str]
    rows: list[Sequence[str]] = dataclasses.field(default_factory=list)
    summary: list[Sequence[str]] = dataclasses.field(default_factory=list)
    """Rows shown below the others, such as means."""
    is_wide: bool = False
    """Whether the table is too wide for a terminal and is shown only on the page."""

    def rich(self) -> Any:
        """Lay the table out for a terminal."""
        import rich.box
        import rich.table

        table = rich.table.Table(
            title=plain(self.title), title_justify="left", box=rich.box.SIMPLE_HEAD
        )
        for column, name in zip(self._columns(), self.header, strict=True):
            table.add_column(plain(name), justify="right" if self._is_numeric(column) else "left")
        for row in self.rows:
            table.add_row(*map(plain, row))
        if self.summary:
            table.add_section()
        for row in self.summary:
            table.add_row(*map(plain, row), style="bold")
        return table

    def markdown(self) -> str:
        """Return the table as Markdown."""
        aligned = ["---:" if self._is_numeric(column) else "---" for column in self._columns()]
        bold = [[f"**{cell}**" if cell else "" for cell in row] for row in self.summary]
        lines = [f"| {' | '.join(row)} |" for row in [self.header, aligned, *self.rows, *bold]]
        return "\n".join([f"### {self.title}", "", self.text.strip(), "", *lines, ""])

    def _columns(self) -> list[Sequence[str]]:
        return list(zip(*self.rows, strict=True)) or [() for _ in self.header]

    @staticmethod
    def _is_numeric(column: Sequence[str]) -> bool:
        return all(cell[:1] in _NUMERIC for cell in column)


def plain(text: str) -> str:
    """Remove what only Markdown shows."""
    return text.replace("`", "")


def number(value: float, digits: int = 1) -> str:
    """Format a number."""
    return f"{value:.{digits}f}"


def ratio(ours: float, theirs: float) -> float:
    """Divide their time by ours: above 1, ours is faster."""
    return theirs / ours


def gigabytes_per_second(size: float, seconds: float) -> float:
    """Divide bytes by seconds, and return units of 10**9."""
    return size / seconds / 1e9
