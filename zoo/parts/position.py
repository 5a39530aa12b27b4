"""The contract of positions, which stands apart because every call of an attention is told of one.

B batch, T queries or new tokens, S keys, D d_model, H query heads, G key/value heads, K head width.
"""

from __future__ import annotations

from torch import Tensor, nn

from zoo.declare.shape import Shape


class Position(nn.Module):
    """How a token knows where it stands. Each method changes nothing unless a variant overrides it.

    Positions are tensors `at` [1 or B, T] that count real tokens. `limit` is the number of positions that the
    variant can tell apart, None for any.
    """

    limit: int | None = None

    def __init__(self, shape: Shape):
        super().__init__()

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        """Change the input [B, T, width] before the first layer."""
        return x

    def prepare(self, at: Tensor) -> tuple[Tensor, ...]:
        """What `rotate` needs, made once per pass from the positions of the new tokens."""
        return ()

    def rotate(self, q: Tensor, k: Tensor, *ready: Tensor) -> tuple[Tensor, Tensor]:
        """Change queries [B, H, T, K] and new keys [B, G, T, K] in every self-attention."""
        return q, k

    def bias(self, q_at: Tensor, k_at: Tensor, causal: bool) -> Tensor | None:
        """What is added to the scores: [1 or B, H, T, S], or None."""
        return None


def required_support(position: type[Position]) -> frozenset[str]:
    """What an attention has to support for this kind of position: `rotation`, `bias`, both or nothing."""
    methods = {"rotation": "rotate", "bias": "bias"}
    return frozenset(name for name, m in methods.items() if getattr(position, m) is not getattr(Position, m))
