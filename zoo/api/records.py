"""Records that print as a table, in a terminal and in a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


class Records(tuple[T, ...], Generic[T]):
    """A tuple of dataclasses or of mappings; `str` and a notebook show it as a table."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dictionary per record."""
        return [dict(r) if isinstance(r, Mapping) else _fields(r) for r in self]

    def to_pandas(self) -> DataFrame:
        """A row per record. Raises `ImportError` where pandas is not installed."""
        return frame(self.to_dicts())

    def __repr__(self) -> str:
        from tabulate import tabulate

        head, cells = _grid(self.to_dicts())
        return tabulate(cells, head, "simple", disable_numparse=True) if cells else "no records"

    def _repr_html_(self) -> str:
        return html_table(*_grid(self.to_dicts()))


def frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """The rows as a `pandas.DataFrame`. Raises `ImportError` where pandas is not installed."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("pandas is not installed; pip install 'transformer-zoo[pandas]' brings it") from error
    return pandas.DataFrame(list(rows))


def html_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table for a notebook; every text in it is escaped."""
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _grid(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The names of the columns in which any row has a value, and the cells of all rows."""
    names = dict.fromkeys(name for row in rows for name in row)
    kept = [name for name in names if any(row.get(name) not in (None, "", (), {}) for row in rows)]
    return kept, [[_cell(row.get(name)) for name in kept] for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
