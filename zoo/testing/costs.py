"""Checks of what is said of a model that is not built yet: the numbers of `zoo plan`."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn

from zoo.model.builder import build_on_meta
from zoo.model.cost import count_cache_bytes, count_flops, count_flops_per_token, count_kv_bytes_per_token
from zoo.parts import Architecture

from .model_case import ModelCase, build_model


def counts(case: ModelCase) -> None:
    """Parameters, FLOPs per token and the cache's bytes per token are those of a model with weights and a real pass."""
    planned, real = (
        build_on_meta(*case.read_specs(), case.library.registry),
        build_model(case.library, case.spec, case.shape).eval(),
    )
    stored = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() // p.itemsize for p in real.parameters()}
    compare(case, "parameters", sum(p.numel() for p in planned.parameters()), sum(stored.values()))
    source, target = case.source[:1], case.target[:1]
    task = SimpleNamespace(source_len=source.shape[1], target_len=target.shape[1], aligned=False)
    per_token, length = count_flops_per_token(planned, task), task.target_len
    compare(case, "FLOPs per token", per_token, round(count_flops(real, source, target) / length))
    least = round(count_linear_flops(real, source, target) / length)
    if per_token < least:
        text = f"they should be at least the {least:,} of the linear layers, and are {per_token:,}"
        case.fail(f"FLOPs per token were counted before weights were made: {text}.")
    if real.autoregressive:
        few, many = (count_cache_bytes(real, source, target, room) for room in (1, 2))
        compare(case, "bytes that a token takes in the cache", count_kv_bytes_per_token(planned, task), many - few)


def compare(case: ModelCase, what: str, planned: int | None, real: int) -> None:
    if planned != real:
        case.fail(
            f"The {what} were counted before weights were made: they should be {real:,} and are {planned or 0:,}."
        )


@torch.no_grad()
def count_linear_flops(model: Architecture, source: Tensor, target: Tensor) -> int:
    """FLOPs of the calls of `nn.Linear`, by their formula."""
    seen: list[int] = []
    own = [m for m in model.modules() if isinstance(m, nn.Linear)]
    hooks = [m.register_forward_hook(lambda m, _, y: seen.append(2 * y.numel() * m.in_features)) for m in own]
    model(source, target)
    for hook in hooks:
        hook.remove()
    return sum(seen)
