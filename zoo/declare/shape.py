"""The numbers that all parts of a model share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from annotated_types import Gt, Le

from zoo.faults import Fault, SpecError

from .signature import Count, Field, Grows, Natural, Share, check_bounds, fields_of, grow_sizes

IDS = ("pad", "bos", "eos", "mask")
"""The reserved tokens."""
WIDTH_STEP = 8
"""A model that is scaled has heads of a multiple of this width."""
MOST = 100
"""The largest scale."""


@dataclass(frozen=True)
class Shape:
    """Sizes in numbers of elements; `max_len` in tokens.

    `head_dim` defaults to `d_model / n_heads`, `d_embed` to `d_model`, `d_ff` to what the FFN's own ratio gives.
    `pad`, `bos`, `eos` and `mask` are the ids of the reserved tokens. `dropout` acts on the embedded input and on
    the output of every step. Raises `SpecError` for sizes that cannot be.
    """

    d_model: Count = 64
    n_heads: Count = 4
    n_layers: Count = 2
    max_len: Count = 64
    vocab_size: Count = 512
    head_dim: Annotated[Count | None, Grows("even_share", 2)] = None
    d_ff: Annotated[Count | None, Grows("d_model", 8)] = None
    d_embed: Annotated[Count | None, Grows("d_model", 8)] = None
    dropout: Share = 0.0
    pad: Natural = 0
    bos: Natural = 1
    eos: Natural = 2
    mask: Natural = 3

    def __post_init__(self):
        faults = check_bounds(self)
        if not faults and self.head_dim is None and self.d_model % self.n_heads:
            faults.append(
                Fault(
                    f"n_heads {self.n_heads} does not divide d_model {self.d_model}; choose another or give head_dim",
                    ("n_heads",),
                )
            )
        if faults:
            raise SpecError(faults)

    @property
    def even_share(self) -> float:
        """What each head has of the model's width where they divide it evenly."""
        return self.d_model / self.n_heads

    @property
    def of_tokens(self) -> Shape:
        """All that a task may ask for, `max_len` and the reserved ids, and every other size at its default. So models
        of different sizes share one task.
        """
        return Shape(max_len=self.max_len, **{name: getattr(self, name) for name in IDS})

    @property
    def head_width(self) -> int:
        return self.head_dim or self.d_model // self.n_heads

    @property
    def embed_width(self) -> int:
        return self.d_embed or self.d_model


MAIN = ("d_model", "n_heads", "n_layers", "max_len")
"""The sizes that a scale multiplies; others follow these."""
SIZES = {**fields_of(Shape), "scale": Field("scale", Annotated[float, Gt(0), Le(MOST)], 1.0)}
"""What a shape may say."""


def resize_shape(own: Shape, written: Mapping[str, Any], scale: float = 1.0, layers: int = 1) -> Shape:
    """What is written, and for the other sizes those of `own` times `scale`, but not fewer than `layers` layers.

    Head width, FFN width and embedding width keep their ratio to the model's width; the vocabulary and what is no
    size stay. Raises `SpecError` for sizes that cannot be.
    """
    follow = {name: getattr(own, name) for name, f in SIZES.items() if f.size and name not in written}
    main = dict(written) if scale == 1 else scale_sizes(own, written, scale, layers) | dict(written)
    new = Shape(**{**asdict(own), **main})
    return replace(new, **grow_sizes(follow, SIZES, own, new))


def scale_sizes(own: Shape, written: Mapping[str, Any], scale: float, layers: int) -> dict[str, int]:
    heads = max(1, written.get("n_heads", round(own.n_heads * scale)))
    width = max(1, round(own.d_model * scale / heads / WIDTH_STEP)) * WIDTH_STEP
    depth = max(layers, round(own.n_layers * scale))
    return dict(zip(MAIN, (heads * width, heads, depth, max(1, round(own.max_len * scale))), strict=True))
