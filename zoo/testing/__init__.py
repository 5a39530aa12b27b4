"""What any model must do, whatever its parts: checks for the zoo's own variants and for a plugin's.

`check_variant("ffn", "my-ffn", width=32)` puts a variant among different partners, `check_model({"ffn": "my-ffn"})`
looks at one model. Both raise `AssertionError` with a paragraph for each check that failed.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..builder import build
from ..faults import SpecError
from ..library import open_library
from ..spec import MODEL_SLOTS
from .case import SHAPES, Case
from .checks import CHECKS

__all__ = ["CHECKS", "SHAPES", "Case", "Result", "check_model", "check_variant"]


@dataclass(frozen=True)
class Result:
    """One check that a model passed, or why it does not apply to it."""

    model: str
    check: str
    skipped: str = ""


def check_model(model, shape=None, *, without: Collection[str] = (), registry=None) -> list[Result]:
    """Run every check, except those named in `without`, on the model that `model` and `shape` declare, as in
    `zoo.build`.

    Raises `AssertionError` with a paragraph for each check that failed, and `SpecError` if the model cannot be.
    """
    case = Case.of(model, shape, registry)
    results, failed = [], []
    for name, check in CHECKS.items():
        if name in without:
            continue
        try:
            results.append(Result(json.dumps(case.spec), name, check(case) or ""))
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:
            build(model, shape=case.shape, registry=registry)  # where parts do not fit, this says so
            error.add_note(f"while checking '{name}' of {json.dumps(case.spec)}, shape {json.dumps(case.shape)}")
            raise
    if failed:
        raise AssertionError("\n\n".join(failed))
    return results


def check_variant(slot: str, name: str, *, registry=None, **options: Any) -> list[Result]:
    """Put a variant, with these options, into each model of the zoo's own `registry.yaml` and check what comes out.

    A partner that refuses it is left out. Raises `AssertionError` if a check fails or all partners refuse it, and
    `ValueError` for a slot that no model has.
    """
    if slot not in MODEL_SLOTS:
        raise ValueError(f"'{slot}' is no slot of a model; these are: {', '.join(MODEL_SLOTS)}")
    library = open_library(registry=registry)
    part = {"name": name, **options} if options else name
    results, refusals = [], []
    for i, (partner, node) in enumerate(library.section("models").items()):
        spec = library.expand("model", node, library.reader()).plain() | {slot: part}
        try:
            results += check_model(spec, [*SHAPES.values()][i % len(SHAPES)], registry=registry)
        except SpecError as error:
            refusals.append(f"{partner}: {error}")
    if not results:
        raise AssertionError("\n".join([f"No model takes {slot} '{name}'.", *refusals]))
    return results
