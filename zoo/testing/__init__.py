"""What any variant must do: checks for the zoo's own variants and for a plugin's.

`check_variant("ffn", "my-ffn", width=32)` puts a variant among different partners, `check_model({"ffn": "my-ffn"})`
looks at one model. Both raise `AssertionError` with a paragraph for each check that failed. `SUITES` says which checks
a slot has, and `test_my_ffn = conformance("ffn:my-ffn")` makes a test of pytest of each.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from zoo.declare.library import open_library
from zoo.model.builder import build

from .harness import FAILED, PARTNERS, PASSED, SKIPPED, Result, Subject, examine
from .model_case import SHAPES, ModelCase
from .models import CHECKS
from .selection import conformance, select_variants
from .suites import SUITES, load_suite

__all__ = [
    "CHECKS", "SHAPES", "SUITES", "ModelCase", "Result", "Subject", "check_model", "check_variant", "conformance",
    "examine", "select_variants",
]  # fmt: skip


def check_model(model, shape=None, *, without: Collection[str] = (), registry=None) -> list[Result]:
    """Run every check that takes little, except those named in `without`, on the model that `model` and `shape`
    declare, as in `zoo.build`.

    Raises `AssertionError` with a paragraph for each check that failed, and `SpecError` if the model cannot be.
    """
    case = ModelCase.of(model, shape, registry)
    results, failed = [], []
    for name, check in CHECKS.items():
        if name in without:
            continue
        try:
            reason = check(case) or ""
            results.append(Result(json.dumps(case.spec), name, SKIPPED if reason else PASSED, reason))
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:
            build(model, shape=case.shape, registry=registry)  # where parts do not fit, this says so
            error.add_note(f"while checking '{name}' of {case.label}")
            raise
    if failed:
        raise AssertionError("\n\n".join(failed))
    return results


def check_variant(
    slot: str, name: str, *, registry=None, partners: int = PARTNERS, only: Collection[str] = (), **options: Any
) -> list[Result]:
    """Put a variant, with these options, among `partners` different partners and check what comes out.

    Raises `AssertionError` with a paragraph for each check that failed, and `SpecError` for a slot or a variant that
    there is not.
    """
    suite, library = load_suite(slot), open_library(registry=registry)
    library.registry.find(slot, name)
    results = list(examine(Subject(slot, name, options, library, partners), suite, only))
    if failed := [f"{r.check}: {r.reason}" for r in results if r.status == FAILED]:
        raise AssertionError("\n\n".join(failed))
    return results
