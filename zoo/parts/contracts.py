"""The contracts of the slots that make up a model.

B batch, T queries or target tokens, S keys or source tokens, D d_model, H query heads, G key/value heads,
K head width, W value width, V vocabulary.

A constructor asks by name: its positional parameters are requests (`shape`, `norm`, `kernel`, `layer`, `n_steps`,
`dim`, `table`, `parts`, ...), its keyword-only parameters are the options that a user may write, and their
annotations and defaults are the schema of those options. A value that cannot be raises `ValueError`.

Any module of a model may have `uncounted(tokens) -> int`: the FLOPs of one call on one row of so many tokens (its
first argument is [B, tokens, ...]) that torch's counter cannot see, as in a fused recurrence or an elementwise scan.
One whose matrix products change size with what its input holds says so by `regroups = True`: what does not depend on
a token then stays equal to rounding, and not bit for bit, when that token changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from zoo.declare.shape import Shape

from .cache import Cache
from .context import AttentionContext
from .generate import generate


@dataclass(frozen=True)
class Place:
    """Where a layer stands: what a part receives when it asks for `layer`. `depths` gives each stack's layers;
    in a stack that is `causal` no token sees those after it.
    """

    stack: str
    index: int
    depths: Mapping[str, int]
    causal: bool

    @property
    def depth(self) -> int:
        return self.depths[self.stack]


class NoStep(nn.Module):
    """A step that is left out of its layer and not counted."""

    supports: frozenset[str] = frozenset({"bidirectional"})


class OutputProjection(nn.Linear):
    """The projection that writes into the residual stream; initialisation scales it by the residual's `gain`."""


class Embedding(nn.Module):
    """Ids to vectors. The stack calls `look_up`, lets the positions embed, then calls `finish`."""

    width: int
    """Width of what `look_up` returns, and so of what the positions embed into."""

    def look_up(
        self, source: Tensor, keep: Tensor | None, segments: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:  # [B, T] -> [B, T, width], [B, T]
        raise NotImplementedError

    def finish(self, x: Tensor) -> Tensor:  # [B, T, width] -> [B, T, D]
        return x


class Kernel(nn.Module):
    """How scores become outputs. Requests: `n_heads`, `head_dim`, `needs`.

    `supports` names what it can carry, of `bias window softcap sink dropout cross`. `effective` says in words what
    really computes, where that differs from the name that was asked for.
    """

    supports: frozenset[str] = frozenset()
    effective: str = ""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, ctx: AttentionContext) -> Tensor:
        """q [B, H, T, K], k [B, G, S, K], v [B, G, S, W] -> [B, H, T, W]. G divides H; query head h reads key
        head h // (H / G)."""
        raise NotImplementedError


class Attention(nn.Module):
    """Mixes tokens. `supports` has some of `rotation bias cross bidirectional`; a kernel is asked for the rest.

    `bidirectional`: it can look at later tokens too, which a stack that is not causal needs of its self-attention.
    """

    supports: frozenset[str] = frozenset()

    def forward(self, x: Tensor, memory: Tensor, ctx: AttentionContext) -> Tensor:
        """x [B, T, D], memory [B, S, D] -> [B, T, D]. In self-attention `memory is x`."""
        raise NotImplementedError


class Residual(nn.Module):
    """Where a layer's norms stand and how its steps join. Requests: `norm`, `n_steps`, `shape`, `layer`.

    `gain` scales the initial weights of every `OutputProjection` in the layer; None is (2 L)^-0.5 for L layers (GPT-2).
    `needs_warmup`: training from the full rate on is known to fail where stacks are deep.
    """

    gain: float | None = None
    needs_warmup: bool = False

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        raise NotImplementedError

    def enter(self, x: Tensor) -> Tensor:
        """What the first layer's instance makes of the embedded input."""
        return x

    def final(self, norm: Callable[[], nn.Module]) -> nn.Module:
        """What stands after the last layer; called on the last layer's instance."""
        return nn.Identity()


class Architecture(nn.Module):
    """A model of p(target | source): `logits[:, t]` may use all of `source` and at most `target[:, :t]`.

    `needs_source`: it is of no use on a task without a source. `autoregressive`: it factorises left to right;
    otherwise it predicts the target tokens independently. Requests: `parts`.
    """

    needs_source: bool = False
    autoregressive: bool = True
    stacks: tuple[str, ...] = ()
    shape: Shape
    head: nn.Module  # [..., D] -> [..., V]

    def extra_repr(self) -> str:
        sizes = ("d_model", "n_heads", "n_layers", "vocab_size", "max_len")
        total = sum(p.numel() for p in self.parameters())
        return ", ".join([f"{total:,} parameters", *(f"{size}={getattr(self.shape, size)}" for size in sizes)])

    @staticmethod
    def positions_needed(source: int, target: int, aligned: bool) -> int:
        """How many positions its longest stack needs for a source and a target of these lengths."""
        raise NotImplementedError

    def states(
        self,
        source: Tensor | None,
        target: Tensor,
        *,
        source_keep: Tensor | None = None,
        target_keep: Tensor | None = None,
        aligned: bool = False,
        notes: list | None = None,
    ) -> Tensor:
        """source [B, S] (None or S = 0 for nothing), target [B, T] -> [B, T, D]."""
        raise NotImplementedError

    def forward(self, source: Tensor | None, target: Tensor, **given) -> Tensor:
        """The logits [B, T, V] of every target token under teacher forcing; keywords as in `states`."""
        return self.head(self.states(source, target, **given))

    def read(
        self, ids: Tensor, *, keep: Tensor | None = None, cache: Cache | None = None, segments=None, notes=None
    ) -> Tensor:
        """The logits [B, T, V] that stand over raw ids [B, T], nothing shifted or joined."""
        raise NotImplementedError

    def start(self, source: Tensor | None, source_keep: Tensor | None = None, *, room: int) -> Cache:
        """Read the source and make room for `room` target tokens, the one that begins them included."""
        raise NotImplementedError

    def step(self, cache: Cache, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        """Read further target tokens [B, t] and return the logits [B, t, V] of those that follow them."""
        return self.read(ids, keep=keep, cache=cache)

    def generate(self, source: Tensor | None, n: int, **given) -> Tensor:
        """Up to `n` target tokens [B, n]; keywords as in `zoo.parts.generate.generate`."""
        return generate(self, source, n, **given)
