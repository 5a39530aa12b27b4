"""Checks of what is left of a model in a file and in a copy.

B batch, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

import copy
import json

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from zoo.declare import yaml as yaml_file
from zoo.model.builder import build_on_meta, drop_unused_slots

from .model_case import ModelCase, build_model


@torch.no_grad()
def round_trip(case: ModelCase) -> None:
    """All that a model is lies in its state dict."""
    other = case.build(seed=1)
    other.load_state_dict(case.model.state_dict())
    for source, aligned in case.passes():
        ours, theirs = (model(source, case.target, aligned=aligned) for model in (case.model, other))
        case.check_equal(theirs, ours, "The weights were loaded into a model of another seed", "the logits", 0.0)


@torch.no_grad()
def copies(case: ModelCase) -> None:
    """A copy, and a copy in another dtype, tie the same parameters, and share nothing with the original."""
    ties, before = find_ties(build_model(case.library, case.spec, case.shape)), case.model(case.source, case.target)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        twin = copy.deepcopy(case.model).to(dtype)
        changed = f"The model was copied to {dtype}"
        if find_ties(twin) != ties:
            case.fail(
                f"{changed}: these names should stand for one parameter, {ties}, and these do, {find_ties(twin)}."
            )
        after = twin(case.source, case.target)
        if dtype == torch.float64:
            case.check_equal(after, before, changed, "the logits", 0.0)
        elif after.dtype != dtype or (before.abs().max() < torch.finfo(dtype).max and not after.isfinite().all()):
            case.fail(f"{changed}: all logits should be finite and of that dtype.")
        for p in twin.parameters():
            p.zero_()
    case.check_equal(
        case.model(case.source, case.target), before, "A copy was changed", "the logits of the original", 0.0
    )


def find_ties(model: nn.Module) -> list[list[str]]:
    """Groups of names that stand for one parameter."""
    names: dict[int, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return sorted(group for group in names.values() if len(group) > 1)


def meta(case: ModelCase) -> None:
    """On the meta device the model has the same parameters, and nothing is stored at all."""
    specs = case.read_specs()
    stored: list[str] = []
    with StoredTensors(stored):
        found = describe_tensors(build_on_meta(*specs, case.library.registry))
    expected = describe_tensors(build_model(case.library, case.spec, case.shape))
    changed = "The model was built on the meta device"
    if found != expected:
        differ = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        told = "; ".join(f"{name} should be {expected.get(name)} and is {found.get(name)}" for name in differ)
        case.fail(f"{changed}: its parameters and buffers should have stayed equal. {told}.")
    if stored:
        case.fail(f"{changed}: no tensor should have been stored, and these operations did: {', '.join(stored)}.")


def describe_tensors(model: nn.Module) -> dict[str, str]:
    """Names, shapes and types of all that a model holds; of tied parameters the first."""
    held = [*model.named_parameters(), *model.named_buffers()]
    return {name: f"{list(x.shape)} {x.dtype}".replace("torch.", "") for name, x in held}


class StoredTensors(TorchDispatchMode):
    """Keeps the name of each operation that makes a tensor with contents."""

    def __init__(self, names: list[str]):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor) and x.device.type != "meta" and x.numel()]
        if made and func.__name__ not in self.names:
            self.names.append(func.__name__)
        return out


def yaml(case: ModelCase) -> None:
    """The model, and the model with every default filled in, are the same after YAML: the same parts and weights."""
    spec, shape = case.read_specs()
    whole = drop_unused_slots(spec, shape, case.library.registry, "cpu").plain()
    weights = build_model(case.library, case.spec, case.shape).state_dict()
    for written, what in ((case.spec, "The model"), (whole, "The model with its defaults filled in")):
        text = yaml_file.dump(dict(written))
        again, changed = yaml_file.load(text).value, f"{what} was written to YAML and read"
        if again != written:
            case.fail(f"{changed}: it should be {json.dumps(written)} and is {json.dumps(again)}.")
        read = case.read_specs(again)[0]
        if read != spec:
            case.fail(f"{changed}: it should be {json.dumps(spec.plain())} and is {json.dumps(read.plain())}.")
        for name, x in build_model(case.library, again, case.shape).state_dict().items():
            case.check_equal(x, weights[name], changed, name, 0.0)
