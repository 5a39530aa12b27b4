"""The one hook that a plugin implements and the one record that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pluggy

API = 1
"""Version of the plugin contract. A plugin module may state the one it was written for as `zoo_api`."""


class Slot(NamedTuple):
    """A place for a variant: what it is for, what a constructor may ask for by name, and which suite of `zoo.testing`
    checks it. A request that is a slot arrives as a part or its factory.
    """

    role: str
    asks_for: str = ""
    suite: str = "models"

    @property
    def requests(self) -> frozenset[str]:
        return frozenset(self.asks_for.split())


SLOTS = {
    "embedding": Slot("token ids to vectors, and what happens to them before the first layer", "shape norm table"),
    "position": Slot("how a token knows where it stands", "shape"),
    "norm": Slot("normalisation of the residual stream", "shape dim"),
    "residual": Slot("where the norms stand and how a layer's steps join", "shape norm layer n_steps"),
    "attention": Slot("how heads are projected, shared and joined; any token mixer", "shape norm kernel layer"),
    "kernel": Slot("how scores become outputs", "n_heads head_dim needs"),
    "ffn": Slot("the step that treats each token alone", "shape norm layer"),
    "head": Slot("last states to logits", "shape norm table"),
    "architecture": Slot("which stacks there are and what they read", "parts"),
    "task": Slot("what is learned and how it is scored", "shape data tokenizer", suite="tasks"),
    "metric": Slot("what predictions are scored by", suite="metrics"),
    "data": Slot("where the examples come from", suite="data"),
    "tokenizer": Slot("text to ids and back", suite="tokenizers"),
    "optimizer": Slot("how gradients change the weights", "params", suite="optimizers"),
    "schedule": Slot("how the learning rate moves", "steps warmup", suite="schedules"),
    "reference": Slot("a row of the table that no gradient trained", suite="references"),
    "family": Slot("how another library names the same model", suite="families"),
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
