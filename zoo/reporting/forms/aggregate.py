"""Rows over several tasks as a document: on the terminal, in Markdown and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text
from tabulate import tabulate

from zoo import numbers
from zoo.files import strict
from zoo.record import FORMAT

from ..judging.across import Across, Cell, Estimate, Line
from ..table import Table
from ..text import escape_markdown, one_line
from .columns import Column
from .terminal import fit, grid

TASK = (
    Column("comparison", lambda table: one_line(table.name), 1, right=False, breaks="anywhere"),
    Column("task", lambda table: one_line(table.task), 3, right=False),
    Column("metric", lambda table: f"{one_line(table.metric.name)}, {table.metric.better} is better", 2, right=False),
    Column("baseline's score", lambda table: numbers.mean(table.base.test), 4),
    Column("seeds", lambda table: str(table.base.test.n), 5),
)
"""The columns of the table of tasks."""


def aggregate_columns(found: Across) -> list[Column]:
    tasks = [_task_column(place, table) for place, table in enumerate(found.tables)]
    return [
        Column("variant", lambda line: one_line(line.name) + (" (reference)" if line.reference else ""), 1, right=False,
               breaks="anywhere"),
        Column("gain in % [95 %]", lambda line: _gain(found, line), 2),
        Column("improves [95 %]", lambda line: _figures(line.improvement, "{:.2f}".format), 3),
        Column("mean rank", lambda line: "" if line.rank is None else f"{line.rank:.2g}", 4),
        *tasks,
    ]  # fmt: skip


def _task_column(place: int, table: Table) -> Column:
    return Column(one_line(table.name), lambda line: _cell(line.cells[place]), 5 + place, breaks="commas")


def _gain(found: Across, line: Line) -> str:
    if line.name == found.baseline:
        return "baseline"
    return _figures(line.gain, percent) if line.whole else "lacks runs"


def _figures(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    if estimate is None:
        return ""
    bounds = " [{}, {}]".format(*map(text, estimate.interval)) if estimate.interval else ""
    return text(estimate.value) + bounds


def percent(share: float) -> str:
    """Two decimals, or one significant digit where those would be zero."""
    value = 100 * share
    return f"{value:+.2f}" if abs(value) >= 0.005 else f"{value:+.1g}" if value else "0"


def _cell(cell: Cell) -> str:
    """The mean gain and the rank; how its runs stand where there is no number over all of them."""
    if cell.mean is None:
        return cell.status
    return percent(cell.mean) + ("" if cell.rank is None else f" ({cell.rank:g})")


def aggregate_caption(found: Across) -> list[str]:
    """What the columns are."""
    bounded = [line for line in found.lines if line.gain and line.gain.low is not None]
    interval = (
        "In brackets a 95 % interval by bootstrap: seeds are drawn anew within each task, row and baseline together. "
        f"It speaks of these tasks alone{', and is not corrected for several rows' if len(bounded) > 1 else ''}."
    )
    return [
        f"Gain: by seed, the difference to {found.baseline} in % of its mean score on the task, more being better; of "
        "these the mean of the middle half over all tasks and seeds, each task weighing the same (interquartile mean).",
        *([interval] if bounded else []),
        "Improves: on which share of the seeds, averaged over tasks. By task: the mean gain in %, and the rank.",
    ]


def aggregate_footnotes(found: Across) -> list[str]:
    """What is not in the table, and what must be known of what is."""
    lines = []
    if lacking := [line.name for line in found.lines if not line.whole]:
        lines.append(f"No figures over all tasks, since runs have no score: {', '.join(lacking)}.")
    if pending := [line.name for line in found.lines if line.whole and _pending(found, line)]:
        lines.append(f"Runs of {', '.join(pending)} are still to come: this is over what is there.")
    if found.elsewhere:
        told = "; ".join(f"{name} ({', '.join(where)})" for name, where in found.elsewhere.items())
        lines.append(f"Not in all comparisons, and not here: {told}.")
    for name, differs in _differs(found).items():
        told = "; ".join(f"{where}: {what or 'nothing'}" for where, what in differs.items())
        lines.append(f"NOT the same in every comparison: {name} ({told}).")
    if len({table.metric.name for table in found.tables}) > 1:
        lines.append("Shares of different metrics are averaged: a loss halved counts less than an accuracy doubled.")
    if any(line.improvement and line.gain and not line.gain.interval for line in found.lines):
        lines.append("A gain without an interval: a task has fewer than three seeds, or all of them gain the same.")
    return lines


def _pending(found: Across, line: Line) -> bool:
    rows = (row for table in found.tables for row in table.rows if row.name == line.name)
    return any(run.status != "done" for row in rows for run in row.runs)


def _differs(found: Across) -> dict[str, dict[str, str]]:
    """The rows that have other parts in one comparison than in another, with these; sizes and training may differ."""
    out = {}
    for line in found.lines:
        rows = {table.name: row for table in found.tables for row in table.rows if row.name == line.name}
        parts = {where: _parts(row.differs) for where, row in rows.items()}
        if len(set(parts.values())) > 1:
            out[line.name] = parts
    return out


def _parts(differs) -> str:
    return ", ".join(f"{key}: {value}" for key, value in differs.items() if "." not in key and key != "task")


def _prose(text: str) -> str:
    return escape_markdown(one_line(text))


def aggregate_to_markdown(found: Across) -> str:
    """GitHub's Markdown; whatever a name holds is escaped."""
    notes = "\n".join(f"- {_prose(line)}" for line in aggregate_footnotes(found))
    body = [_pipe(aggregate_columns(found), found.lines), _pipe(TASK, found.tables)]
    parts = [
        f"# {_prose(found.title)}",
        " ".join(map(_prose, aggregate_caption(found))),
        body[0],
        notes,
        f"## Tasks\n\n{body[1]}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _pipe(chosen: Sequence[Column], rows: Sequence) -> str:
    cells = [[escape_markdown(column.text(row)) for column in chosen] for row in rows]
    align = ["right" if column.right else "left" for column in chosen]
    return tabulate(cells, [escape_markdown(c.head) for c in chosen], "pipe", disable_numparse=True, colalign=align)


@dataclass(frozen=True)
class AggregateTerminal:  # noqa: N801, a function to whoever calls it
    """What rich prints, fitted to the width of the console that prints it."""

    found: Across

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        every = aggregate_columns(self.found)
        chosen = fit(every, self.found.lines, options.max_width)
        yield Text(one_line(self.found.title), style="bold")
        yield from (Text(one_line(line), style="dim") for line in aggregate_caption(self.found))
        yield Text()
        yield grid(chosen, self.found.lines)
        yield Text()
        yield from (Text(one_line(line), style="dim") for line in aggregate_footnotes(self.found))
        yield grid(fit(TASK, self.found.tables, options.max_width), self.found.tables)
        if left_out := [one_line(column.head) for column in every if column not in chosen]:
            yield Text(
                f"Columns that do not fit this width: {', '.join(left_out)}; aggregate.md has them.", style="dim"
            )


def aggregate_to_json(found: Across) -> str:
    """Strict JSON: a number that is not known is null, and texts are as they were."""
    tasks = [
        {"name": table.name, "task": table.task, "metric": asdict(table.metric), "baseline": asdict(table.base.test)}
        for table in found.tables
        if table.base and table.base.test
    ]
    rows = [_entry(found, line) for line in found.lines]
    said = {"caption": aggregate_caption(found), "footnotes": aggregate_footnotes(found)}
    out = {"format": FORMAT, "baseline": found.baseline, **said, "tasks": tasks, "rows": rows}
    out |= {"elsewhere": found.elsewhere}
    return json.dumps(strict(out), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _entry(found: Across, line: Line) -> dict:
    cells = [
        {"name": table.name, "gain": cell.mean, "rank": cell.rank, "status": cell.status, "lacking": cell.lacking,
         "gains": [{"seed": seed, "gain": gain} for seed, gain in cell.gains.items()]}
        for table, cell in zip(found.tables, line.cells, strict=True)
    ]  # fmt: skip
    gain, improvement = (each and asdict(each) for each in (line.gain, line.improvement))
    return {"name": line.name, "reference": line.reference, "gain": gain, "improvement": improvement,
            "mean_rank": line.rank, "tasks": cells}  # fmt: skip
