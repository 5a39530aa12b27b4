"""Where the norms of a layer stand and how its steps (attention, FFN) join. Every x is [B, T, D]."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import torch
from torch import Tensor, nn

from zoo.parts import Place, Residual, Shape

Make = Callable[[], nn.Module]


def several(norm: Make, n: int) -> nn.ModuleList:
    return nn.ModuleList(norm() for _ in range(n))


class PreNorm(Residual):
    """x + step(norm(x)) for each step, and a norm after the last layer (Xiong et al. 2020).

    The first `bare` steps of a layer read x without a norm, as the first attention of ModernBERT does, which follows a
    norm already. Raises `ValueError` for more of them than there are steps.
    """

    def __init__(self, norm: Make, n_steps: int, *, bare: int = 0):
        super().__init__()
        if not 0 <= bare <= n_steps:
            raise ValueError(f"bare is {bare}; it should be at least 0 and at most the {n_steps} steps of the layer")
        self.norms = several(nn.Identity, bare).extend(several(norm, n_steps - bare))

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for norm, step in zip(self.norms, steps, strict=True):
            x = x + step(norm(x))
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class PostNorm(Residual):
    """norm(x + step(x)) for each step (Vaswani et al. 2017). Deep stacks need a warm-up of the learning rate."""

    needs_warmup = True

    def __init__(self, norm: Make, n_steps: int):
        super().__init__()
        self.norms = several(norm, n_steps)

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for norm, step in zip(self.norms, steps, strict=True):
            x = norm(x + step(x))
        return x


class SandwichNorm(Residual):
    """x + after(step(before(x))) for each step, and a norm after the last layer (Ding et al. 2021; Gemma 2)."""

    def __init__(self, norm: Make, n_steps: int):
        super().__init__()
        self.before = several(norm, n_steps)
        self.after = several(norm, n_steps)

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for before, after, step in zip(self.before, self.after, steps, strict=True):
            x = x + after(step(before(x)))
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class OutputNorm(Residual):
    """x + norm(step(x)) for each step, and a norm after the last layer (Liu et al. 2021, Swin v2; OLMo 2)."""

    def __init__(self, norm: Make, n_steps: int):
        super().__init__()
        self.norms = several(norm, n_steps)

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for norm, step in zip(self.norms, steps, strict=True):
            x = x + norm(step(x))
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class Parallel(Residual):
    """x + the sum of step(norm(x)), all steps on the same x (Wang and Komatsuzaki 2021, GPT-J).

    One norm serves all steps, as in GPT-J and PaLM, or each has its own with `per_step`, as in GPT-NeoX.
    """

    def __init__(self, norm: Make, n_steps: int, *, per_step: bool = False):
        super().__init__()
        self.norms = several(norm, n_steps if per_step else min(n_steps, 1))

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        views = [norm(x) for norm in self.norms]
        for view, step in zip(cycle(views), steps):
            x = x + step(view)
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class ReZero(Residual):
    """x + w * step(norm(x)) for each step, w one learned number per layer, 0 at first (Bachlechner et al. 2020).

    With `norm: none` this is the published layout, which needs no norm to train deep.
    """

    gain = 1.0

    def __init__(self, norm: Make, n_steps: int):
        super().__init__()
        self.norms = several(norm, n_steps)
        self.weight = nn.Parameter(torch.zeros(())) if n_steps else None

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        if self.weight is None:
            return x
        for norm, step in zip(self.norms, steps, strict=True):
            x = x + self.weight * step(norm(x))
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class LayerScale(Residual):
    """x + w * step(norm(x)), w [D] learned for each step and `init` at first (Touvron et al. 2021, CaiT).

    `init` is the paper's unless given: 0.1 for up to 18 layers, 1e-5 for up to 24 and 1e-6 beyond. Raises `ValueError`
    for an init that is not above 0.
    """

    gain = 1.0

    def __init__(self, norm: Make, n_steps: int, shape: Shape, layer: Place, *, init: float | None = None):
        super().__init__()
        if init is not None and not init > 0:
            raise ValueError(f"init is {init}; it should be above 0")
        first = init or (0.1 if layer.depth <= 18 else 1e-5 if layer.depth <= 24 else 1e-6)
        self.norms = several(norm, n_steps)
        self.scales = nn.ParameterList(torch.full((shape.d_model,), first) for _ in range(n_steps))

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for scale, norm, step in zip(self.scales, self.norms, steps, strict=True):
            x = x + scale * step(norm(x))
        return x

    def final(self, norm: Make) -> nn.Module:
        return norm()


class DeepNorm(Residual):
    """norm(alpha * x + step(x)) for each step, alpha growing with depth (Wang et al. 2022).

    The paper scales the initial weights of the value and the output projection, and of both FFN matrices, by beta.
    Only their product reaches the residual stream, so here beta squared is put on the output alone.
    """

    def __init__(self, norm: Make, n_steps: int, layer: Place):
        super().__init__()
        self.norms = several(norm, n_steps)
        self.alpha, beta = depth_scales(layer)
        self.gain = beta**2

    def forward(self, x: Tensor, *steps: Callable[[Tensor], Tensor]) -> Tensor:
        for norm, step in zip(self.norms, steps, strict=True):
            x = norm(self.alpha * x + step(x))
        return x


def depth_scales(layer: Place) -> tuple[float, float]:
    """alpha and beta for N encoder and M decoder layers (Wang et al. 2022, table of figure 2).

    One stack of N: (2N)^1/4, (8N)^-1/4. With both, the encoder: 0.81 (N^4 M)^1/16, 0.87 (N^4 M)^-1/16, and the
    decoder: (3M)^1/4, (12M)^-1/4.
    """
    depths = layer.depths
    if not {"encoder", "decoder"} <= depths.keys():
        return (2 * layer.depth) ** 0.25, (8 * layer.depth) ** -0.25
    if layer.stack == "decoder":
        return (3 * layer.depth) ** 0.25, (12 * layer.depth) ** -0.25
    both = (depths["encoder"] ** 4 * depths["decoder"]) ** (1 / 16)
    return 0.81 * both, 0.87 / both
