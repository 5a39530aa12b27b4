"""One document over several comparisons: printed, and written beside the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from zoo.runs import replace

from .canvas import NoPicture


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
            fill = body if callable(body) else lambda new, body=body: new.write_bytes(body.encode("utf-8", "replace"))
            try:
                replace(path, fill)
                written.append(path)
            except NoPicture as reason:
                path.unlink(missing_ok=True)
                say(str(reason))
        return written
