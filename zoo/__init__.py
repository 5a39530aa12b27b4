"""Transformer Zoo: any combination of Transformer parts, declared, trained and compared."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from zoo.faults import Fault, SpecError
from zoo.hooks import API, Variant, hookimpl

if TYPE_CHECKING:
    from zoo.api.catalogue import list_variants as list
    from zoo.api.catalogue import show as show
    from zoo.api.comparisons import plan as plan
    from zoo.api.comparisons import run as run
    from zoo.api.comparisons import validate as validate
    from zoo.api.loaded import load as load
    from zoo.api.results import report as report
    from zoo.model.builder import build as build

__version__ = "0.1.0"

LAZY = {
    "build": "zoo.model.builder:build",
    "list": "zoo.api.catalogue:list_variants",
    "load": "zoo.api.loaded:load",
    "plan": "zoo.api.comparisons:plan",
    "report": "zoo.api.results:report",
    "run": "zoo.api.comparisons:run",
    "show": "zoo.api.catalogue:show",
    "validate": "zoo.api.comparisons:validate",
}
"""Functions that are imported when they are first asked for: most need torch, which takes seconds to import."""

__all__ = [
    "API", "Fault", "SpecError", "Variant", "__version__", "build", "hookimpl", "list", "load", "plan", "report",
    "run", "show", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'zoo' has no attribute {name!r}")
    module, _, function = LAZY[name].partition(":")
    found = globals()[name] = getattr(importlib.import_module(module), function)
    return found


def __dir__() -> tuple[str, ...]:
    return tuple(__all__)
