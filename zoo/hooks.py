"""The one hook that a plugin implements and the one record that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pluggy

API = 1
"""Version of the plugin contract. A plugin module may state the one it was written for as `zoo_api`."""

SLOTS = {
    "embedding": "token ids to vectors, and what happens to them before the first layer",
    "position": "how a token knows where it stands",
    "norm": "normalisation of the residual stream",
    "residual": "where the norms stand and how a layer's steps join",
    "attention": "how heads are projected, shared and joined; any token mixer",
    "kernel": "how scores become outputs",
    "ffn": "the step that treats each token alone",
    "head": "last states to logits",
    "architecture": "which stacks there are and what they read",
    "task": "what is learned and how it is scored",
    "metric": "what predictions are scored by",
    "data": "where the examples come from",
    "tokenizer": "text to ids and back",
    "optimizer": "how gradients change the weights",
    "schedule": "how the learning rate moves",
    "reference": "a row of the table that no gradient trained",
    "family": "how another library names the same model",
}

hookspec = pluggy.HookspecMarker("zoo")
hookimpl = pluggy.HookimplMarker("zoo")


@dataclass(frozen=True)
class Variant:
    """One choice for one slot.

    `target` is a class or function, or `"module:name"`, which is imported only when the variant is used.
    `fixed` holds the options that this name settles, so that one class can serve under several names.
    """

    slot: str
    name: str
    target: str | Callable[..., Any]
    summary: str = ""
    paper: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)


@hookspec
def zoo_variants() -> Iterable[Variant]:
    """Return the variants that this plugin offers."""
    raise NotImplementedError
