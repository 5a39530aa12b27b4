"""The result of a comparison: rows, verdicts, curves and runs, read from folders without torch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zoo import reporting
from zoo.faults import SpecError, nearest
from zoo.reporting import Finding, Row, Table
from zoo.reporting.forms.caption import caption
from zoo.reporting.forms.columns import columns
from zoo.reporting.judging.verdict import describe_rows

from .records import Records, frame, html_table

if TYPE_CHECKING:
    from pandas import DataFrame

    from .loaded import LoadedModel


@dataclass(frozen=True)
class RunRecord:
    """One run: a row with one seed. Scores are those of the metric that ranks the rows, None until they are known;
    `seconds` are those of training, and `folder` holds its files.
    """

    row: str
    seed: int
    status: str
    test: float | None
    dev: float | None
    seconds: float | None
    reason: str | None
    folder: Path


@dataclass(frozen=True, repr=False)
class Result:
    """What a comparison has come to, as far as its runs in `out` have ended.

    `str` and a notebook show its table; `table` holds all that the reports are made from.
    """

    out: Path
    table: Table

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def folder(self) -> Path:
        """Where its reports lie."""
        return self.out / self.name

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows, best first: `row.test.mean` and `.sd` over seeds, `row.difference` to the baseline,
        `row.parameters`, FLOPs and bytes per token, speeds in tokens per second; None for what is not known.
        """
        return self.table.rows

    def __getitem__(self, row: str) -> Row:
        """The row of that name. Raises `SpecError`."""
        found = {each.name: each for each in self.rows}
        if row not in found:
            raise SpecError(f"no row is called '{row}'{nearest(row, found)}")
        return found[row]

    @cached_property
    def verdicts(self) -> dict[str, Finding]:
        """Row name to what can be said of it against the baseline: `.phrase`, and under `.verdict` the interval
        (`low`, `high`) of the difference and its p-value (`p_holm`, corrected over the rows); None where too few seeds
        have ended.
        """
        return reporting.findings(self.table)

    @property
    def sentences(self) -> list[str]:
        """The verdicts in words."""
        return describe_rows(self.table)

    @property
    def runs(self) -> Records[RunRecord]:
        """Every run, row by row."""
        metric = self.table.metric.name
        return Records(
            RunRecord(row.name, run.seed, run.outcome, run.test.get(metric), run.dev.get(metric),
                      run.fact("train", "seconds"), run.reason, self.out / run.id)
            for row in self.rows for run in row.runs
        )  # fmt: skip

    @property
    def curves(self) -> Records[dict[str, Any]]:
        """Every evaluation on dev: `row`, `seed`, `step`, and the metrics by name."""
        return Records(
            {"row": row.name, "seed": run.seed, "step": step, **{k: v for k, v in metrics.items() if k != "step"}}
            for row in self.rows
            for run in row.runs
            for step, metrics in run.curve
        )

    def load(self, row: str, seed: int | None = None) -> LoadedModel:
        """The trained model of a row, of its first seed that is done unless one is named; see `zoo.load`. Raises
        `SpecError`.
        """
        from .loaded import load

        runs = [run for run in self[row].runs if (run.status == "done" if seed is None else run.seed == seed)]
        if not runs:
            raise SpecError(
                f"row '{row}' has no run of seed {seed}" if seed is not None else f"no run of '{row}' is done"
            )
        return load(self.out / runs[0].id)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A flat dictionary per row, with the columns of report.csv."""
        return reporting.to_records(self.table)

    def to_pandas(self) -> DataFrame:
        """A row per row of the table, with the columns of report.csv. Raises `ImportError` where pandas is not
        installed.
        """
        return frame(self.to_dicts())

    def __str__(self) -> str:
        return reporting.to_plain(self.table)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        chosen = columns(self.table)
        cells = ([column.text(row) for column in chosen] for row in self.rows)
        verdicts = "".join(f"<li>{escape(line)}</li>" for line in self.sentences)
        return (
            f"<h4>{escape(self.table.title)}</h4><ul>{verdicts}</ul>"
            f"{html_table((column.head for column in chosen), cells)}<p>{escape(' '.join(caption(self.table)))}</p>"
        )


def report(name: str | None = None, out: str | Path = "runs") -> Result:
    """The result of the comparison `name` from the folders in `out`; the name may be left out where there is one.

    Needs no torch and no file but those of the runs. Raises `SpecError` if the comparison is not there or cannot be
    read.
    """
    if name is None:
        names = reporting.comparisons(Path(out))
        if len(names) != 1:
            raise SpecError(f"{out} holds {', '.join(names)}; name one" if names else f"{out} holds no comparison")
        name = names[0]
    return Result(Path(out), reporting.read(Path(out), name))
