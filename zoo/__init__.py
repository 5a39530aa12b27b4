"""Transformer Zoo: any combination of Transformer parts, declared, trained and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.faults import Fault, SpecError
from zoo.hooks import API, Variant, hookimpl

if TYPE_CHECKING:
    from zoo.execute.stages import load
    from zoo.model.builder import build

__version__ = "0.1.0"
__all__ = ["API", "Fault", "SpecError", "Variant", "build", "hookimpl", "load"]


def __getattr__(name: str):
    """`build` and `load` need torch, so they are imported when they are first asked for."""
    if name == "build":
        from zoo.model.builder import build

        return build
    if name == "load":
        from zoo.execute.stages import load

        return load
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")
