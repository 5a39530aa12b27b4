"""How gradients change the weights.

Training needs four things of an optimizer, and every `torch.optim.Optimizer` has them: `param_groups` (each with its
`params` and `lr`), `step`, `state_dict` and `load_state_dict`. Those here call torch's own update functions without
torch's class around them, because constructing one imports torch._dynamo: 1.7 s of every run.

`params` are groups as torch has them. A group that carries its own `weight_decay` keeps it: matrices come without,
gains and biases with 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Lt
from torch import Tensor
from torch.optim.adamw import adamw as adamw_update
from torch.optim.sgd import sgd as sgd_update

State = dict[str, Tensor]
Update = Callable[[dict, list[Tensor], list[Tensor], list[State]], None]
Implementation = Literal["fused", "foreach"]
NotNegative = Annotated[float, Ge(0)]
Beta = Annotated[float, Ge(0), Lt(1)]


class Optimizer:
    """Groups, the state of every parameter, and the function that updates both, in torch's layout.

    `start(p)` is the state of a parameter before its first update; `update(group, params, grads, states)` works in
    place; `defaults` fill what a group does not say.
    """

    def __init__(
        self, params: Sequence[dict], start: Callable[[Tensor], State], update: Update, defaults: dict[str, Any]
    ):
        self.param_groups = [{**defaults, **group, "params": list(group["params"])} for group in params]
        self.start = start
        self.update = update
        self.state: dict[Tensor, State] = {}

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                if p not in self.state:
                    self.state[p] = self.start(p)
            self.update(group, params, [p.grad for p in params], [self.state[p] for p in params])

    def state_dict(self) -> dict:
        order = self._order()
        state = {i: self.state[p] for i, p in enumerate(order) if p in self.state}
        place = {p: i for i, p in enumerate(order)}
        groups = [{**group, "params": [place[p] for p in group["params"]]} for group in self.param_groups]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, given: dict) -> None:
        order = self._order()
        for group, theirs in zip(self.param_groups, given["param_groups"], strict=True):
            group.update({k: v for k, v in theirs.items() if k != "params"})
        self.state = {
            order[i]: {name: x.to(order[i].device, copy=True) for name, x in state.items()}
            for i, state in given["state"].items()
        }

    def _order(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]


def adamw(
    params: Sequence[dict],
    *,
    betas: tuple[Beta, Beta] = (0.9, 0.98),
    eps: NotNegative = 1e-8,
    weight_decay: NotNegative = 0.1,
    implementation: Implementation = "fused",
) -> Optimizer:
    """Adam with decoupled decay: w -= lr (m / (sqrt(v) + eps) + weight_decay w) (Loshchilov & Hutter 2019).

    `weight_decay` acts on matrices. `implementation` changes speed and the last bits.
    """

    chosen: dict[str, Any] = {implementation: True}

    def start(p: Tensor) -> State:
        mean, square = torch.zeros_like(p), torch.zeros_like(p)
        return {"step": torch.zeros((), device=p.device), "exp_avg": mean, "exp_avg_sq": square}

    def update(group: dict, params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        means, squares, steps = ([s[k] for s in states] for k in ("exp_avg", "exp_avg_sq", "step"))
        adamw_update(
            params, grads, means, squares, [], steps, **chosen, amsgrad=False, maximize=False,
            beta1=group["betas"][0], beta2=group["betas"][1], **{k: group[k] for k in ("lr", "eps", "weight_decay")},
        )  # fmt: skip

    defaults = {"lr": 1e-3, "betas": list(betas), "eps": eps, "weight_decay": weight_decay}
    return Optimizer(params, start, update, defaults)


def sgd(
    params: Sequence[dict],
    *,
    momentum: NotNegative = 0.9,
    weight_decay: NotNegative = 0.0,
    implementation: Implementation = "fused",
) -> Optimizer:
    """Heavy ball: m = momentum m + g + weight_decay w; w -= lr m (Polyak 1964).

    `weight_decay` acts on matrices. `implementation` changes speed and the last bits.
    """

    chosen: dict[str, Any] = {implementation: True}

    def start(p: Tensor) -> State:
        return {"momentum_buffer": torch.zeros_like(p)} if momentum else {}

    def update(group: dict, params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        velocities = [s.get("momentum_buffer") for s in states]
        sgd_update(
            params, grads, velocities, **chosen, dampening=0, nesterov=False, maximize=False,
            **{k: group[k] for k in ("lr", "momentum", "weight_decay")},
        )  # fmt: skip

    return Optimizer(params, start, update, {"lr": 1e-2, "momentum": momentum, "weight_decay": weight_decay})
