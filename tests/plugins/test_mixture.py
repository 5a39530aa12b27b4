"""Mixtures of experts, held to transformers' blocks and to a mixture that runs every expert on every token."""

from __future__ import annotations

import copy

import pytest
import torch
from support.contexts import context, keep
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from zoo import SpecError, build
from zoo.model import cost
from zoo.parts import Shape
from zoo.testing.model_case import perturb
from zoo.train import metrics
from zoo_plugins.ffn import Clamped, Gated
from zoo_plugins.mixture import LoadBalance, Mixture

SHAPE = Shape(d_model=12, n_heads=3, d_ff=10)


def mixture(router="top-softmax", expert=Gated, shared=None, **options) -> Mixture:
    torch.manual_seed(0)
    given = {} if expert is Clamped else {"activation": "swish"}
    made = Mixture(
        SHAPE,
        router=router,
        expert=lambda: expert(SHAPE, bias=expert is Clamped, **given),
        shared=shared and (lambda: Gated(SHAPE, activation="swish", d_ff=shared)),
        **options,
    ).double()
    if made.correction is not None:
        made.correction.copy_(torch.randn(made.correction.shape, generator=torch.Generator().manual_seed(5)) / 2)
    return perturb(made)


def drawn(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def told(x: torch.Tensor, real=None, notes=None):
    return context(x.shape[1], x.shape[1], new_keep=real, notes=notes)


FORMS = {
    "two of eight": {},
    "three of five, a bias, a shared step": {"experts": 5, "top": 3, "router_bias": True, "shared": 7},
    "all": {"experts": 3, "top": 3},
    "one, weighed by a softmax over all": {"router": "softmax", "top": 1, "scale": 3.0},
    "groups by their best": {"router": "softmax", "experts": 12, "top": 3, "groups": 4, "top_groups": 2},
    "groups by their two best": {"router": "sigmoid", "experts": 12, "top": 3, "groups": 4, "top_groups": 2},
    "corrected": {"router": "sigmoid", "correct": 0.001, "scale": 2.5},
    "clamped": {"expert": Clamped, "experts": 6},
}


def dense(made: Mixture, x: torch.Tensor, sigmoid: bool) -> torch.Tensor:
    """Every expert on every token, by the formula; the weights of those not chosen are zero."""
    logits = x @ made.router.weight.T + (0 if made.router.bias is None else made.router.bias)
    out = torch.zeros_like(x) if made.shared is None else made.shared(x, None)
    for at in ((b, t) for b in range(x.shape[0]) for t in range(x.shape[1])):
        row = logits[at]
        score = row.sigmoid() if sigmoid else row.exp() / row.exp().sum()
        choice = score if made.correction is None else score + made.correction
        groups = choice.split(len(row) // made.groups)
        worth = [sum(sorted(g.tolist())[-2:]) if sigmoid else g.max().item() for g in groups]
        best = sorted(range(len(groups)), key=worth.__getitem__)[-made.top_groups :]
        allowed = [e for e in range(len(row)) if e // len(groups[0]) in best]
        chosen = sorted(allowed, key=lambda e: choice[e].item())[-made.top :]
        total = sum(score[e] for e in chosen) if made.rule.normalise else 1.0
        for e in chosen:
            weight = made.scale * score[e] / total
            out[at] = out[at] + weight * made.experts[e](x[at], None)
    return out


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_sum_over_all_experts_with_zeros_for_those_not_chosen(form):
    made, x = mixture(**FORMS[form]), drawn(2, 7, 12).requires_grad_()
    got, right = made(x, told(x)), dense(made, x, FORMS[form].get("router") == "sigmoid")
    assert_close(got, right)
    inputs = [x, *made.parameters()]
    ours = torch.autograd.grad(got.sin().sum(), inputs)
    theirs = torch.autograd.grad(right.sin().sum(), inputs, allow_unused=True)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, torch.zeros_like(a) if b is None else b)


# Against transformers


def fill(theirs: nn.Module, **tensors: torch.Tensor) -> nn.Module:
    state = theirs.double().state_dict()
    assert state.keys() == tensors.keys() and all(state[k].shape == x.shape for k, x in tensors.items())
    theirs.load_state_dict(tensors)
    return theirs.eval()


def stacked(made: Mixture) -> dict[str, torch.Tensor]:
    """Our experts as transformers keeps them: gate over up, one tensor for all."""
    both = [torch.cat([e.gate.weight, e.up.weight]) for e in made.experts]
    return {
        "gate.weight": made.router.weight,
        "experts.gate_up_proj": torch.stack(both),
        "experts.down_proj": torch.stack([e.down.weight for e in made.experts]),
    }


def always(made: Mixture) -> dict[str, torch.Tensor]:
    own = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
    return {f"shared_experts.{n}.weight": made.shared.get_submodule(m).weight for n, m in own.items()}


def test_mixtral():
    pytest.importorskip("transformers")
    from transformers.models.mixtral.modeling_mixtral import MixtralConfig, MixtralSparseMoeBlock

    made, x = mixture(experts=6, top=2), drawn(2, 9, 12)
    config = MixtralConfig(hidden_size=12, intermediate_size=10, num_local_experts=6, num_experts_per_tok=2)
    theirs = fill(MixtralSparseMoeBlock(config), **stacked(made))
    assert_close(made(x, told(x)), theirs(x), atol=1e-6, rtol=1e-6)  # their router is in float32


@pytest.mark.parametrize(("normalise", "router"), [(True, "top-softmax"), (False, "softmax")])
def test_qwen3(normalise, router):
    pytest.importorskip("transformers")
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeConfig, Qwen3MoeSparseMoeBlock

    made, x = mixture(router, experts=6, top=3), drawn(2, 9, 12)
    sizes = {"hidden_size": 12, "moe_intermediate_size": 10, "num_experts": 6, "num_experts_per_tok": 3}
    theirs = fill(Qwen3MoeSparseMoeBlock(Qwen3MoeConfig(**sizes, norm_topk_prob=normalise)), **stacked(made))
    assert_close(made(x, told(x)), theirs(x), atol=1e-6, rtol=1e-6)


def test_gpt_oss():
    pytest.importorskip("transformers")
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssConfig, GptOssMLP

    made, x = mixture(expert=Clamped, experts=5, top=2, router_bias=True), 3 * drawn(2, 9, 12)
    config = GptOssConfig(hidden_size=12, intermediate_size=10, num_local_experts=5, num_experts_per_tok=2)
    theirs = fill(
        GptOssMLP(config),
        **{"router.weight": made.router.weight, "router.bias": made.router.bias},
        **{
            "experts.gate_up_proj": torch.stack([woven(e.gate.weight, e.up.weight).T for e in made.experts]),
            "experts.gate_up_proj_bias": torch.stack([woven(e.gate.bias, e.up.bias) for e in made.experts]),
            "experts.down_proj": torch.stack([e.down.weight.T for e in made.experts]),
            "experts.down_proj_bias": torch.stack([e.down.bias for e in made.experts]),
        },
    )
    assert made.experts[0].gate(x).max() > 7, "no value reaches the limit"
    assert_close(made(x, told(x)), theirs(x)[0])


def woven(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Their rows are gate, up, gate, up, …"""
    return torch.stack([gate, up], 1).flatten(0, 1)


DEEPSEEK = {"hidden_size": 12, "moe_intermediate_size": 10, "num_experts_per_tok": 2, "n_shared_experts": 2}
DEEPSEEK |= {"num_attention_heads": 4}


@pytest.mark.parametrize("groups", [1, 3])
def test_deepseek_v2(groups):
    pytest.importorskip("transformers")
    from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Config, DeepseekV2Moe

    made = mixture("softmax", shared=20, experts=6, groups=groups, top_groups=min(2, groups), scale=1.5)
    method = "greedy" if groups == 1 else "group_limited_greedy"
    config = DeepseekV2Config(
        **DEEPSEEK, n_routed_experts=6, n_group=groups, topk_group=2, topk_method=method, routed_scaling_factor=1.5
    )
    theirs, x = fill(DeepseekV2Moe(config), **stacked(made), **always(made)), drawn(2, 9, 12)
    assert_close(made(x, told(x)), theirs(x), atol=1e-6, rtol=1e-6)


def test_deepseek_v3():
    pytest.importorskip("transformers")
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Config, DeepseekV3MoE

    made = mixture("sigmoid", shared=20, experts=8, groups=4, top_groups=2, scale=2.5, correct=0.001)
    config = DeepseekV3Config(**DEEPSEEK, n_routed_experts=8, n_group=4, topk_group=2, routed_scaling_factor=2.5)
    correction = {"gate.e_score_correction_bias": made.correction}
    theirs, x = fill(DeepseekV3MoE(config), **stacked(made), **always(made), **correction), drawn(2, 9, 12)
    right = theirs(x)
    assert_close(made(x, told(x)), right, atol=1e-6, rtol=1e-6)
    made.correction.zero_()
    assert not torch.allclose(made(x, told(x)), right, atol=1e-2), "the correction chose nothing"


# The auxiliary loss


def penalised(layers: int = 3, real=None, **options) -> tuple[list, list[torch.Tensor]]:
    """What so many mixtures note of the same tokens, and the logits of their routers, one row per token."""
    notes, logits, x = [], [], drawn(2, 9, 12)
    for seed in range(layers):
        made = mixture(experts=4, balance=0.02, router_bias=True, **options)
        made.router.bias.data[seed] = 3.0  # each layer has a favourite of its own
        made(x, told(x, real, notes))
        logits.append(made.router(x).flatten(0, 1))
    return notes, logits


@pytest.mark.parametrize("real", [None, keep("111111...", "111111111"), keep("...111111", ".........")])
@pytest.mark.parametrize("router", ["top-softmax", "softmax"])
def test_the_auxiliary_loss_is_mixtrals_over_all_layers_and_real_tokens(real, router):
    pytest.importorskip("transformers")
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    notes, logits = penalised(real=real, router=router)
    theirs = load_balancing_loss_func(tuple(logits), 4, 2, real)
    assert metrics.auxiliary_loss(notes).item() == pytest.approx(0.02 * theirs.item(), rel=1e-6)
    alone = [metrics.auxiliary_loss([note]).item() for note in notes]
    assert sum(alone) / 3 > 1.05 * 0.02 * theirs.item(), "here the layers could be judged apart"


def test_the_auxiliary_loss_of_a_router_that_does_not_care_is_its_weight_times_top():
    made = LoadBalance(experts=4, top=2, weight=0.1)
    assert made([torch.tensor([[8.0, 8, 8, 8], [4, 4, 4, 4]])]).item() == pytest.approx(0.2)
    assert made([torch.tensor([[16.0, 16, 0, 0], [8, 8, 0, 0]])]).item() == pytest.approx(0.4)
    assert made([torch.zeros(2, 4)]).item() == 0, "no token was real"


def test_mixtures_that_differ_are_judged_apart():
    one, other = penalised(2)[0], penalised(2, top=3)[0]
    apart = metrics.auxiliary_loss(one) + metrics.auxiliary_loss(other)
    assert metrics.auxiliary_loss([*one, *other]).item() == pytest.approx(apart.item(), rel=1e-12)


def test_nothing_is_noted_where_nothing_is_asked():
    assert penalised(2)[0] and penalised(2)[0][0][0] == penalised(2)[0][1][0]
    notes, x = [], drawn(1, 3, 12)
    mixture(balance=0.0)(x, told(x, notes=notes))
    assert not notes


def test_sigmoid_scores_add_up_to_one_in_the_auxiliary_loss():
    notes, logits = penalised(1, router="sigmoid")
    scores = logits[0].sigmoid()
    right = (scores / scores.sum(-1, keepdim=True)).sum(0)
    assert_close(notes[0][1][1], right)


def test_its_gradient_evens_out_the_router():
    made = mixture(experts=4, balance=1.0, router_bias=True)
    made.router.bias.data[0] = 3.0
    x, optimizer = drawn(8, 16, 12), torch.optim.SGD(made.router.parameters(), lr=0.5)
    seen = []
    for _ in range(60):
        notes = []
        made(x, told(x, notes=notes))
        loss = metrics.auxiliary_loss(notes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append((loss.item(), notes[0][1][0].max().item() / 256))
    assert seen[0][0] > 2.2 and seen[-1][0] < 2.06
    assert seen[0][1] > 0.4 and seen[-1][1] < 0.3, "an expert of four should get about a quarter"


# The correction


def test_the_correction_lifts_the_experts_that_had_too_little():
    real = keep("111111...", "11111....")
    made, x = mixture("sigmoid", experts=4, correct=0.25).train(), drawn(2, 9, 12)
    before = made.correction.clone()
    choice = (made.router(x).sigmoid() + before)[real]
    load = torch.bincount(choice.topk(2).indices.flatten(), minlength=4)
    assert load.sum() == 22 and len(set(load.tolist())) > 1
    made(x, told(x, real))
    assert_close(made.correction - before, 0.25 * (5.5 - load.double()).sign())
    moved = made.correction.clone()
    made.eval()(x, told(x, real))
    assert torch.equal(made.correction, moved), "it moves while training alone"


def test_the_correction_is_no_parameter_and_is_kept():
    made = mixture("sigmoid", correct=0.001)
    assert "correction" in made.state_dict() and "correction" not in dict(made.named_parameters())
    assert "correction" not in mixture("sigmoid").state_dict()


# What it costs


def flops(made, x) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        made(x, told(x))
    return counter.get_total_flops()


@pytest.mark.parametrize("tokens", [1, 9, 100])
def test_each_token_pays_for_its_own_experts(tokens):
    made, x = mixture(experts=16, top=3, shared=7), torch.randn(1, tokens, 12)
    right = tokens * 2 * (12 * 16 + 3 * 3 * 12 * 10 + 3 * 12 * 7)
    assert flops(made.float(), x) == right
    assert flops(copy.deepcopy(made).to("meta"), x.to("meta")) == right


def test_the_card_counts_all_parameters_and_the_chosen_experts_flops():
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 10, "vocab_size": 17, "max_len": 32}
    task = type("Task", (), {"source_len": 0, "target_len": 16, "aligned": False})
    with torch.device("meta"):
        moe, plain = (
            cost.count_cost(build({"ffn": ffn, "attention": "mha"}, shape=sizes), task, 4)
            for ffn in ({"name": "moe", "experts": 8, "top": 2}, "swiglu")
        )
    assert moe.parameters - plain.parameters == 2 * (7 * 3 * 12 * 10 + 12 * 8)
    assert moe.flops_per_token - plain.flops_per_token == 2 * 2 * (3 * 12 * 10 + 12 * 8)
    extra = moe.memory_bytes - plain.memory_bytes - 16 * (moe.parameters - plain.parameters)
    tokens, hidden, width = 4 * 16, 10, 12
    # The second expert of each token keeps its gate, activation, up and product; each pair its input and output.
    floor = 2 * 4 * tokens * (4 * hidden + width)
    assert floor < extra < 4 * floor


# How it is built


def test_names_of_the_weights():
    names = [name for name in mixture(shared=7, experts=2, router_bias=True).state_dict() if ".1." not in name]
    own = ["up.weight", "gate.weight", "down.weight"]
    expected = ["router.weight", "router.bias", *(f"experts.0.{n}" for n in own), *(f"shared.{n}" for n in own)]
    assert names == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"experts": 0}, "experts is 0; it should be at least 1"),
        ({"top": 0}, "top is 0; it should be at least 1"),
        ({"top": 9}, "top is 9; 8 experts can be chosen from"),
        ({"top": 1}, "top is 1; its weight would always be 1 and teach the router nothing; 'moe-softmax' can do it"),
        ({"groups": 3}, "groups is 3; it should divide the 8 experts"),
        ({"groups": 2, "top_groups": 3}, "top_groups is 3; there are 2 groups"),
        ({"groups": 4, "top": 3}, "top is 3; 2 experts can be chosen from"),
        ({"groups": 8, "top_groups": 4, "router": "sigmoid"}, "a group counts by its two best experts"),
        ({"balance": -0.1}, "balance is -0.1; it should be at least 0"),
        ({"correct": -1.0}, "correct is -1.0; it should be at least 0, or null"),
    ],
)
def test_impossible_numbers_are_refused(options, said):
    with pytest.raises(ValueError) as refusal:
        mixture(**options)
    assert said in str(refusal.value)


@pytest.mark.parametrize("option", ["expert", "shared"])
def test_an_expert_cannot_be_left_out(option):
    with pytest.raises(SpecError, match="an expert cannot be left out"):
        build({"ffn": {"name": "moe", option: "none"}}, shape={"d_model": 12, "n_heads": 3, "vocab_size": 9})


@pytest.mark.parametrize("form", ["three of five, a bias, a shared step", "groups by their two best", "corrected"])
def test_compiles_to_one_graph_whatever_the_tokens_choose(form):
    torch._dynamo.reset()
    made = mixture(**FORMS[form])
    compiled = torch.compile(made, fullgraph=True, backend="eager")
    for n in (7, 8, 1):
        x, ours, theirs = drawn(2, n, 12), [], []
        assert_close(compiled(x, told(x, notes=ours)), made(x, told(x, notes=theirs)))
        assert_close(metrics.auxiliary_loss(ours), metrics.auxiliary_loss(theirs))


def test_bfloat16_is_near_float64():
    made, x = mixture(experts=4, top=4, shared=7), drawn(2, 7, 12)
    right = made(x, told(x))
    got = copy.deepcopy(made).bfloat16()(x.bfloat16(), told(x))
    assert got.dtype == torch.bfloat16 and (got - right).square().mean().sqrt() < 0.02 * right.std()
