"""The numbers that all parts of a model share."""

from __future__ import annotations

from dataclasses import dataclass

from .faults import Fault, SpecError


@dataclass(frozen=True)
class Shape:
    """Sizes in numbers of elements; `max_len` in tokens.

    `head_dim` defaults to `d_model / n_heads`, `d_embed` to `d_model`, `d_ff` to what the FFN's own ratio gives.
    `pad`, `bos`, `eos` and `mask` are the ids of the reserved tokens. `dropout` acts on the embedded input and on
    the output of every step. Raises `SpecError` for sizes that cannot be.
    """

    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    max_len: int = 64
    vocab_size: int = 512
    head_dim: int | None = None
    d_ff: int | None = None
    d_embed: int | None = None
    dropout: float = 0.0
    pad: int = 0
    bos: int = 1
    eos: int = 2
    mask: int = 3

    def __post_init__(self):
        sizes = ("d_model", "n_heads", "n_layers", "max_len", "vocab_size", "head_dim", "d_ff", "d_embed")
        at_least = {**dict.fromkeys(sizes, 1), **dict.fromkeys(("pad", "bos", "eos", "mask"), 0)}
        faults = [
            Fault(f"{name} is {value}; it should be at least {low}", (name,))
            for name, low in at_least.items()
            if (value := getattr(self, name)) is not None and value < low
        ]
        if not 0 <= self.dropout < 1:
            faults.append(Fault(f"dropout is {self.dropout}; it should be at least 0 and below 1", ("dropout",)))
        if not faults and self.head_dim is None and self.d_model % self.n_heads:
            faults.append(
                Fault(
                    f"n_heads {self.n_heads} does not divide d_model {self.d_model}; "
                    f"choose another or give head_dim",
                    ("n_heads",),
                )
            )
        if faults:
            raise SpecError(faults)

    @property
    def head_width(self) -> int:
        return self.head_dim or self.d_model // self.n_heads

    @property
    def embed_width(self) -> int:
        return self.d_embed or self.d_model
