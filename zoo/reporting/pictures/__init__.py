"""The pictures beside a report: which there are, when each says something, and what it is called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from zoo.files import replace

from ..judging.bars import group_bars
from ..judging.curves import collect_curves
from ..judging.pareto import find_fronts
from ..judging.probes import collect_probes
from ..judging.trials import collect_trials
from ..table import Table
from .bars import bar_picture
from .canvas import NoPicture
from .curves import curve_picture
from .front import front_picture
from .lines import probe_picture, sensitivity_picture


class Picture(NamedTuple):
    """How it is drawn into a file, whether a table has what it shows, and its caption."""

    draw: Callable[[Table, Path], None]
    applies: Callable[[Table], object]
    caption: str


PICTURES = {
    "effects.png": Picture(bar_picture, group_bars, "Differences with their intervals"),
    "curves.png": Picture(curve_picture, lambda table: collect_curves(table)[1], "Curves on dev"),
    "probes.png": Picture(probe_picture, collect_probes, "Scores on further splits"),
    "sensitivity.png": Picture(sensitivity_picture, collect_trials, "Scores on dev by what was tried"),
    "pareto.png": Picture(front_picture, find_fronts, "Quality against cost"),
}


def draw(table: Table, folder: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Draw what applies and remove what does not; returns captions by file.

    `say` gets once why a picture that applies is not there.
    """
    drawn: dict[str, str] = {}
    reasons: list[str] = []
    for name, each in PICTURES.items():
        try:
            if not each.applies(table):
                (folder / name).unlink(missing_ok=True)
                continue
            replace(folder / name, partial(each.draw, table))
            drawn[name] = each.caption
        except NoPicture as error:
            reasons.append(str(error))
        except Exception as error:
            reasons.append(f"{name} could not be drawn: {type(error).__name__}: {error}")
        if name not in drawn:
            (folder / name).unlink(missing_ok=True)
    for reason in dict.fromkeys(reasons):
        say(reason)
    return drawn
