"""A model under test, and the batches that it is tested with.

B batch, N tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from zoo.declare.library import Library, open_library
from zoo.declare.shape import Shape
from zoo.declare.spec import ModelSpec, Node
from zoo.model.builder import build_and_run, make
from zoo.parts import Architecture
from zoo.registry import Registry
from zoo.train import metrics

from .harness import Subject

Module = TypeVar("Module", bound=nn.Module)
Model = str | Mapping[str, Any]
"""A model as a user declares it: a preset's name, or a mapping of slots."""
Sizes = str | Mapping[str, Any] | None

TOLERANCE = 1e-5
ROUNDING = 1e-12
"""What float64 may differ by where the same products are summed in another order."""
SHAPES = {
    "even": {"d_model": 24, "n_heads": 4, "n_layers": 2, "vocab_size": 17, "max_len": 32},
    # Heads 5 wide: their scale is no exact number, so that an order of operations shows.
    "odd": {"d_model": 20, "n_heads": 4, "n_layers": 2, "vocab_size": 17, "max_len": 32},
    "factorised": {
        "d_model": 18, "n_heads": 6, "head_dim": 4, "d_embed": 10, "n_layers": 3, "vocab_size": 17, "max_len": 32,
    },
}  # fmt: skip
"""Small models. Queries have several heads per key head where there are groups, and widths are no powers of two."""


@dataclass(frozen=True)
class ModelCase:
    """A model under test: what was declared, and the module, in eval mode, with every parameter perturbed.

    It is in float64, so that what differs is a fault and no rounding.
    """

    spec: Mapping[str, Any]
    shape: Mapping[str, Any]
    library: Library
    model: Architecture
    subject: Subject | None = None

    @classmethod
    def of(
        cls, model: Model, shape: Sizes = None, registry: Registry | None = None, subject: Subject | None = None
    ) -> ModelCase:
        """`model` and `shape` as in `zoo.build`; `subject` is the variant in it that is tested, if one is. Raises
        `SpecError` if the model cannot be.
        """
        library = open_library(registry=registry)
        reader = library.reader()
        spec = library.expand("model", Node(model, ("model",)), reader).plain()
        sizes = library.expand("shape", Node(shape or SHAPES["even"], ("shape",)), reader).plain()
        reader.finish()
        return cls(spec, sizes, library, perturb(build_model(library, spec, sizes).double()), subject)

    @property
    def label(self) -> str:
        return f"{json.dumps(self.spec)}, shape: {json.dumps(self.shape)}"

    def build(self, seed: int = 0, dropout: float = 0.0, **slots: Any) -> Architecture:
        """The same model with its initial weights, or one that differs in some slots, in eval mode."""
        return (
            build_model(self.library, {**self.spec, **slots}, {**self.shape, "dropout": dropout}, seed).double().eval()
        )

    def read_specs(self, spec: Mapping[str, Any] | None = None) -> tuple[ModelSpec, Shape]:
        """The model, or another one, and the shape as the builder takes them. Raises `SpecError`."""
        return read_specs(self.library, spec or self.spec, self.shape)

    def build_with(
        self,
        given: Mapping[str, Any],
        model: Mapping[str, Any] | None = None,
        shape: Mapping[str, Any] | None = None,
    ) -> Architecture:
        """The model, or another one that the variant under test stands in, with further options of this variant, and
        its initial weights. Raises `SpecError`.
        """
        subject, model = self.subject, model or self.spec
        assert subject is not None, "options are those of the variant under test"
        part = {"name": subject.name, **subject.options, **given}
        model = {**model, subject.slot: replace_part(model[subject.slot], subject.name, part)}
        specs = read_specs(self.library, model, shape or self.shape)
        build_and_run(*specs, self.library.registry, "cpu")
        return make(*specs, registry=self.library.registry).double().eval()

    def draw(self, *size: int, seed: int = 0) -> Tensor:
        """Ids of tokens that are not reserved."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(4, self.model.shape.vocab_size, size, generator=generator)

    def pad(self, rows: Sequence[Tensor], side: str) -> tuple[Tensor, Tensor]:
        """Rows of ids as one [B, N], filled on one side, and what is real. The pads are ids like any other."""
        width = max(map(len, rows)) + 1
        ids = self.draw(len(rows), width, seed=9)
        keep = torch.zeros(len(rows), width, dtype=torch.bool)
        for i, row in enumerate(rows):
            place = slice(width - len(row), width) if side == "left" else slice(len(row))
            ids[i, place], keep[i, place] = row, True
        return ids, keep

    @property
    def source(self) -> Tensor:
        return self.draw(3, 5, seed=1)

    @property
    def target(self) -> Tensor:
        return self.draw(3, 9, seed=2)

    @property
    def inputs(self) -> Tensor:
        """What a model that reads on is given in place of the target: the token before each."""
        target = self.target
        return torch.cat([torch.full_like(target[:, :1], self.model.shape.bos), target[:, :-1]], 1)

    def passes(self) -> Iterator[tuple[Tensor | None, bool]]:
        """The sources that the target can be read with, and whether the two are aligned."""
        yield self.source, False
        if not self.model.needs_source:
            yield None, False
        if not self.model.autoregressive:
            yield self.draw(3, 9, seed=3), True

    @property
    def exact(self) -> float:
        """The tolerance of what should be equal bit for bit: 0, or rounding where a part says that it `regroups`."""
        return ROUNDING if any(getattr(m, "regroups", False) for m in self.model.modules()) else 0.0

    def fail(self, text: str) -> NoReturn:
        raise AssertionError(f"{text} Model: {self.label}.")

    def check_equal(self, got: Tensor, expected: Tensor, changed: str, kept: str, tolerance: float = TOLERANCE) -> None:
        """Raise `AssertionError` if the two differ by more than `tolerance` times the largest value above 1."""
        if got.shape != expected.shape:
            self.fail(f"{changed}: {kept} should be {list(expected.shape)} and are {list(got.shape)}.")
        if not got.numel():
            return
        gap = torch.where(got.isfinite() & expected.isfinite(), (got - expected).abs(), math.inf)
        allowed = tolerance * max(1.0, expected.abs().max().item()) if tolerance else 0.0
        if gap.max() > allowed:
            at = [int(i) for i in torch.unravel_index(gap.argmax(), gap.shape)]
            self.fail(
                f"{changed}: {kept} should have stayed equal, to within {allowed:.1g}, and differ by up to "
                f"{gap.max().item():.3g}, most at {at}."
            )


def read_specs(library: Library, model: Mapping[str, Any], shape: Mapping[str, Any]) -> tuple[ModelSpec, Shape]:
    reader = library.reader()
    spec, sizes = reader.model(Node(model, ("model",))), reader.shape(Node(shape, ("shape",)))
    reader.finish()
    assert spec and sizes  # else finish() has raised
    return spec, sizes


def replace_part(value: Any, name: str, part: Mapping[str, Any]) -> Any:
    """The value of a slot with one variant in it replaced."""
    if value == name or (isinstance(value, Mapping) and value.get("name") == name):
        return part
    if isinstance(value, Mapping) and "name" not in value:
        return {key: replace_part(inner, name, part) for key, inner in value.items()}
    return [replace_part(inner, name, part) for inner in value] if isinstance(value, list) else value


def build_model(library: Library, model: Mapping[str, Any], shape: Mapping[str, Any], seed: int = 0) -> Architecture:
    """As `zoo.build`, without its trial pass."""
    return make(*read_specs(library, model, shape), seed=seed, registry=library.registry)


@torch.no_grad()
def perturb(model: Module, seed: int = 1) -> Module:
    """Perturb every parameter, gains and biases too: a weight of 1 or 0 hides whether it is used."""
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.add_(torch.randn(p.shape, generator=generator) * (0.3 if p.ndim < 2 else p.shape[-1] ** -0.5))
    return model.eval()


def compute_gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor | None]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True))


def compute_mean_nll(model: Architecture, source: Tensor | None, target: Tensor, **given: Any) -> Tensor:
    return metrics.token_nll(model(source, target, **given), target).mean()


def change_ids(ids: Tensor) -> Tensor:
    """An id that differs from each."""
    return torch.where(ids == 5, 6, 5)
