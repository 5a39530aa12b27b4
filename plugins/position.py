"""How a token knows where it stands.

B batch, T queries or new tokens, S keys, D width of the input, H query heads, G key heads, K head width, w rotated
width. `at` [1 or B, T] holds positions that count real tokens from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from zoo.parts import EvenShare, Grows, Position, Shape


def rates_of(width: int, base: float, device: torch.device | None = None) -> Tensor:
    """base^(-2i / width) for each pair i, [ceil(width / 2)]: how far a pair turns from one position to the next.

    Made anew from integers in float32: a stored table would follow the model into bfloat16, where 256 and 257 are
    one position.
    """
    pairs = torch.arange(0, width, 2, device=device).float()
    return 1.0 / base ** (pairs / width)


def positive(**options: float) -> None:
    """Raise `ValueError` for the first option that is not above 0."""
    for name, value in options.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}; it should be above 0")


def swap_halves(x: Tensor) -> Tensor:
    return x.roll(x.shape[-1] // 2, -1)


def swap_neighbours(x: Tensor) -> Tensor:
    return x.unflatten(-1, (x.shape[-1] // 2, 2)).flip(-1).flatten(-2)


Pairing = Literal["half", "interleaved"]
Fraction = Annotated[float, EvenShare("head_width")]
Length = Annotated[int, Grows("max_len")]
# The axis along which partners lie once w is written as 2 x w/2 or w/2 x 2, and how each element finds its partner.
PAIRINGS = {"half": (-2, swap_halves), "interleaved": (-1, swap_neighbours)}


class NoPosition(Position):
    """Nothing is said about order; a causal mask alone still tells a model some of it (Haviv et al. 2022)."""


class Sinusoidal(Position):
    """x + PE, PE(p, 2i) = sin(p / base^(2i/D)), PE(p, 2i+1) = cos(p / base^(2i/D)) (Vaswani et al. 2017).

    With the pairing `half` all sines come first, then all cosines, as in Marian. An odd width has one cosine fewer
    than sines. Raises `ValueError` unless `base` is above 0.
    """

    def __init__(self, shape: Shape, *, base: float = 10000.0, pairing: Pairing = "interleaved"):
        super().__init__(shape)
        positive(base=base)
        self.width, self.base = shape.d_model, base
        self.axis = PAIRINGS[pairing][0]

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        turns = at.float()[..., None] * rates_of(self.width, self.base, at.device)
        waves = torch.stack([turns.sin(), turns.cos()], self.axis).flatten(-2)[..., : self.width]
        return x + waves.to(x.dtype)


class Learned(Position):
    """x + table[at + offset], one learned vector per position up to `max_len` (Gehring et al. 2017).

    The first `offset` rows of the table are kept free, as in tables that reserve them for padding. Raises
    `ValueError` for an input that is longer than `max_len` tokens.
    """

    def __init__(self, shape: Shape, *, offset: int = 0):
        super().__init__(shape)
        if offset < 0:
            raise ValueError(f"offset is {offset}; it should be at least 0")
        self.limit, self.offset = shape.max_len, offset
        self.table = nn.Embedding(shape.max_len + offset, shape.d_model)

    def embed(self, x: Tensor, at: Tensor) -> Tensor:
        # A meta tensor has no values to read, and reading them would break a compiled graph.
        if at.numel() and not at.is_meta and not torch.compiler.is_compiling():
            length = int(at.max()) + 1
            if self.limit is not None and length > self.limit:
                raise ValueError(f"the input has {length} tokens, and there are positions for max_len {self.limit}")
        return x + self.table(at + self.offset)


class Rope(Position):
    """Pair i of the head (a, b) -> (a cos t - b sin t, a sin t + b cos t), t = at * base^(-2i / w) (Su et al. 2021).

    w is the head width times `fraction`, rounded to the nearest integer; the rest of the head stays as it is.
    Pairs are (i, i + w/2) with `half`, as in GPT-NeoX and LLaMA, or (2i, 2i + 1) with `interleaved`, as in the paper
    and GPT-J. `slowed` gives the variants for texts longer than those of training, which differ in the rates alone.
    Raises `ValueError` for an odd w, a fraction outside 0..1 and heads of another width than the shape's.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        base: float = 10000.0,
        fraction: Fraction = 1.0,
        pairing: Pairing = "half",
    ):
        super().__init__(shape)
        positive(base=base)
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction is {fraction}; it should be between 0 and 1")
        self.head_width, self.base = shape.head_width, base
        self.width = round(self.head_width * fraction)
        if self.width % 2:
            raise ValueError(
                f"a rotary width of {self.width} is odd, and only pairs can be rotated: it is the head width "
                f"{self.head_width} (d_model {shape.d_model}, n_heads {shape.n_heads}) times fraction {fraction}; "
                f"make it even"
            )
        self.axis, self.swap = PAIRINGS[pairing]
        self.slow: Callable[[Tensor], Tensor] = unchanged
        self.gain = 1.0

    def slowed(self, slow: Callable[[Tensor], Tensor], gain: float = 1.0) -> Rope:
        """The same with its rates [w/2] changed by `slow` and each rotated q and k times `gain`."""
        self.slow, self.gain = slow, gain
        return self

    def prepare(self, at: Tensor) -> tuple[Tensor, ...]:
        turns = at.float()[:, None, :, None] * self.slow(rates_of(self.width, self.base, at.device))  # [1|B, 1, T, w/2]
        cos, sin = turns.cos() * self.gain, turns.sin() * self.gain
        return torch.stack([cos, cos], self.axis).flatten(-2), torch.stack([-sin, sin], self.axis).flatten(-2)

    def rotate(self, q: Tensor, k: Tensor, *ready: Tensor) -> tuple[Tensor, Tensor]:
        if q.shape[-1] != self.head_width:
            raise ValueError(
                f"the rotation was made for heads {self.head_width} wide and the attention's are {q.shape[-1]} wide; "
                f"give head_dim in the shape"
            )
        return self.turn(q, *ready), self.turn(k, *ready)

    def turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [B, H, T, K] rotated; `sin` carries the sign that its half of the pair needs."""
        turned, rest = x[..., : self.width], x[..., self.width :]
        turned = (turned * cos + self.swap(turned) * sin).to(x.dtype)
        return torch.cat([turned, rest], -1) if rest.shape[-1] else turned


def unchanged(rates: Tensor) -> Tensor:
    return rates


def divided(rates: Tensor, factor: float) -> Tensor:
    return rates / factor


def linear(
    shape: Shape,
    *,
    base: float = 10000.0,
    fraction: Fraction = 1.0,
    pairing: Pairing = "half",
    factor: float = 4.0,
) -> Rope:
    """`Rope` at positions divided by `factor`: a longer text within the angles of training (Chen et al. 2023)."""
    positive(factor=factor)
    return Rope(shape, base=base, fraction=fraction, pairing=pairing).slowed(partial(divided, factor=factor))


def ntk(
    shape: Shape,
    *,
    base: float = 10000.0,
    fraction: Fraction = 1.0,
    pairing: Pairing = "half",
    factor: float = 4.0,
) -> Rope:
    """`Rope` on the base b * factor^(w / (w - 2)), "NTK-aware" (Peng et al. 2023, section 3.1).

    The fastest pair turns as before and the slowest is divided by `factor`. Raises `ValueError` for w below 4.
    """
    positive(factor=factor)
    rope = Rope(shape, base=base, fraction=fraction, pairing=pairing)
    if rope.width < 4:
        raise ValueError(f"a rotary width of {rope.width} has no slow pair; give heads at least 4 wide or another rope")
    rope.base = base * factor ** (rope.width / (rope.width - 2))
    return rope


def blended(rates: Tensor, factor: float, low: float, high: float) -> Tensor:
    """The rates up to pair `low`, 1 / factor of them from pair `high` on, a straight line between."""
    pairs = torch.arange(rates.shape[-1], device=rates.device).float()
    share = ((pairs - low) / (high - low)).clamp(0, 1)
    return rates / factor * share + rates * (1 - share)


def pair_of(turns: float, width: int, base: float, length: int) -> float:
    """The i, as a real number, whose rate base^(-2i / width) turns so many times in `length` positions."""
    return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))


def yarn(
    shape: Shape,
    *,
    base: float = 10000.0,
    fraction: Fraction = 1.0,
    pairing: Pairing = "half",
    factor: float = 16.0,
    original_max_len: Length = 4096,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    attention_factor: float | None = None,
    mscale: float = 1.0,
    mscale_all_dim: float = 0.0,
) -> Rope:
    """`Rope` with fast pairs as they are, slow ones divided by `factor`, those between blended (Peng et al. 2023).

    Fast is more than `beta_fast` turns in `original_max_len` tokens, those of training, slow fewer than `beta_slow`;
    the blend is linear in the number of the pair, as in the authors' code, between whole numbers with `truncate`.
    Rotated queries and keys are multiplied by `attention_factor`, which unless given is
    (0.1 mscale ln factor + 1) / (0.1 mscale_all_dim ln factor + 1), as in DeepSeek V2. Raises `ValueError` for numbers
    that cannot be.
    """
    positive(factor=factor, beta_slow=beta_slow, original_max_len=original_max_len)
    rope = Rope(shape, base=base, fraction=fraction, pairing=pairing)
    if beta_fast <= beta_slow:
        raise ValueError(f"beta_fast is {beta_fast}; it should be above beta_slow {beta_slow}")
    if base <= 1:
        raise ValueError(f"base is {base}; it should be above 1, or all pairs turn alike")
    low, high = (pair_of(turns, rope.width, base, original_max_len) for turns in (beta_fast, beta_slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low = max(low, 0)
    high = max(min(high, rope.width - 1), low + 0.001)  # a step where they meet
    if attention_factor is None:
        growth = 0.1 * math.log(max(factor, 1.0))
        attention_factor = (mscale * growth + 1) / (mscale_all_dim * growth + 1)
    positive(attention_factor=attention_factor)
    return rope.slowed(partial(blended, factor=factor, low=low, high=high), attention_factor)


def by_parts(rates: Tensor, factor: float, length: int, low: float, high: float) -> Tensor:
    """The rates that turn more than `high` times in `length`, 1 / factor of those below `low`, a blend between."""
    share = ((length * rates / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
    return (1 - share) * rates / factor + share * rates


def llama3(
    shape: Shape,
    *,
    base: float = 10000.0,
    fraction: Fraction = 1.0,
    pairing: Pairing = "half",
    factor: float = 8.0,
    original_max_len: Length = 8192,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> Rope:
    """As `yarn`, but the blend is linear in the turns of a pair in `original_max_len` tokens, from `low_freq_factor` to
    `high_freq_factor`, and nothing else is multiplied (LLaMA 3.1, Grattafiori et al. 2024).

    Raises `ValueError` for numbers that cannot be.
    """
    positive(factor=factor, original_max_len=original_max_len)
    rope = Rope(shape, base=base, fraction=fraction, pairing=pairing)
    if high_freq_factor <= low_freq_factor:
        raise ValueError(
            f"high_freq_factor is {high_freq_factor}; it should be above low_freq_factor {low_freq_factor}"
        )
    slow = partial(by_parts, factor=factor, length=original_max_len, low=low_freq_factor, high=high_freq_factor)
    return rope.slowed(slow)


def slopes(n_heads: int) -> list[float]:
    """2^(-8h/n) for h = 1..n if n is a power of two; otherwise those of the power below, then every other one of
    the power above (Press et al. 2022, reference code)."""
    below = 2 ** (n_heads.bit_length() - 1)
    own = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    between = [2 ** (-4 * h / below) for h in range(1, 2 * below + 1, 2)]
    return own + between[: n_heads - below]


class Alibi(Position):
    """score - scale * slope_h * |i - j|: the further away, the weaker (Press et al. 2022).

    Symmetric, so that an encoder does not favour what comes later. The bias is float32 whatever the model is in.
    """

    def __init__(self, shape: Shape, *, scale: float = 1.0):
        super().__init__(shape)
        self.slopes = [scale * slope for slope in slopes(shape.n_heads)]

    def bias(self, q_at: Tensor, k_at: Tensor, causal: bool) -> Tensor:
        distance = (q_at[:, :, None] - k_at[:, None, :]).abs()[:, None]  # [1 or B, 1, T, S]
        return distance * -torch.tensor(self.slopes, dtype=torch.float32, device=q_at.device)[:, None, None]


class T5Bias(Position):
    """score + table[bucket(j - i), h], where buckets widen with the logarithm of the distance (Raffel et al. 2020).

    Half of the buckets hold one distance each, the others reach to `max_distance`, and what lies beyond shares the
    last. Where attention is not causal, half of all buckets serve the keys that come later. One table per stack.
    Raises `ValueError` unless `buckets` is an even number from 4 and `max_distance` above half of it.
    """

    def __init__(self, shape: Shape, *, buckets: int = 32, max_distance: int = 128):
        super().__init__(shape)
        if buckets < 4 or buckets % 2:
            raise ValueError(f"buckets is {buckets}; it should be an even number from 4")
        if max_distance <= buckets // 2:
            raise ValueError(f"max_distance is {max_distance}; it should be above half of buckets {buckets}")
        self.buckets, self.max_distance = buckets, max_distance
        self.table = nn.Embedding(buckets, shape.n_heads)

    def bias(self, q_at: Tensor, k_at: Tensor, causal: bool) -> Tensor:
        offset = k_at[:, None, :] - q_at[:, :, None]  # [1 or B, T, S]
        return self.table(self.bucket(offset, causal)).permute(0, 3, 1, 2)

    def bucket(self, offset: Tensor, causal: bool) -> Tensor:
        """The bucket of each offset j - i."""
        if causal:
            return self.graded((-offset).clamp(min=0), self.buckets)
        half = self.buckets // 2
        return self.graded(offset.abs(), half) + half * (offset > 0)

    def graded(self, distance: Tensor, buckets: int) -> Tensor:
        """`buckets` steps over distances from 0: first one each, then logarithmic."""
        exact = buckets // 2
        growth = torch.log(distance.clamp(min=exact).float() / exact) / math.log(self.max_distance / exact)
        far = exact + (growth * (buckets - exact)).long()
        return torch.where(distance < exact, distance, far.clamp(max=buckets - 1))
