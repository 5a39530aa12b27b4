"""Mixtures of experts: many steps that treat each token alone, of which each token takes a few.

N tokens, D d_model, E experts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from zoo.parts import AttentionContext, NoStep, Part, Shape

Step = Annotated[Any, Part("ffn")]


class Router(NamedTuple):
    """How logits [N, E] become scores, what a group of scores [.., n] counts, and whether weights add up to 1."""

    score: Callable[[Tensor], Tensor]
    group: Callable[[Tensor], Tensor]
    normalise: bool


RouterName = Literal["top-softmax", "softmax", "sigmoid"]
ROUTERS: dict[RouterName, Router] = {
    "top-softmax": Router(lambda x: x.softmax(-1), lambda x: x.amax(-1), True),
    "softmax": Router(lambda x: x.softmax(-1), lambda x: x.amax(-1), False),
    "sigmoid": Router(torch.sigmoid, lambda x: x.topk(2).values.sum(-1), True),
}
"""`top-softmax` is a softmax over the chosen logits alone, which is one over all of them made to add up to 1."""


@dataclass(frozen=True)
class LoadBalance:
    """weight * E sum_e f_e P_e, with f_e the share of the real tokens of all layers that chose expert e and P_e the
    mean of their scores for it, made to add up to 1 (Fedus et al. 2021, https://arxiv.org/abs/2101.03961).

    It is `weight * top` where the experts are chosen evenly. Every layer notes its sums, so that all are judged as one.
    """

    experts: int
    top: int
    weight: float

    def __call__(self, sums: list[Tensor]) -> Tensor:
        """Each of `sums` is [2, E]: the tokens that chose an expert, and their scores for it."""
        chosen, scores = torch.stack(sums).sum(0)
        tokens = (chosen.sum() / self.top).clamp_min(1)
        return self.weight * self.experts * (chosen / tokens) @ (scores / tokens)


class Mixture(nn.Module):
    """scale sum_e w_e expert_e(x) over the `top` experts of the highest scores, plus shared(x).

    `router` says how a token's logits become scores and weights: Mixtral (Jiang et al. 2024,
    https://arxiv.org/abs/2401.04088), DeepSeek-V2 (https://arxiv.org/abs/2405.04434), DeepSeek-V3
    (https://arxiv.org/abs/2412.19437); `router_bias` gives the logits a bias. With `groups` the experts stand in so
    many groups, and a token chooses within its best `top_groups`. `shared` is a step that every token takes.

    `balance` is the weight of the `LoadBalance` loss. With `correct`, a number per expert is added to the scores
    when experts are chosen, though not to the weights; each pass of the training moves it by so much, up where an
    expert had less than its share of the real tokens and down where it had more (Wang et al. 2024,
    https://arxiv.org/abs/2408.15664). An expert is called with the tokens that chose it, in one row. Raises
    `ValueError` for numbers that cannot be.
    """

    regroups = True
    correction: Tensor | None

    def __init__(
        self,
        shape: Shape,
        *,
        router: RouterName,
        experts: int = 8,
        top: int = 2,
        expert: Step = "swiglu",
        shared: Step | None = None,
        router_bias: bool = False,
        scale: float = 1.0,
        groups: int = 1,
        top_groups: int = 1,
        correct: float | None = None,
        balance: float = 0.01,
    ):
        super().__init__()
        self.rule = ROUTERS[router]
        check(experts, top, groups, top_groups, balance, correct, router)
        self.top, self.scale, self.groups, self.top_groups, self.speed = top, scale, groups, top_groups, correct
        self.router = nn.Linear(shape.d_model, experts, bias=router_bias)
        self.register_buffer("correction", None if correct is None else torch.zeros(experts))
        self.experts = nn.ModuleList(expert() for _ in range(experts))
        self.shared = None if shared is None else shared()
        if any(isinstance(m, NoStep) for m in (*self.experts, self.shared)):
            raise ValueError("an expert cannot be left out; shared: null is a mixture without a shared step")
        self.auxiliary_loss = LoadBalance(experts, top, balance)

    def forward(self, x: Tensor, ctx: AttentionContext) -> Tensor:
        flat = x.flatten(0, 1)
        keep = None if ctx.new_keep is None else ctx.new_keep.flatten()
        logits = self.router(flat)
        scores = self.rule.score(logits.to(torch.promote_types(logits.dtype, torch.float32)))
        chosen, weights = self.choose(scores)
        self.tell(scores, chosen, keep, ctx)
        out = self.dispatch(flat, chosen, weights.to(x.dtype), keep, ctx).view(x.shape)
        return out if self.shared is None else out + self.shared(x, ctx)

    def choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The experts of each token and their weights: [N, E] -> [N, top] twice."""
        choice = scores.detach() if self.correction is None else scores.detach() + self.correction
        if self.groups > 1:
            grouped = choice.unflatten(-1, (self.groups, -1))
            best = self.rule.group(grouped).topk(self.top_groups).indices
            open_ = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter(-1, best, True)
            choice = grouped.masked_fill(~open_[..., None], float("-inf")).flatten(-2)
        chosen = choice.topk(self.top).indices
        weights = scores.gather(-1, chosen)
        if self.rule.normalise:
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-20)
        return chosen, weights * self.scale

    def tell(self, scores: Tensor, chosen: Tensor, keep: Tensor | None, ctx: AttentionContext) -> None:
        """Note what the auxiliary loss needs of the real tokens, and correct the next choices while training."""
        load = count(chosen, len(self.experts), keep).to(scores.dtype)
        if self.auxiliary_loss.weight and ctx.notes is not None:
            shares = scores / scores.sum(-1, keepdim=True)
            shares = shares if keep is None else shares * keep[:, None]
            ctx.note(self.auxiliary_loss, torch.stack([load, shares.sum(0)]))
        if self.correction is not None and self.speed is not None and self.training:
            self.correction += self.speed * (load.mean() - load).sign()

    def dispatch(self, x: Tensor, chosen: Tensor, weights: Tensor, keep: Tensor | None, ctx: AttentionContext):
        """The weighted outputs [N, D] of the experts of each token, none of which sees a token that is not its own."""
        order = chosen.flatten().argsort(stable=True)  # of the N * top pairs, by expert
        rows = order // self.top
        sizes = portions(chosen, len(self.experts))
        out = []
        for expert, own in zip(self.experts, rows.split(sizes), strict=False):
            told = ctx if keep is None else replace(ctx, new_keep=keep[own][None])
            out.append(expert(x[own][None], told)[0])
        pairs = torch.cat(out)[order.argsort()].unflatten(0, chosen.shape)  # [N, top, D]
        return (weights[..., None] * pairs).sum(1)


def count(chosen: Tensor, experts: int, keep: Tensor | None = None) -> Tensor:
    """How many tokens (of those that are real) chose each expert: [N, top] -> [E]."""
    ones = torch.ones_like(chosen) if keep is None else keep[:, None].expand_as(chosen).to(chosen.dtype)
    none = torch.zeros(experts, dtype=chosen.dtype, device=chosen.device)
    return none.scatter_add(0, chosen.flatten(), ones.flatten())


def portions(chosen: Tensor, experts: int) -> list[int]:
    """How many of the N * top pairs each expert gets. On the meta device, where nothing is chosen, the first takes them
    all: the others are made alike, and so it costs the same.
    """
    if chosen.is_meta:
        return [chosen.numel()]
    return count(chosen, experts).tolist()


def check(
    experts: int, top: int, groups: int, top_groups: int, balance: float, correct: float | None, router: RouterName
) -> None:
    for name, value in {"experts": experts, "top": top, "groups": groups, "top_groups": top_groups}.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it should be at least 1")
    if experts % groups:
        raise ValueError(f"groups is {groups}; it should divide the {experts} experts")
    if top_groups > groups:
        raise ValueError(f"top_groups is {top_groups}; there are {groups} groups")
    size = experts // groups
    if top > top_groups * size:
        raise ValueError(f"top is {top}; {top_groups * size} experts can be chosen from")
    if groups > 1 and router == "sigmoid" and size < 2:
        raise ValueError(f"groups is {groups}; a group counts by its two best experts, so it should hold two")
    if ROUTERS[router].normalise and top < 2:
        raise ValueError("top is 1; its weight would always be 1 and teach the router nothing; 'moe-softmax' can do it")
    if balance < 0:
        raise ValueError(f"balance is {balance}; it should be at least 0")
    if correct is not None and not correct >= 0:
        raise ValueError(f"correct is {correct}; it should be at least 0, or null")
