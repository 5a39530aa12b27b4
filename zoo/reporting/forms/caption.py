"""What a reader must know beside the numbers: how they were chosen, over how much, and what they cannot show."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zoo.numbers import epochs, score

from ..judging import fairness, speed
from ..judging.effects import judge_effects
from ..judging.pareto import COSTS, find_best
from ..judging.verdict import SHARE, rule
from ..table import Row, Table


def caption(table: Table) -> list[str]:
    """Sentences on the whole table, the most needed first."""
    metric = table.metric
    unit = f" in {metric.unit}" if metric.unit else ""
    lines = [f"{metric.name}{unit}, {metric.better} is better; selected by {table.select}, reported on test."]
    lines += _warn_of_tasks(table)
    lines += [f"{', '.join(facts)}." for facts in [[*_describe_texts(table), *_describe_budget(table)]] if facts]
    lines += [f"{note}." for note in table.notes]
    return lines + fairness.describe_fairness(table) + _describe_differences(table) + _warn_of_few_seeds(table)


def footnotes(table: Table) -> list[str]:
    """Sentences on single rows, their factorisation and kernel where that is news, and on what was done to the data."""
    lines = fairness.warn_of_edges(table) + _explain_pareto(table)
    lines += [f"Decode: {said}" for said in [speed.describe_decode(table)] if said]
    if any(len(row.cell) > 1 for row in table.rows) and (why := judge_effects(table).why_not):
        lines.append(why)
    ways = _group_names(table.rows, lambda row: row.factorisation)
    if len(ways) > 1:
        lines.append(f"Factorisation: {'; '.join(f'{way} ({names})' for way, names in ways.items())}.")
    kernels = _group_names(table.rows, _name_replaced)
    if len(kernels) == 1 and all(_name_replaced(row) for row in table.rows if row.kernel[1]):
        kernels = dict.fromkeys(kernels, "every model")
    for kernel, names in kernels.items():
        lines.append(f"Kernel: {kernel} ({names}).")
    lines += [f"NOT the same {part} in every run." for part in ("machine", "versions") if _differs(table, part)]
    notes = dict.fromkeys(note for row in table.rows for run in row.runs for note in run.fact("data", "notes") or ())
    lines += [f"Data: {note}." for note in notes]
    makers = list(dict.fromkeys(maker for row in table.rows for run in row.runs for maker in _list_makers(run.record)))
    return lines + ([f"Variants from {', '.join(makers)}."] if makers else [])


def list_reasons(table: Table) -> list[str]:
    """One line for each row that is not done and says why."""
    return [f"{row.name}: {row.status}: {row.reason}" for row in table.rows if row.reason]


def _warn_of_tasks(table: Table) -> list[str]:
    """A table is sorted by score, and scores on several tasks have no order."""
    if len(table.tasks) < 2:
        return []
    compared = f"only rows on the task of {table.baseline} are compared to it"
    return [
        f"NOT one task: there are {len(table.tasks)}, whose scores cannot be compared, and {compared}. "
        f"'zoo report {table.name} --format aggregate' compares within each."
    ]


def _describe_texts(table: Table) -> list[str]:
    hashes = dict.fromkeys(run.fact("data", "sha256") for row in table.rows for run in row.runs)
    short = [sha[:12] for sha in hashes if sha]
    if len(short) > 1:
        return [f"NOT the same text in every row: sha256 {' '.join(short)}"]
    return [f"Text sha256 {sha}" for sha in short]


def _describe_budget(table: Table) -> list[str]:
    rows = [row for row in table.rows if not row.reference]
    return [
        *_format_range([len(row.runs) for row in rows if row.runs], "seed", str),
        *_format_range([row.epochs for row in rows if row.epochs is not None], "epoch", epochs),
    ]


def _format_range(values: list, noun: str, text: Callable[..., str]) -> list[str]:
    if not values:
        return []
    low, high = text(min(values)), text(max(values))
    return [f"{low if low == high else f'{low} to {high}'} {noun}{'' if high == '1' else 's'}"]


def _describe_differences(table: Table) -> list[str]:
    rows = [row for row in table.rows if row.difference]
    if not rows:
        base = next((row for row in table.rows if row.name == table.baseline), None)
        return [f"No differences: the baseline {table.baseline} has no result."] if base and not base.test else []
    line = f"Differences are to {table.baseline}, paired by seed"
    if any(row.reference for row in table.rows if row.test):
        line += "; a reference is not trained, so it is compared to every seed"
    if not any(row.trained and row.difference and row.difference.n > 1 for row in rows):
        return [f"{line}."]
    how = rule(table)
    test = {"sign-flip": "p is exact, by flipping signs", "paired-t": "p is that of a paired t-test"}[how.test]
    holm = f", after Holm's correction over {how.arms} rows" if how.arms > 1 else ""
    share = "" if how.chosen else f", {100 * SHARE:g} % of the baseline's"
    size = f"'no difference' is within {score(how.margin)} {table.metric.name}{share}"
    return [f"{line}. In brackets a 95 % interval; {test}{holm}; {size}."]


def _warn_of_few_seeds(table: Table) -> list[str]:
    """What so few seeds cannot show."""
    rows = [row for row in table.rows if row.trained]
    pairs = {row.name: row.difference.n for row in rows if row.difference}
    if not pairs and len(rows) > 1:
        pairs = {row.name: row.test.n for row in rows if row.test}
    how = rule(table)
    few = {name: n for name, n in pairs.items() if n < how.fewest}
    if not few or how.test != "sign-flip":
        return []
    [seeds] = _format_range(list(few.values()), "paired seed", str)
    least = max(how.arms, 1) * 2 / 2 ** max(few.values())
    after = f" over {how.arms} rows" if how.arms > 1 else ""
    line = f"An exact test on {seeds} cannot reach p < 0.05{after} (its smallest p is {min(least, 1):.3g}); "
    line += f"it takes {how.fewest}."
    return [line if len(few) == len(pairs) else f"{line} This holds for {', '.join(few)}."]


def _differs(table: Table, part: str) -> bool:
    """Whether two runs wrote different things into a part of their records."""
    written = [run.record[part] for row in table.rows for run in row.runs if run.record.get(part)]
    return any(other != written[0] for other in written)


def _explain_pareto(table: Table) -> list[str]:
    """What the mark in the table means."""
    if not (best := find_best(table)):
        return []
    named = [f"{COSTS[cost][0]} ({', '.join(names)})" for cost, names in best.items()]
    return [f"Pareto, the best {table.metric.name} that each cost buys: {'; '.join(named)}."]


def _name_replaced(row: Row) -> str | None:
    requested, effective = row.kernel
    if requested is None or not effective or effective == (requested,):
        return None
    return f"asked for {requested}, ran {' and '.join(effective)}"


def _group_names(rows: Iterable[Row], key: Callable[[Row], str | None]) -> dict[str, str]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        if (value := key(row)) is not None:
            groups.setdefault(value, []).append(row.name)
    return {value: ", ".join(names) for value, names in groups.items()}


def _list_makers(record) -> list[str]:
    """The distributions, or single files, that the parts of a run came from."""
    return [
        f"{part['distribution']} {part.get('version') or ''}".rstrip() if part.get("distribution") else str(source)
        for part in record.get("provenance") or ()
        if (source := part.get("distribution") or part.get("source") or part.get("plugin"))
    ]
