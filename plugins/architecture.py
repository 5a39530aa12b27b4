"""Which stacks there are and what they read.

B batch, S source tokens, T target tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from zoo.parts import Architecture, Cache, Grows, eval_mode, greedy


def shift(target: Tensor, keep: Tensor | None, bos: int) -> Tensor:
    """The input that predicts `target` [B, T]: each token's predecessor, and `bos` before the first real one."""
    first = torch.full_like(target[:, :1], bos)
    moved = torch.cat([first, target[:, :-1]], 1)
    if keep is None:
        return moved
    return torch.where(keep & (keep.cumsum(1) == 1), first, moved)


def pads_first(ids: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Move the pads of each row before its real tokens: a convolution survives pads in front, not a hole."""
    if keep is None:
        return ids, None
    order = keep.to(torch.uint8).argsort(dim=1, stable=True)
    return ids.gather(1, order), keep.gather(1, order)


def join(a: Tensor, a_keep: Tensor | None, b: Tensor, b_keep: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Two runs of tokens as one, [B, S] and [B, T] -> [B, S + T]."""
    ids = torch.cat([a, b], 1)
    if a_keep is None and b_keep is None:
        return ids, None
    whole = [torch.ones_like(x, dtype=torch.bool) if k is None else k for x, k in ((a, a_keep), (b, b_keep))]
    return ids, torch.cat(whole, 1)


def last(x: Tensor, n: int) -> Tensor:  # [B, S, D] -> [B, n, D], and none of them for n = 0
    return x[:, x.shape[1] - n :]


class DecoderOnly(Architecture):
    """One causal stack reads [source ; bos ; target[:-1]] and predicts the target left to right."""

    stacks = ("decoder",)

    def __init__(self, parts):
        super().__init__()
        self.shape = parts.shape
        self.decoder = parts.stack("decoder", depth=parts.shape.n_layers, causal=True)
        self.head = parts.head()

    @staticmethod
    def positions_needed(source, target, aligned):
        return source + target

    def states(self, source, target, *, source_keep=None, target_keep=None, aligned=False, notes=None):
        ids, keep = shift(target, target_keep, self.shape.bos), target_keep
        if source is not None:
            ids, keep = join(*pads_first(source, source_keep), ids, keep)
        return last(self.decoder(ids, keep, notes=notes), target.shape[1])

    def read(self, ids, *, keep=None, cache=None, segments=None, notes=None):
        return self.head(self.decoder(ids, keep, cache=cache, segments=segments, notes=notes))

    def start(self, source, source_keep=None, *, room):
        length = 0 if source is None else source.shape[1]
        self.decoder.check(length + room - 1)
        cache = Cache(length + room)
        if length:
            self.decoder(*pads_first(source, source_keep), cache=cache)
        return cache


class EncoderOnly(Architecture):
    """One bidirectional stack predicts the target tokens independently: in place where target and source are
    aligned, else in mask tokens that follow the source, so the length of the answer is given.
    """

    stacks = ("encoder",)
    needs_source = True
    autoregressive = False

    def __init__(self, parts):
        super().__init__()
        self.shape = parts.shape
        self.encoder = parts.stack("encoder", depth=parts.shape.n_layers, causal=False)
        self.head = parts.head()

    @staticmethod
    def positions_needed(source, target, aligned):
        return source if aligned else source + target

    def states(self, source, target, *, source_keep=None, target_keep=None, aligned=False, notes=None):
        ids, keep = source, source_keep
        if aligned and (source is None or source.shape != target.shape):
            given = None if source is None else list(source.shape)
            raise ValueError(f"an aligned target {list(target.shape)} needs a source of its own size, not {given}")
        if not aligned:
            asked = torch.full_like(target, self.shape.mask)
            ids, keep = (asked, target_keep) if source is None else join(source, source_keep, asked, target_keep)
        return last(self.encoder(ids, keep, notes=notes), target.shape[1])

    def read(self, ids, *, keep=None, cache=None, segments=None, notes=None):
        if cache is not None:
            raise ValueError("an encoder looks both ways, so it cannot read on from a cache")
        return self.head(self.encoder(ids, keep, segments=segments, notes=notes))

    def start(self, source, source_keep=None, *, room):
        raise ValueError("an encoder predicts all its target tokens at once; there is nothing to start")

    @torch.no_grad()
    def generate(self, source, n, *, source_keep=None, prefix=None, choose=greedy, **given):
        """All `n` target tokens [B, n] at once, each from the source alone."""
        if prefix is not None:
            raise ValueError("an encoder reads no target, so it cannot continue a prefix; give it as the source")
        if source is None:
            raise ValueError("an encoder predicts its target from a source; give it one")
        asked = torch.full((source.shape[0], n), self.shape.mask, device=source.device)
        with eval_mode(self):
            logits = self(source, asked, source_keep=source_keep)
        return choose(logits.flatten(0, 1)).view_as(asked)


class EncoderDecoder(Architecture):
    """A bidirectional stack reads the source; a causal stack reads [bos ; target[:-1]] and attends to its states
    (Vaswani et al. 2017).
    """

    stacks = ("encoder", "decoder")
    needs_source = True

    def __init__(self, parts, *, decoder_layers: Annotated[int | None, Grows("n_layers")] = None):
        super().__init__()
        if decoder_layers is not None and decoder_layers < 1:
            raise ValueError(f"decoder_layers is {decoder_layers}; it should be at least 1")
        self.shape = parts.shape
        depth = parts.shape.n_layers
        depths = {"encoder": depth, "decoder": decoder_layers or depth}
        self.encoder = parts.stack("encoder", depth=depth, causal=False, depths=depths)
        self.decoder = parts.stack("decoder", depth=depths["decoder"], causal=True, cross=True, depths=depths)
        self.head = parts.head()

    @staticmethod
    def positions_needed(source, target, aligned):
        return max(source, target)

    def states(self, source, target, *, source_keep=None, target_keep=None, aligned=False, notes=None):
        ids = shift(target, target_keep, self.shape.bos)
        memory = self.encode(ids, source, source_keep, notes)
        return self.decoder(ids, target_keep, memory=memory, memory_keep=source_keep, notes=notes)

    def encode(self, like: Tensor, source: Tensor | None, keep: Tensor | None, notes=None) -> Tensor:
        """States of the source [B, S, D]; none at all, [B, 0, D], where there is no source."""
        return self.encoder(like[:, :0] if source is None else source, keep, notes=notes)

    def read(self, ids, *, keep=None, cache=None, segments=None, notes=None):
        memory = self.encode(ids, None, None) if cache is None or cache.memory is None else cache.memory
        memory_keep = None if cache is None else cache.memory_keep
        return self.head(
            self.decoder(ids, keep, cache=cache, memory=memory, memory_keep=memory_keep, segments=segments, notes=notes)
        )

    def start(self, source, source_keep=None, *, room):
        self.decoder.check(room - 1)
        memory = None if source is None else self.encode(source, source, source_keep)
        return Cache(room, memory, source_keep)
