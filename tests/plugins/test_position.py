"""Positions, held to the formulas of their papers written out here in float64, and to published numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from zoo.declare.shape import Shape
from zoo.parts import required_support
from zoo_plugins.position import (
    Alibi,
    Learned,
    NoPosition,
    Rope,
    Sinusoidal,
    T5Bias,
    linear,
    llama3,
    ntk,
    yarn,
)

WIDE = Shape(d_model=24, n_heads=2, max_len=16)


def at(*positions: int) -> torch.Tensor:
    return torch.tensor([positions])


def waves(position: int, width: int, base: float = 10000.0) -> list[float]:
    """PE(p, 2i) = sin(p / base^(2i/d)), PE(p, 2i+1) = cos(p / base^(2i/d)) (Vaswani et al. 2017, section 3.5)."""
    turns = [position / base ** (2 * (c // 2) / width) for c in range(width)]
    return [math.cos(t) if c % 2 else math.sin(t) for c, t in enumerate(turns)]


def rotated(x: list[float], position: int, pairs: list[tuple[int, int]], base: float = 10000.0) -> list[float]:
    """Each pair turned by position * base^(-2i/d), d twice the number of pairs (Su et al. 2021, equation 34)."""
    out = list(x)
    for i, (a, b) in enumerate(pairs):
        t = position * base ** (-i / len(pairs))
        out[a] = x[a] * math.cos(t) - x[b] * math.sin(t)
        out[b] = x[a] * math.sin(t) + x[b] * math.cos(t)
    return out


def turn(rope: Rope, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return rope.rotate(x, x[:, :1], *rope.prepare(positions))[0]


def bucket(offset: int, causal: bool, buckets: int, max_distance: int) -> int:
    """One offset j - i at a time, in whole numbers: the bucket rule of Raffel et al. 2020, without a logarithm."""
    first = 0
    distance = max(-offset, 0) if causal else abs(offset)
    if not causal:
        buckets //= 2
        first = buckets if offset > 0 else 0
    exact = buckets // 2
    if distance < exact:
        return first + distance
    wide = buckets - exact
    # floor(log(n / exact) / log(max / exact) * wide) is the largest s with n^wide * exact^s >= exact^wide * max^s.
    step = 0
    while step < wide - 1 and distance**wide * exact ** (step + 1) >= exact**wide * max_distance ** (step + 1):
        step += 1
    return first + exact + step


class TestNone:
    def test_opens_nothing(self):
        x = torch.randn(2, 5, 24)
        none = NoPosition(WIDE)
        assert required_support(NoPosition) == frozenset() and none.limit is None
        assert none.embed(x, at(0, 1, 2, 3, 4)) is x and none.bias(at(0), at(0), True) is None
        assert list(none.parameters()) == []


class TestSinusoidal:
    @pytest.mark.parametrize("width", [1, 5, 6, 7, 64])
    def test_formula_at_odd_and_even_widths(self, width):
        sinusoidal = Sinusoidal(Shape(d_model=width, n_heads=1), base=100.0)
        got = sinusoidal.embed(torch.zeros(1, 3, width), at(0, 3, 41))
        right = torch.tensor([[waves(p, width, 100.0) for p in (0, 3, 41)]])
        assert_close(got, right, atol=1e-5, rtol=0)

    @pytest.mark.parametrize("width", [5, 6])
    def test_sines_first(self, width):
        halved = Sinusoidal(Shape(d_model=width, n_heads=1), pairing="half")
        right = waves(41, width)
        assert_close(
            halved.embed(torch.zeros(1, 1, width), at(41)).flatten(),
            torch.tensor(right[::2] + right[1::2]),
            atol=1e-5,
            rtol=0,
        )

    def test_sines_first_held_to_marian(self):
        reason = "transformers is not installed"
        marian = pytest.importorskip("transformers.models.marian.modeling_marian", reason=reason)
        theirs = marian.MarianSinusoidalPositionalEmbedding(16, 24)
        theirs.weight.data = theirs.create_weight()
        got = Sinusoidal(WIDE, pairing="half").embed(torch.zeros(1, 16, 24), torch.arange(16)[None])[0]
        assert_close(got, theirs.weight.data, atol=2e-6, rtol=0)

    def test_half_precision_keeps_far_positions_apart(self):
        sinusoidal = Sinusoidal(WIDE).to(torch.bfloat16)
        got = sinusoidal.embed(torch.zeros(1, 2, 24, dtype=torch.bfloat16), at(256, 257))
        right = torch.tensor([[waves(p, 24) for p in (256, 257)]])
        assert got.dtype == torch.bfloat16
        assert_close(got.float(), right, atol=4e-3, rtol=0)  # half a unit in the last place of bfloat16 at 1

    def test_base_must_be_positive(self):
        with pytest.raises(ValueError, match="base is -1"):
            Sinusoidal(WIDE, base=-1)


class TestLearned:
    def test_adds_the_row_of_each_position(self):
        learned = Learned(WIDE, offset=2)
        x = torch.randn(2, 3, 24)
        assert learned.table.weight.shape == (18, 24) and learned.limit == 16
        rows = torch.tensor([[0, 1, 2], [0, 0, 15]])
        assert_close(learned.embed(x, rows), x + learned.table.weight[rows + 2])

    @pytest.mark.parametrize("offset", [0, 2])
    def test_too_long_an_input_is_refused_with_both_numbers(self, offset):
        learned = Learned(WIDE, offset=offset)
        learned.embed(torch.zeros(1, 16, 24), torch.arange(16)[None])
        with pytest.raises(ValueError, match="17 tokens.*max_len 16"):
            learned.embed(torch.zeros(1, 17, 24), torch.arange(17)[None])

    def test_length_counts_real_tokens_and_what_a_cache_holds(self):
        padded = torch.cat([torch.zeros(1, 4, dtype=torch.long), torch.arange(16)[None]], 1)
        assert Learned(WIDE).embed(torch.zeros(1, 20, 24), padded).shape == (1, 20, 24)
        with pytest.raises(ValueError, match="17 tokens.*max_len 16"):
            Learned(WIDE).embed(torch.zeros(1, 1, 24), at(16))

    def test_meta_and_empty_inputs_and_compiled_graphs(self):
        learned, x = Learned(WIDE), torch.randn(1, 3, 24)
        assert Learned(WIDE).to("meta").embed(x.to("meta"), at(0, 1, 2).to("meta")).shape == (1, 3, 24)
        assert learned.embed(x[:, :0], at(0)[:, :0]).shape == (1, 0, 24)
        compiled = torch.compile(learned.embed, fullgraph=True, backend="eager")
        assert_close(compiled(x, at(0, 1, 2)), learned.embed(x, at(0, 1, 2)))

    def test_offset_must_not_be_negative(self):
        with pytest.raises(ValueError, match="offset is -1"):
            Learned(WIDE, offset=-1)


class TestRope:
    @pytest.mark.parametrize(
        "pairing, right", [("half", [0.5403, 0, 0.8415, 0]), ("interleaved", [0.5403, 0.8415, 0, 0])]
    )
    def test_the_two_layouts(self, pairing, right):
        rope = Rope(Shape(d_model=4, n_heads=1), pairing=pairing)
        got = turn(rope, torch.tensor([1.0, 0, 0, 0]).view(1, 1, 1, 4), at(1))
        assert_close(got.flatten(), torch.tensor(right), atol=5e-5, rtol=0)

    @pytest.mark.parametrize("pairing", ["half", "interleaved"])
    @pytest.mark.parametrize("width, fraction", [(6, 1.0), (10, 1.0), (12, 0.5), (9, 2 / 3), (5, 0.8)])
    def test_formula(self, pairing, width, fraction):
        w = round(width * fraction)
        pairs = [(i, i + w // 2) if pairing == "half" else (2 * i, 2 * i + 1) for i in range(w // 2)]
        rope = Rope(Shape(d_model=2 * width, n_heads=2), base=500.0, fraction=fraction, pairing=pairing)
        x = torch.randn(1, 2, 2, width, generator=torch.Generator().manual_seed(0))
        got = turn(rope, x, at(3, 70))
        right = [[rotated(x[0, h, t].tolist(), p, pairs, 500.0) for t, p in enumerate((3, 70))] for h in range(2)]
        assert_close(got, torch.tensor([right]), atol=2e-5, rtol=0)

    @pytest.mark.parametrize("pairing", ["half", "interleaved"])
    @pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
    def test_scores_depend_on_distance_alone_and_norms_stay(self, pairing, fraction):
        rope = Rope(WIDE, fraction=fraction, pairing=pairing)
        q, k = torch.randn(2, 2, 7, 12), torch.randn(2, 1, 7, 12)
        here = torch.arange(7)[None]
        scores = []
        for shift in (0, 100):
            turned_q, turned_k = rope.rotate(q, k, *rope.prepare(here + shift))
            assert_close(turned_q.norm(dim=-1), q.norm(dim=-1))
            scores.append(turned_q @ turned_k.mT)
        assert_close(scores[0], scores[1], atol=5e-5, rtol=0)
        assert torch.allclose(scores[0], q @ k.mT, atol=1e-3) == (fraction == 0.0)

    def test_permuted_weights_give_the_same_scores(self):
        order = torch.arange(12).view(6, 2).T.flatten()  # 0 2 4 .. 1 3 5 ..: interleaved pairs moved to halves
        q, k, here = torch.randn(1, 2, 5, 12), torch.randn(1, 2, 5, 12), torch.arange(5)[None]
        half, interleaved = Rope(WIDE, pairing="half"), Rope(WIDE, pairing="interleaved")
        own_q, own_k = interleaved.rotate(q, k, *interleaved.prepare(here))
        q, k = half.rotate(q[..., order], k[..., order], *half.prepare(here))
        assert_close(q @ k.mT, own_q @ own_k.mT, atol=1e-5, rtol=0)

    @pytest.mark.parametrize("dtype, far", [(torch.bfloat16, 256), (torch.float16, 2048)])
    def test_angles_stay_float32(self, dtype, far):
        """In bfloat16 256 and 257 are one number, in float16 2048 and 2049 (POS-3, POS-5)."""
        plain, cast = Rope(WIDE), Rope(WIDE).to(dtype)
        for a, b in zip(plain.prepare(at(far, far + 1)), cast.prepare(at(far, far + 1)), strict=True):
            assert a.dtype == b.dtype == torch.float32 and torch.equal(a, b)
        with torch.autocast("cpu", dtype=dtype):
            assert torch.equal(plain.prepare(at(far))[0], cast.prepare(at(far))[0])
        x = torch.ones(1, 1, 2, 12, dtype=dtype)
        got = turn(cast, x, at(far, far + 1))
        right = [rotated([1.0] * 12, p, [(i, i + 6) for i in range(6)]) for p in (far, far + 1)]
        assert got.dtype == dtype
        assert_close(got[0, 0].float(), torch.tensor(right), atol=torch.finfo(dtype).eps, rtol=0)

    def test_rows_may_stand_at_different_positions(self):
        rope, x = Rope(WIDE), torch.randn(2, 2, 3, 12)
        both = turn(rope, x, torch.tensor([[0, 1, 2], [7, 8, 9]]))
        assert_close(both[1:], turn(rope, x[1:], at(7, 8, 9)))

    @pytest.mark.parametrize(
        "shape, fraction, names",
        [
            (Shape(d_model=520, n_heads=8), 1.0, "width of 65 .*d_model 520, n_heads 8"),
            (Shape(d_model=10, n_heads=2), 1.0, "head width 5 "),
            (Shape(d_model=16, n_heads=4), 0.75, "head width 4 .*fraction 0.75"),
        ],
    )
    def test_an_odd_width_is_refused(self, shape, fraction, names):
        with pytest.raises(ValueError, match=names):
            Rope(shape, fraction=fraction)

    @pytest.mark.parametrize("option, value", [("fraction", 1.5), ("fraction", -0.1), ("base", 0.0)])
    def test_impossible_options(self, option, value):
        with pytest.raises(ValueError, match=f"{option} is {value}"):
            Rope(WIDE, **{option: value})

    def test_heads_of_another_width_are_refused(self):
        with pytest.raises(ValueError, match="12 wide .* 24 wide"):
            turn(Rope(WIDE), torch.zeros(1, 1, 1, 24), at(0))


def rates(rope: Rope) -> torch.Tensor:
    """What one position more turns each pair by, read from the rotation itself."""
    x = torch.eye(rope.width // 2, rope.head_width)[None, None]  # [1, 1, w/2, K]: the first of each pair is 1
    cos, sin = rope.prepare(at(1))
    turned = rope.turn(x, cos, sin)[0, 0].diagonal(rope.width // 2)  # the second of each pair: gain * sin t
    return (turned / rope.gain).asin()


def tokens(width: int, **options) -> dict:
    return {"shape": Shape(d_model=2 * width, n_heads=2, max_len=64), **options}


BASE = 500.0
PAIRS = [BASE ** (-2 * i / 24) for i in range(12)]  # the plain rates of heads 24 wide


def yarn_by_hand(factor, length, fast, slow, whole) -> list[float]:
    """The authors' rule, one pair at a time (Peng et al. 2023, section 3.2; their ramp is over the pair's number)."""
    edges = [24 * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(BASE)) for turns in (fast, slow)]
    low, high = (math.floor(edges[0]), math.ceil(edges[1])) if whole else edges
    low, high = max(low, 0), min(high, 23)
    keep = [1 - min(max((i - low) / (high - low), 0), 1) for i in range(12)]
    return [k * rate + (1 - k) * rate / factor for k, rate in zip(keep, PAIRS, strict=True)]


def llama3_by_hand(factor, length, low, high) -> list[float]:
    """LLaMA 3.1, by the wavelength of each pair."""
    out = []
    for rate in PAIRS:
        wave = 2 * math.pi / rate
        smooth = (length / wave - low) / (high - low)
        blend = (1 - smooth) * rate / factor + smooth * rate
        out.append(rate if wave < length / high else rate / factor if wave > length / low else blend)
    return out


SLOWED = [
    (linear, {"factor": 3.0}, [rate / 3 for rate in PAIRS]),
    (ntk, {"factor": 3.0}, [(BASE * 3 ** (24 / 22)) ** (-2 * i / 24) for i in range(12)]),
    (yarn, {"factor": 8.0, "original_max_len": 300}, yarn_by_hand(8, 300, 32, 1, True)),
    (yarn, {"factor": 8.0, "original_max_len": 300, "truncate": False}, yarn_by_hand(8, 300, 32, 1, False)),
    (
        yarn,
        {"factor": 4.0, "original_max_len": 16, "beta_fast": 2.0, "beta_slow": 0.5},
        yarn_by_hand(4, 16, 2, 0.5, True),
    ),
    (yarn, {}, yarn_by_hand(16, 4096, 32, 1, True)),
    (llama3, {"factor": 8.0, "original_max_len": 300}, llama3_by_hand(8, 300, 1, 4)),
    (
        llama3,
        {"factor": 2.0, "original_max_len": 32, "low_freq_factor": 0.5, "high_freq_factor": 3.0},
        llama3_by_hand(2, 32, 0.5, 3),
    ),
]


class TestSlowedRope:
    @pytest.mark.parametrize("make, options, right", SLOWED)
    def test_formula(self, make, options, right):
        got = rates(make(**tokens(24), base=BASE, **options))
        assert_close(got, torch.tensor(right), atol=1e-6, rtol=1e-5)
        assert not torch.allclose(got, torch.tensor(PAIRS), rtol=1e-2)

    def test_defaults_are_those_of_llama_3(self):
        given = {"factor": 8.0, "original_max_len": 8192, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        usual, told = (llama3(**tokens(24), base=500000.0, **options) for options in ({}, given))
        assert torch.equal(rates(usual), rates(told))
        assert not torch.allclose(rates(usual), rates(Rope(**tokens(24), base=500000.0)))

    @pytest.mark.parametrize("make", [yarn, llama3])
    def test_fast_pairs_stay_and_slow_ones_are_divided(self, make):
        got = rates(make(**tokens(24), base=BASE, factor=8.0, original_max_len=300)) / torch.tensor(PAIRS)
        assert_close(got[[0, -1]], torch.tensor([1, 1 / 8]))
        assert (got.diff() <= 1e-6).all() and ((got > 0.13) & (got < 0.99)).sum() >= 2

    def test_ntk_reaches_from_one_to_the_factor(self):
        got = rates(ntk(**tokens(24), base=BASE, factor=8.0)) / torch.tensor(PAIRS)
        assert_close(got[[0, -1]], torch.tensor([1, 1 / 8]))

    @pytest.mark.parametrize("make", [linear, ntk, yarn, llama3])
    @pytest.mark.parametrize("options", [{"fraction": 0.5, "pairing": "interleaved"}, {"pairing": "half"}])
    def test_factor_one_is_rope(self, make, options):
        x = torch.randn(1, 2, 2, 24)
        slowed, plain = make(**tokens(24), factor=1.0, **options), Rope(**tokens(24), **options)
        assert_close(turn(slowed, x, at(3, 60)), turn(plain, x, at(3, 60)))

    @pytest.mark.parametrize(
        "options, gain",
        [
            ({}, 0.1 * math.log(40) + 1),
            ({"mscale": 0.707}, 0.0707 * math.log(40) + 1),
            ({"mscale": 0.707, "mscale_all_dim": 0.707}, 1.0),
            ({"mscale": 1.0, "mscale_all_dim": 0.5}, (0.1 * math.log(40) + 1) / (0.05 * math.log(40) + 1)),
            ({"attention_factor": 1.5}, 1.5),
        ],
    )
    def test_attention_factor_multiplies_what_is_rotated(self, options, gain):
        rope, x = yarn(**tokens(24), factor=40.0, fraction=0.5, **options), torch.randn(1, 2, 2, 24)
        got = turn(rope, x, at(0, 9))
        assert_close(got[..., :12].norm(dim=-1), gain * x[..., :12].norm(dim=-1))
        assert torch.equal(got[..., 12:], x[..., 12:])

    @pytest.mark.parametrize(
        "make, options, says",
        [
            (linear, {"factor": 0.0}, "factor is 0.0"),
            (ntk, {"factor": -1.0}, "factor is -1.0"),
            (yarn, {"beta_fast": 1.0}, "beta_fast is 1.0; it should be above beta_slow 1.0"),
            (yarn, {"beta_slow": 0.0}, "beta_slow is 0.0"),
            (yarn, {"base": 1.0}, "base is 1.0"),
            (yarn, {"original_max_len": 0}, "original_max_len is 0"),
            (yarn, {"attention_factor": 0.0}, "attention_factor is 0.0"),
            (llama3, {"high_freq_factor": 1.0}, "high_freq_factor is 1.0"),
            (llama3, {"original_max_len": -4}, "original_max_len is -4"),
            (ntk, {"fraction": 0.1}, "width of 2 has no slow pair"),
        ],
    )
    def test_impossible_options(self, make, options, says):
        with pytest.raises(ValueError, match=says):
            make(**tokens(24), **options)

    @pytest.mark.parametrize("kind, make, given, options", [
        ("linear", linear, {"factor": 3.0}, {"factor": 3.0}),
        # its only NTK grows with the text: at 3 times the length and factor 1.5 the base has grown as for a factor 4
        ("dynamic", ntk, {"factor": 1.5}, {"factor": 4.0}),
        ("yarn", yarn, {"factor": 8.0, "original_max_position_embeddings": 300}, {"factor": 8.0, "original_max_len": 300}),
        (  # gpt-oss
            "yarn", yarn,
            {"factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False, "rope_theta": 150000.0},
            {"factor": 32.0, "original_max_len": 4096, "truncate": False, "base": 150000.0},
        ),
        (  # DeepSeek V2
            "yarn", yarn,
            {"factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 0.707},
            {"factor": 40.0, "original_max_len": 4096, "mscale": 1.0, "mscale_all_dim": 0.707},
        ),
        (
            "llama3", llama3,
            {"factor": 8.0, "original_max_position_embeddings": 300, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
            {"factor": 8.0, "original_max_len": 300},
        ),
    ])  # fmt: skip
    @pytest.mark.parametrize("width", [24, 64])
    def test_held_to_transformers(self, kind, make, given, options, width):
        reason = "transformers is not installed"
        models = pytest.importorskip("transformers.modeling_rope_utils", reason=reason)
        config = pytest.importorskip("transformers", reason=reason).LlamaConfig(
            hidden_size=2 * width, num_attention_heads=2, max_position_embeddings=64,
            rope_parameters={"rope_type": kind, "rope_theta": BASE, **given},
        )  # fmt: skip
        length = {"seq_len": 192} if kind == "dynamic" else {}
        right, gain = models.ROPE_INIT_FUNCTIONS[kind](config, **length)
        rope = make(**tokens(width), **{"base": BASE, **options})
        assert rope.gain == pytest.approx(gain)
        assert_close(rates(rope), right, atol=1e-7, rtol=2e-6)


class TestAlibi:
    @pytest.mark.parametrize(
        "heads, slopes",
        [
            (1, [2**-8]),
            (3, [2**-4, 2**-8, 2**-2]),
            (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
            (8, [2.0**-h for h in range(1, 9)]),
            (12, [2.0**-h for h in range(1, 9)] + [0.7071, 0.3536, 0.1768, 0.0884]),
        ],
    )
    def test_slopes_for_any_number_of_heads(self, heads, slopes):
        got = Alibi(Shape(d_model=12 * heads, n_heads=heads)).bias(at(1), at(0), True)
        assert_close(-got.flatten(), torch.tensor(slopes), atol=5e-5, rtol=0)

    @pytest.mark.parametrize("causal", [True, False])
    def test_bias_is_symmetric_and_falls_with_distance(self, causal):
        alibi = Alibi(Shape(d_model=8, n_heads=2), scale=0.5)
        got = alibi.bias(at(0, 1, 2), at(0, 1, 2), causal)
        distance = torch.tensor([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
        assert_close(got, torch.stack([-0.5 * 2**-4 * distance, -0.5 * 2**-8 * distance])[None])
        assert_close(got, got.flip(-1, -2))  # reversing the input reverses the output

    def test_one_new_token_against_a_cache(self):
        alibi = Alibi(WIDE).to(torch.bfloat16)
        whole = alibi.bias(torch.arange(300)[None], torch.arange(300)[None], True)
        assert torch.equal(alibi.bias(at(299), torch.arange(300)[None], True), whole[:, :, -1:])
        assert whole[0, 0, 257, 0] != whole[0, 0, 256, 0]

    def test_rows_with_pads(self):
        rows = torch.tensor([[0, 0, 0, 1], [0, 1, 2, 3]])
        got = Alibi(WIDE).bias(rows, rows, True)
        assert_close(got[0, 0, 3], torch.tensor([-1.0, -1, -1, 0]) / 16)
        assert_close(got[1:], Alibi(WIDE).bias(rows[1:], rows[1:], True))


class TestT5Bias:
    @pytest.mark.parametrize("causal", [True, False])
    @pytest.mark.parametrize("buckets, max_distance", [(32, 128), (8, 20), (6, 50), (4, 3), (64, 1000)])
    def test_buckets(self, causal, buckets, max_distance):
        offsets = list(range(-1100, 1101))
        got = T5Bias(WIDE, buckets=buckets, max_distance=max_distance).bucket(torch.tensor(offsets), causal)
        assert got.tolist() == [bucket(offset, causal, buckets, max_distance) for offset in offsets]

    def test_published_buckets(self):
        """By hand for 32 buckets to 128: 8 (16 if causal) of one distance each, a doubling takes 2 (16/3) buckets."""
        bias = T5Bias(WIDE)
        both = bias.bucket(torch.tensor([0, -7, -8, -16, -32, -64, -127, -128, -5000, 1, 8, 128]), False)
        assert both.tolist() == [0, 7, 8, 10, 12, 14, 15, 15, 15, 17, 24, 31]
        left = bias.bucket(torch.tensor([3, 0, -15, -16, -128, -5000]), True)
        assert left.tolist() == [0, 0, 15, 16, 31, 31]

    def test_reads_one_number_per_bucket_and_head(self):
        shape = Shape(d_model=12, n_heads=3)
        bias = T5Bias(shape, buckets=8, max_distance=20)
        assert bias.table.weight.shape == (8, 3)
        q_at, k_at = torch.tensor([[4, 5], [0, 9]]), torch.tensor([[0, 3, 5], [9, 1, 0]])
        for causal in (True, False):
            got = bias.bias(q_at, k_at, causal)
            assert got.shape == (2, 3, 2, 3)
            for b, h, t, s in [(0, 0, 0, 0), (0, 2, 1, 2), (1, 1, 0, 0), (1, 0, 1, 2)]:
                row = bucket(int(k_at[b, s] - q_at[b, t]), causal, 8, 20)
                assert got[b, h, t, s] == bias.table.weight[row, h]

    @pytest.mark.parametrize("options", [{"buckets": 3}, {"buckets": 2}, {"buckets": 8, "max_distance": 4}])
    def test_impossible_options(self, options):
        with pytest.raises(ValueError, match="buckets"):
            T5Bias(WIDE, **options)


@pytest.mark.parametrize("make", [Sinusoidal, Rope, linear, ntk, yarn, llama3, Alibi, T5Bias])
def test_compiles_to_one_graph(make):
    position, x, here = make(WIDE), torch.randn(1, 5, 24), torch.arange(5)[None]

    def everything(x, here):
        q = x.view(1, 5, 2, 12).transpose(1, 2)
        return position.embed(x, here), position.rotate(q, q, *position.prepare(here)), position.bias(here, here, True)

    compiled = torch.compile(everything, fullgraph=True, backend="eager")
    assert_close(compiled(x, here), everything(x, here))
