"""Weights and the state of an unfinished run on disk: safetensors, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_model, save_file, save_model
from torch import Tensor, nn

from .runs import replace


def plain(model: nn.Module) -> nn.Module:
    """The module itself, where `torch.compile` stands around it."""
    return getattr(model, "_orig_mod", model)


def write_model(model: nn.Module, path: Path) -> None:
    """A tied weight is stored once."""
    replace(path, lambda temporary: save_model(plain(model), str(temporary)))


def read_model(model: nn.Module, path: Path) -> None:
    """Fill the model's own tensors. Raises `RuntimeError` if the file and the model do not hold the same names."""
    load_model(plain(model), str(path))


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and kept buffer, a tied one once, under its first name."""
    seen: dict[int, str] = {}
    state = plain(model).state_dict(keep_vars=True)
    return {name: x for name, x in state.items() if seen.setdefault(id(x), name) == name}


def write_state(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Tensors, and plain facts in the same file, so that both change at once."""
    kept = {name: x.detach().contiguous() for name, x in tensors.items()}
    metadata = {"facts": json.dumps(facts, default=lambda scalar: scalar.item())}
    replace(path, lambda temporary: save_file(kept, str(temporary), metadata=metadata))


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(str(path), framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["facts"])


def flatten(optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What an optimizer remembers: its tensors, and its other facts. Raises `TypeError` for what neither can hold."""
    given = optimizer.state_dict()
    tensors, numbers = {}, {}
    for index, state in given["state"].items():
        for name, value in state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{index}.{name}"] = value
    return tensors, {"numbers": numbers, "groups": given["param_groups"]}


def unflatten(optimizer, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**facts["numbers"], **tensors}.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": facts["groups"]})


@torch.no_grad()
def fill(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put saved values into the model's own tensors, so that ties and the optimizer's references hold."""
    own = own_tensors(model)
    if own.keys() != tensors.keys():
        raise ValueError(f"the saved state is of another model: {sorted(own.keys() ^ tensors.keys())} differ")
    for name, x in own.items():
        x.copy_(tensors[name])
