"""Documents over several comparisons: printed, and written beside the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from zoo.files import replace

from .forms import aggregate as gains
from .forms.claims import to_evidence as page
from .judging.across import average_tasks
from .pictures.canvas import NoPicture
from .pictures.gains import gain_picture
from .table import Table


def write_text(text: str, path: Path) -> None:
    """Write `text`; half of a surrogate pair, as a name may hold it, becomes its escape."""
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True)
class Overview:
    """What is printed, and by suffix the files to write: their text, or what draws them and may raise `NoPicture`."""

    shown: object
    files: Mapping[str, str | Callable[[Path], None]] = field(default_factory=dict)

    def write(self, stem: Path, say: Callable[[str], None]) -> list[Path]:
        """Write `stem` with each suffix, each file whole or not at all; `say` gets why there is no picture."""
        written = []
        for suffix, body in self.files.items():
            path = stem.with_name(f"{stem.name}.{suffix}")
            try:
                replace(path, body if callable(body) else partial(write_text, body))
                written.append(path)
            except NoPicture as reason:
                path.unlink(missing_ok=True)
                say(str(reason))
        return written


def aggregate(tables: Iterable[Table]) -> Overview:
    """One table over comparisons on several tasks. Raises `SpecError` where they cannot be averaged."""
    found = average_tasks(tables)
    texts = {"md": gains.aggregate_to_markdown(found), "json": gains.aggregate_to_json(found)}
    return Overview(gains.AggregateTerminal(found), {**texts, "png": partial(gain_picture, found)})


def evidence(tables: Iterable[Table]) -> Overview:
    """The claims of several comparisons on one page. Raises `SpecError` where nothing was claimed."""
    text = page(tables)
    return Overview(text, {"md": text})


OVERVIEWS: dict[str, Callable[[Iterable[Table]], Overview]] = {"claims": evidence, "aggregate": aggregate}
"""Forms that are one document over several comparisons; each raises `SpecError` for tables that make none."""
