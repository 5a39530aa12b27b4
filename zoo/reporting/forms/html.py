"""The report as one page that needs nothing else: no network, and no script but for sorting and filtering."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from typing import Any

from zoo import numbers

from ..judging import speed
from ..judging.bars import group_bars
from ..judging.effects import describe_effect, judge_effects
from ..judging.gate import Gate
from ..judging.method import collect_method
from ..judging.verdict import describe_rows
from ..table import Row, Run, Table
from ..text import shorten, spell
from . import claims
from .caption import caption, footnotes, list_reasons
from .columns import Column, SmallTable, columns
from .markup import Markup, join, tag
from .plots import curves, differences, probes, quality_and_cost, sensitivity
from .small_tables import effect_tables

FILTERED = 5  # rows from which on a filter is of use


def to_html(table: Table, gate: Gate | None = None) -> str:
    """The whole page. Every name in it is escaped, and its policy lets nothing run or load but what it holds."""
    style, script = asset("page.css"), asset("page.js")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", table.title),
        tag("style", style),
    )
    return (
        f"<!doctype html>\n{tag('html', head, tag('body', page_body(table, gate), tag('script', script)), lang='en')}\n"
    )


def asset(name: str) -> Markup:
    """A file beside this one."""
    return Markup(resources.files(__package__).joinpath(name).read_text("utf-8"))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_body(table: Table, gate: Gate | None) -> Markup:
    sections = [
        _section("Verdict", verdict_section(table, gate)),
        _section("Claims", claims_section(table)),
        _section("Results", results_section(table)),
        _section("Differences", effect_plots(table)),
        _section("Training", [part for part in [curves(table)] if part]),
        _section("Further splits", [part for part in [probes(table)] if part]),
        _section("Sensitivity", sensitivity(table)),
        _section("Quality and cost", quality_and_cost(table)),
        _section("Method", method_section(table)),
        _section("Every run", [every_run(table)]),
    ]
    parts = [part for part in sections if part]
    return tag("main", tag("h1", table.title), *parts)


def _section(name: str, parts: Sequence[Any]) -> Markup | None:
    if not parts:
        return None
    place = f"part-{name.lower().replace(' ', '-')}"
    return tag("section", tag("h2", name, id=place), *parts, aria_labelledby=place)


def _list(lines: Iterable[str], kind: str | None = None) -> Markup | None:
    items = [tag("li", line) for line in lines]
    return tag("ul", *items, class_=kind) if items else None


def verdict_section(table: Table, gate: Gate | None) -> list[Markup]:
    """A sentence for each row, then one for each slot."""
    found, slots = describe_rows(table), judge_effects(table)
    lines = _list(found, "verdicts") or tag("p", "Nothing has been compared yet.")
    named = {"Each slot, averaged over the others": slots.main, "Two slots together": slots.interactions}
    parts = [*(tag("p", tag("strong", line)) for line in (gate.lines if gate else [])), lines]
    for name, some in named.items():
        said = _list((describe_effect(effect, table.metric.name) for effect in some), "verdicts")
        parts += [tag("h3", name), said] if said else []
    return parts


def results_section(table: Table) -> list[Markup]:
    """The table, what matters most on the left, where a narrow screen begins, and the small tables of effects."""
    parts = [tag("p", " ".join(caption(table)))]
    chosen = sorted(columns(table), key=lambda column: column.priority)
    parts.append(grid("results", f"{table.metric.name} on test, the best first", chosen, table.rows))
    if said := _list(map(shorten, list_reasons(table)), "faults"):
        parts.append(said)
    parts += [small_grid(f"effects-{number}", small) for number, small in enumerate(effect_tables(table))]
    notes = _list(footnotes(table))
    return parts + ([notes] if notes else [])


def claims_section(table: Table) -> list[Markup]:
    """What was said of the rows, and what was found."""
    if (small := claims.make_claims_table(table)) is None:
        return []
    counted, *rest = small.lines
    return [
        tag("p", tag("strong", counted), f" {' '.join(rest)}"),
        small_grid("claims", replace(small, title="What was claimed, and what came out")),
    ]


def small_grid(name: str, small: SmallTable) -> Markup:
    return grid(name, small.title, sorted(small.columns, key=lambda column: column.priority), small.rows)


def grid(name: str, title: str, chosen: Sequence[Column], rows: Sequence[Any]) -> Markup:
    """A table that sorts by a click on its heads; where a column stands for numbers, each cell says which."""
    heads = [
        tag("th", tag("button", column.head, type="button"), scope="col", class_=_side(column)) for column in chosen
    ]
    body = [_line(chosen, row) for row in rows]
    table = tag("table", tag("caption", title, id=f"{name}-title"), tag("thead", tag("tr", *heads)),
                tag("tbody", *body), id=name)  # fmt: skip
    scroll = tag("div", table, class_="scroll", role="region", tabindex="0", aria_labelledby=f"{name}-title")
    return join([_filter(name, len(rows)), scroll])


def _filter(name: str, n_rows: int) -> Markup | None:
    """Hidden until the script that it needs has come."""
    if n_rows < FILTERED:
        return None
    field = tag("input", type="search", id=f"{name}-filter", data_filters=name, autocomplete="off")
    label = tag("label", "Show rows with ", field)
    return tag("p", label, " ", tag("output", "", for_=f"{name}-filter"), class_="filter", hidden=True)


def _side(column: Column) -> str | None:
    return "number" if column.right else "words" if column.breaks else None


def _line(chosen: Sequence[Column], row: Any) -> Markup:
    first, *rest = chosen
    cells = [tag("td", column.text(row), class_=_side(column), data_value=_value(column, row)) for column in rest]
    kind = None if not isinstance(row, Row) or row.trained else "reference" if row.test else "lost"
    return tag("tr", tag("th", first.text(row), scope="row"), *cells, class_=kind)


def _value(column: Column, row: Any) -> str | None:
    value = column.value and column.value(row)
    return None if value is None else repr(value)


def effect_plots(table: Table) -> list[Markup]:
    """Rows against the baseline, then slots."""
    metric = table.metric
    out: list[Markup] = []
    ways = (
        f"{metric.name}, {metric.better} is better. A thick dot is the mean, filled where the verdict is better or "
        "worse; a small dot is one seed, the line a 95 % interval; the shaded band is what counts as no difference."
    )
    for name, drawn in group_bars(table).items():
        out += [join([tag("h3", name), differences(table, drawn)])]
    return [tag("p", ways, class_="note"), *out] if out else []


def method_section(table: Table) -> list[Markup]:
    """How it came about, and how to do it again."""
    facts = collect_method(table)
    parts = [
        _facts(_method(table, facts)),
        tag("h3", "To reproduce it"),
        tag("pre", *_code(facts["commands"]), tabindex="0"),
    ]
    for part, values in facts["settings"].items():
        rows = [(tag("code", path), tag("code", spell(value))) for path, value in values.items()]
        parts.append(tag("details", tag("summary", f"Baseline: {part}"), _pairs(f"Baseline: {part}", rows)))
    makers = [(_name_plugin(plugin), ", ".join(plugin["parts"])) for plugin in facts["plugins"]]
    return parts + (
        [tag("h3", "Variants and where they come from"), _pairs("Variants by package", makers)] if makers else []
    )


def _code(lines: Sequence[str]) -> list[Markup]:
    return [Markup(f"{tag('code', line)}\n") for line in lines]


def _method(table: Table, facts: dict[str, Any]) -> dict[str, str]:
    train = facts["settings"].get("train", {})
    budget = [
        f"{key.replace('_', ' ')} {train[key]}" for key in ("steps", "tokens", "batch_size", "lr") if train.get(key)
    ]
    texts = [", ".join(_text(text)) for text in facts["text"]]
    return {
        "Task": table.task,
        "Selection": f"weights of the {table.select}; they alone are scored on test",
        "Baseline": table.baseline or "",
        "Test": f"{table.test}, two-sided, corrected by Holm over the rows",
        "Seeds": ", ".join(map(str, facts["seeds"])),
        "Budget": ", ".join(budget),
        "Text": "; ".join(texts),
        "Machine": "; ".join(_spell_facts(machine) for machine in facts["machines"]),
        "Device": ", ".join(facts["devices"]),
        "Decode": speed.describe_decode(table),
        "Versions": "; ".join(_spell_facts(versions) for versions in facts["versions"]),
    }


def _text(text: dict[str, Any]) -> list[str]:
    counts = {"tokens to train on": text["train_tokens"], "in the vocabulary": text["vocab_size"]}
    told = [f"{numbers.count(n)} {what}" for what, n in counts.items() if n]
    return [f"sha256 {text['sha256']}", *told, *(text["notes"] or ())]


def _spell_facts(facts: dict[str, Any]) -> str:
    read = {"memory_bytes": lambda n: f"memory {numbers.size(n)}", "cores": lambda n: f"{n} cores"}
    return ", ".join(read.get(key, lambda value, key=key: f"{key} {value}")(value) for key, value in facts.items())


def _facts(facts: dict[str, str]) -> Markup:
    return tag("dl", *(join([tag("dt", name), tag("dd", text)]) for name, text in facts.items() if text))


def _name_plugin(plugin: dict[str, Any]) -> str:
    name = plugin["distribution"] or plugin["source"] or plugin["plugin"] or "unknown"
    return f"{name} {plugin['version'] or ''}".rstrip()


def _pairs(title: str, rows: Iterable[tuple[Any, Any]]) -> Markup:
    lines = [tag("tr", tag("th", key, scope="row"), tag("td", value)) for key, value in rows]
    return tag("table", tag("caption", title), tag("tbody", *lines), class_="pairs")


RUN = (
    Column("variant", lambda pair: pair[0].name, 1, right=False),
    Column("seed", lambda pair: str(pair[1].seed), 2, value=lambda pair: pair[1].seed),
    Column("status", lambda pair: pair[1].outcome, 3, right=False),
    Column("seconds", lambda pair: numbers.rate(_seconds(pair[1])), 4, value=lambda pair: _seconds(pair[1])),
    Column("folder", lambda pair: pair[1].id, 5, right=False),
)
"""The columns that every table of single runs has; a pair is a row and one of its runs."""


def _seconds(run: Run) -> float | None:
    return run.fact("train", "seconds")


def every_run(table: Table) -> Markup | None:
    pairs = [(row, run) for row in table.rows for run in row.runs]
    if not pairs:
        return None
    splits = [_split(table, split) for split in ("dev", "test", *table.probes)]
    chosen = [*RUN[:3], *splits, *RUN[3:]]
    chosen = [column for column in chosen if any(column.text(pair) for pair in pairs)]
    summary = tag("summary", f"{len(pairs)} runs, one by one")
    return tag("details", summary, grid("runs", f"{table.metric.name} of every run", chosen, pairs))


def _split(table: Table, split: str) -> Column:
    def value(pair: tuple[Row, Run]) -> float | None:
        scores = pair[1].dev if split == "dev" else pair[1].scores(split)
        return scores.get(table.metric.name)

    def text(pair: tuple[Row, Run]) -> str:
        return "" if (found := value(pair)) is None else numbers.score(found)

    return Column(f"{split} {table.metric.name}", text, 4, value=value)
