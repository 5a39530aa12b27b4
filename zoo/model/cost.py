"""What a model costs, counted without weights.

B batch, S source tokens, T target tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from zoo.parts import Architecture, AttentionContext, Cache, Kernel, Mask


@dataclass(frozen=True)
class Cost:
    """Counts of one model on one task.

    `parameters`: elements, tied ones once. `flops_per_token`: of a forward pass over the longest rows, a multiply-add
    counted as two, of scores those that the mask lets through, per target token. `kv_bytes_per_token`: what the cache
    grows by per token and row in float32 (None where nothing is cached). `memory_bytes`: weights, gradients, two
    moments and the activations that a training step keeps, in float32. `kernels`: what really computes the attention.
    """

    parameters: int
    flops_per_token: int
    kv_bytes_per_token: int | None
    memory_bytes: int
    kernels: tuple[str, ...]


def count_cost(model: Architecture, task, batch_size: int = 1) -> Cost:
    """The cost of a model on the meta device; see `zoo.model.builder.build_on_meta`."""
    parameters = sum(p.numel() for p in model.parameters())
    return Cost(
        parameters,
        count_flops_per_token(model, task),
        count_kv_bytes_per_token(model, task),
        16 * parameters + count_activation_bytes(model, task, batch_size),
        tuple(sorted({m.effective for m in model.modules() if isinstance(m, Kernel)})),
    )


def make_rows(task, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Source [B, S] and target [B, T] of the task's longest rows, without contents."""
    source, target = (torch.empty(size, n, dtype=torch.long, device="meta") for n in (task.source_len, task.target_len))
    return source, target


def count_flops_per_token(model: Architecture, task) -> int:
    return round(count_flops(model, *make_rows(task, 1), task.aligned) / max(task.target_len, 1))


def scale_to_step(per_token: int, settings, task) -> int:
    """FLOPs of a training step: three forward passes of all its rows, since a backward pass is two."""
    return 3 * per_token * task.target_len * settings.batch_size * settings.accumulate


@torch.no_grad()
def count_flops(model: Architecture, source: torch.Tensor | None, target: torch.Tensor, aligned: bool = False) -> int:
    """FLOPs of a forward pass, what modules say of themselves included.

    Of the scores of a kernel, those count that the mask lets through, whatever is computed to be thrown away: a model
    costs the same whichever kernel computes it, and a window makes it cheaper.
    """
    more: list[int] = []
    before: list[int] = []
    own = [m for m in model.modules() if hasattr(m, "uncounted")]
    hooks = [m.register_forward_hook(lambda m, x, _: more.append(m.uncounted(x[0].shape[1]))) for m in own]
    with FlopCounterMode(display=False) as counter:

        def begin(kernel, given) -> None:
            before.append(counter.get_total_flops())

        def end(kernel, given, out) -> None:
            more.append(min(0, count_score_flops(*given) - (counter.get_total_flops() - before.pop())))

        for kernel in (m for m in model.modules() if isinstance(m, Kernel)):
            hooks += [kernel.register_forward_pre_hook(begin), kernel.register_forward_hook(end)]
        model(source, target, aligned=aligned)
    for hook in hooks:
        hook.remove()
    return counter.get_total_flops() + sum(more)


def count_score_flops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ctx: AttentionContext) -> int:
    """FLOPs of the scores and sums that the mask asks for: q [B, H, T, K], k [B, G, S, K], v [B, G, S, W]."""
    seen = count_pairs(ctx.mask, q.shape[2], k.shape[2])
    return 2 * q.shape[0] * q.shape[1] * seen * (q.shape[3] + v.shape[3])


def count_pairs(mask: Mask, queries: int, keys: int) -> int:
    """How many keys all queries of a row without pads may look at; with a prefix, all of them."""
    if mask.prefix is not None:
        return queries * keys
    reach = mask.window or keys + queries
    at = range(keys - queries, keys)
    last = [q if mask.causal else min(keys - 1, q + reach - 1) for q in at]
    return sum(max(0, end - max(0, q - reach + 1) + 1) for q, end in zip(at, last, strict=True))


def count_kv_bytes_per_token(model: Architecture, task) -> int | None:
    return start_cache(model, *make_rows(task, 1), room=1).bytes_per_token() if model.autoregressive else None


def count_cache_bytes(model: Architecture, source: torch.Tensor | None, target: torch.Tensor, room: int) -> int:
    """Bytes of a cache with so much room that has read the first target token."""
    return start_cache(model, source, target, room).nbytes()


@torch.no_grad()
def start_cache(model: Architecture, source: torch.Tensor | None, target: torch.Tensor, room: int) -> Cache:
    cache = model.start(source, room=room)
    model.step(cache, target[:, :1])
    return cache


def count_activation_bytes(model: Architecture, task, batch_size: int) -> int:
    """Bytes that one training step of `batch_size` rows keeps for its backward pass."""
    kept: dict[int, int] = {}
    own = {p.untyped_storage()._cdata for p in model.parameters()}

    def pack(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
        return x

    source, target = make_rows(task, batch_size)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        logits = model(source, target, aligned=task.aligned)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    return sum(kept.values())
