"""The first weights of a model; weights and the state of an unfinished run on disk, written whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_model, save_file, save_model
from torch import Tensor, nn

from zoo.faults import SpecError
from zoo.files import replace
from zoo.parts import OutputProjection

from .stack import Stack


def unwrap(model: nn.Module) -> nn.Module:
    """The module itself, where `torch.compile` stands around it."""
    return getattr(model, "_orig_mod", model)


def write_model(model: nn.Module, path: Path) -> None:
    """A tied weight is stored once."""
    replace(path, lambda temporary: save_model(unwrap(model), str(temporary)))


def read_model(model: nn.Module, path: Path) -> None:
    """Fill the model's own tensors. Raises `RuntimeError` if the file and the model do not hold the same names."""
    load_model(unwrap(model), str(path))


def list_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and kept buffer, a tied one once, under its first name."""
    seen: dict[int, str] = {}
    state = unwrap(model).state_dict(keep_vars=True)
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
    tensors: dict[str, Tensor] = {}
    numbers: dict[str, Any] = {}
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


@dataclass(frozen=True)
class TensorMatch:
    """Names of tensors: those that a model and a file share, those of the model alone and those of the file alone."""

    filled: list[str]
    drawn: list[str]
    unused: list[str]


def match_tensors(model: nn.Module, path: str | Path) -> TensorMatch:
    """The tensors of a file that a model has under the same name and in the same shape.

    Raises `SpecError` for a file that cannot be read, and for one that shares none.
    """
    own = list_tensors(model)
    with open_tensors(path) as file:
        names = list(file.keys())
        filled = [n for n in names if n in own and file.get_slice(n).get_shape() == list(own[n].shape)]
    if not filled:
        raise SpecError(f"{path} has none of the model's tensors; one of another library comes in by 'zoo import'")
    return TensorMatch(filled, [n for n in own if n not in filled], [n for n in names if n not in filled])


@torch.no_grad()
def load_matching(model: nn.Module, path: str | Path) -> list[str]:
    """Start from the tensors of a file wherever they fit; returns the names of those that keep their drawn values."""
    fit, own = match_tensors(model, path), list_tensors(model)
    with open_tensors(path) as file:
        for name in fit.filled:
            own[name].copy_(file.get_tensor(name))
    return fit.drawn


@contextmanager
def open_tensors(path: str | Path) -> Iterator[Any]:
    """A file of safetensors. Raises `SpecError`."""
    try:
        file = safe_open(str(path), framework="pt")
    except (SafetensorError, OSError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from error
    with file:
        yield file


def hash_file(path: str | Path) -> str:
    """The sha256 of a file, as text. Raises `SpecError`."""
    try:
        state = Path(path).stat()
        return hash_contents(str(path), state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error


@functools.cache
def hash_contents(path: str, changed: int, size: int) -> str:
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


@torch.no_grad()
def load_tensors(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put saved values into the model's own tensors, so that ties and the optimizer's references hold."""
    own = list_tensors(model)
    if own.keys() != tensors.keys():
        raise ValueError(f"the saved state is of another model: {sorted(own.keys() ^ tensors.keys())} differ")
    for name, x in own.items():
        x.copy_(tensors[name])


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Draw the weights anew, by one rule for every variant.

    Tables of width w: standard deviation 0.4 w^-0.5, so that at any width the scaled input has size 0.4 and so have
    the logits of a tied head. Linears: fan_in^-0.5, and those that write into the residual stream times the
    residual's gain, (2 L)^-0.5 unless it says otherwise; biases 0. Everything else keeps what its part gave it. Each
    tensor draws from a stream of its own, named by its path, so that two models agree wherever their shapes do.
    """
    gains: dict[nn.Module, float] = {
        module: layer.residual.gain or (2 * stack.depth) ** -0.5
        for stack in model.modules() if isinstance(stack, Stack)
        for layer in stack.layers
        for module in layer.modules() if isinstance(module, OutputProjection)
    }  # fmt: skip
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            std = 0.4 * module.embedding_dim**-0.5
        elif isinstance(module, nn.Linear):
            std = module.in_features**-0.5 * gains.get(module, 1.0)
            if module.bias is not None:
                module.bias.zero_()
        else:
            continue
        stream = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(stream[:7], "big"))
        module.weight.copy_(torch.empty(module.weight.shape).normal_(0.0, std, generator=generator))
