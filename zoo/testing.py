"""What any model must do, whatever its parts: checks for the zoo's own variants and for a plugin's.

    from zoo.testing import check_model, check_variant

    check_variant("ffn", "my-ffn", width=32)
    check_model({"architecture": "my-architecture", "ffn": {"name": "my-ffn", "width": 32}})

Every check compares a model with itself, so none knows a variant. B batch, S source tokens, T target tokens,
V vocabulary.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from . import measure
from .builder import build
from .faults import SpecError
from .hooks import SLOTS
from .library import open_library
from .parts import Architecture, Batch, Kernel
from .spec import MODEL_SLOTS, Node
from .stack import Stack

TOLERANCE = 1e-5
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
class Result:
    """One check that a model passed, or why it does not apply to it."""

    model: str
    check: str
    skipped: str = ""


@dataclass(frozen=True)
class Case:
    """A model under test: what was declared, and the module, in eval mode, with every parameter perturbed."""

    spec: Mapping[str, Any]
    shape: Mapping[str, Any]
    registry: Any
    model: Architecture

    @classmethod
    def of(cls, model, shape=None, registry=None) -> Case:
        """`model` and `shape` as in `zoo.build`. Raises `SpecError` if the model cannot be."""
        library = open_library(registry=registry)
        reader = library.reader()
        spec = library.expand("model", Node(model, ("model",)), reader).plain()
        sizes = library.expand("shape", Node(shape or SHAPES["even"], ("shape",)), reader).plain()
        reader.finish()
        return cls(spec, sizes, library.registry, loud(build(spec, shape=sizes, registry=library.registry)))

    def build(self, seed: int = 0, dropout: float = 0.0, **slots: Any) -> Architecture:
        """The same model with its initial weights, or one that differs in some slots, in eval mode."""
        shape = {**self.shape, "dropout": dropout}
        return build({**self.spec, **slots}, shape=shape, seed=seed, registry=self.registry).eval()

    def draw(self, *size: int, seed: int = 0) -> Tensor:
        """Ids of tokens that are not reserved."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(4, self.model.shape.vocab_size, size, generator=generator)

    @property
    def source(self) -> Tensor:
        return self.draw(3, 5, seed=1)

    @property
    def target(self) -> Tensor:
        return self.draw(3, 9, seed=2)

    def passes(self) -> Iterator[tuple[Tensor | None, bool]]:
        """The sources that the target can be read with, and whether the two are aligned."""
        yield self.source, False
        if not self.model.needs_source:
            yield None, False
        if not self.model.autoregressive:
            yield self.draw(3, 9, seed=3), True

    def fail(self, text: str) -> NoReturn:
        raise AssertionError(f"{text} Model: {json.dumps(self.spec)}, shape: {json.dumps(self.shape)}.")

    def same(self, got: Tensor, expected: Tensor, changed: str, kept: str, tolerance: float = TOLERANCE) -> None:
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


@torch.no_grad()
def loud(model: nn.Module, seed: int = 1) -> nn.Module:
    """Perturb every parameter, gains and biases too: a weight of 1 or 0 hides whether it is used."""
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p += torch.randn(p.shape, generator=generator) * (0.3 if p.ndim < 2 else p.shape[-1] ** -0.5)
    return model.eval()


def pad(rows: Sequence[Tensor], side: str, seed: int = 9) -> tuple[Tensor, Tensor]:
    """Rows of ids as one [B, N], filled on one side, and what is real. The pads are ids like any other."""
    width = max(map(len, rows)) + 1
    ids = torch.randint(4, 17, (len(rows), width), generator=torch.Generator().manual_seed(seed))
    keep = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, row in enumerate(rows):
        place = slice(width - len(row), width) if side == "left" else slice(len(row))
        ids[i, place], keep[i, place] = row, True
    return ids, keep


def gradient(model: nn.Module, loss: Tensor) -> dict[str, Tensor | None]:
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True))


def mean_nll(model: Architecture, source: Tensor | None, target: Tensor, **given) -> Tensor:
    return measure.token_nll(model(source, target, **given), target).mean()


def runs(case: Case) -> None:
    """Logits are [B, T, V] and finite, in both modes."""
    for (source, aligned), training in product(case.passes(), (False, True)):
        model = case.build(dropout=0.1).train(training)
        with torch.random.fork_rng(devices=[]):
            logits = model(source, case.target, aligned=aligned)
        expected = [*case.target.shape, model.shape.vocab_size]
        if list(logits.shape) != expected or not logits.isfinite().all():
            case.fail(f"The logits are {list(logits.shape)} with {logits.isfinite().sum()} finite values; "
                      f"they should be {expected} and all finite.")  # fmt: skip


def gradients(case: Case) -> None:
    """Every parameter has a part in the loss."""
    found = gradient(case.model, mean_nll(case.model, case.source, case.target))
    dead = [name for name, g in found.items() if g is None or not g.abs().sum() > 0]
    if dead:
        case.fail(f"The loss was differentiated: every parameter should have a finite gradient that is not zero "
                  f"everywhere, and {', '.join(dead)} have none.")  # fmt: skip


def kernels(case: Case) -> str | None:
    """Every kernel gives the same logits and gradients with the same weights. One with weights of its own is alone."""
    source, source_keep = pad([case.draw(n, seed=n) for n in (5, 0, 3)], "left")
    target, target_keep = pad([case.draw(n, seed=n) for n in (9, 4, 6)], "right")
    state, others = case.model.state_dict(), []
    for entry in case.registry.variants("kernel"):
        try:
            other = case.build(kernel=f"{entry.plugin}:{entry.variant.name}")
        except SpecError:
            continue
        if other.state_dict().keys() != state.keys():
            continue
        other.load_state_dict(state)
        others.append(other)
        for given in ({}, {"source_keep": source_keep, "target_keep": target_keep}):
            changed = f"The kernel became '{entry.variant.name}'{', with padding' if given else ''}"
            ours, theirs = (model(source, target, **given) for model in (case.model, other))
            case.same(theirs, ours, changed, "the logits")
            grads = [
                torch.cat([g.flatten() for g in gradient(model, logits.square().mean()).values() if g is not None])
                for model, logits in ((case.model, ours), (other, theirs))
            ]
            case.same(grads[1], grads[0], changed, "the gradients")
    return None if others else "it takes no kernel"


@torch.no_grad()
def future(case: Case) -> None:
    """The logits of a target token depend on the tokens before it alone; without an order, on no target token."""
    model, target = case.model, case.target
    for source, aligned in case.passes():
        before = model(source, target, aligned=aligned)
        for t in range(target.shape[1]):
            other = target.clone()
            other[:, t] = torch.where(target[:, t] == 5, 6, 5)
            after = model(source, other, aligned=aligned)
            blind = t + 1 if model.autoregressive else target.shape[1]
            changed = f"Target token {t} became another"
            case.same(after[:, :blind], before[:, :blind], changed, f"the logits of tokens 0 to {blind - 1}", 0.0)
            if blind < target.shape[1] and torch.equal(after[:, blind], before[:, blind]):
                case.fail(f"{changed}: the logits of token {blind}, which follows it, should have changed and did not.")


@torch.no_grad()
def window(case: Case) -> str | None:
    """Where attention has a window of w, a token changes what lies up to w - 1 further on per layer, no more."""
    reach = reach_of(case)
    if reach is None:
        return "its attention has no window"
    model, length = case.model, reach + 4
    source, target = case.draw(2, length, seed=1), case.draw(2, length, seed=2)
    moved, first = (target, 1) if model.autoregressive else (source, 0)
    other = moved.clone()
    other[:, 0] = torch.where(moved[:, 0] == 5, 6, 5)
    aligned = not model.autoregressive
    before = model(source, target, aligned=aligned)
    after = model(*((source, other) if model.autoregressive else (other, target)), aligned=aligned)
    last = first + reach
    changed = f"The first token became another, and the windows of all layers reach {reach} tokens"
    case.same(after[:, last + 1 :], before[:, last + 1 :], changed, f"the logits from token {last + 1} on", 0.0)
    if torch.equal(after[:, last], before[:, last]):
        case.fail(f"{changed}: the logits of token {last} should have changed and did not.")


def reach_of(case: Case) -> int | None:
    """How many tokens the self-attentions of the last stack reach together; None where one sees everything."""
    stack = [m for m in case.model.modules() if isinstance(m, Stack)][-1]
    seen: dict[nn.Module, int | None] = {}
    spy = lambda kernel, args: seen.update({kernel: args[3].mask.window})  # noqa: E731
    hooks = [m.register_forward_pre_hook(spy) for m in stack.modules() if isinstance(m, Kernel)]
    case.model(case.source, case.target)
    for hook in hooks:
        hook.remove()
    reach = 0
    for number in range(stack.depth):
        layer = stack.layers[number % len(stack.layers)]
        own = layer.attention.modules() if "attention" in layer.steps else ()
        widths = [seen.get(m) for m in own if isinstance(m, Kernel)]
        if not widths or None in widths:
            return None
        reach += max(widths) - 1
    return reach


@torch.no_grad()
def decoding(case: Case) -> str | None:
    """Given tokens read from a cache, one by one, in chunks or after a padded prefix, have the whole pass's logits."""
    model, target = case.model, case.target
    if not model.autoregressive:
        return "it predicts all tokens at once"
    inputs = torch.cat([torch.full_like(target[:, :1], model.shape.bos), target[:, :-1]], 1)
    for source, _ in case.passes():
        whole = model(source, target)
        for sizes in ([1] * 9, [3, 5, 1], [1, 8], [9]):
            cache = model.start(source, room=9)
            steps = torch.cat([model.step(cache, ids) for ids in inputs.split(sizes, 1)], 1)
            case.same(steps, whole, f"{source_text(source)}The target was read in steps of {sizes}", "the logits")
        for side in ("left", "right"):
            after_prefix(case, source, inputs, whole, side)
    return None


def after_prefix(case: Case, source: Tensor | None, inputs: Tensor, whole: Tensor, side: str) -> None:
    """Rows whose prefixes have different lengths are read on, token by token."""
    model, lengths = case.model, (6, 2, 4)
    ids, keep = pad([row[:n] for row, n in zip(inputs, lengths, strict=True)], side)
    cache = model.start(source, room=ids.shape[1] + 3)
    steps = [model.step(cache, ids, keep)]
    for t in range(3):
        steps.append(model.step(cache, torch.stack([row[n + t] for row, n in zip(inputs, lengths, strict=True)])[:, None]))
    keep = torch.cat([keep, torch.ones(3, 3, dtype=torch.bool)], 1)
    for i, n in enumerate(lengths):
        changed = f"{source_text(source)}A prefix of {n} tokens was padded on the {side} and read on token by token"
        case.same(torch.cat(steps, 1)[i][keep[i]], whole[i, : n + 3], changed, "the logits of the real tokens")


def source_text(source: Tensor | None) -> str:
    return "Without a source: " if source is None else ""


def padding(case: Case) -> None:
    """A row has the same logits and loss alone and padded on either side, a row that is all padding included."""
    lengths = [((5, 2, 0, 4), (7, 3, 4, 0), False)]
    if not case.model.autoregressive:
        lengths.append(((6, 2, 0, 4), (6, 2, 0, 4), True))
    for source_lengths, target_lengths, aligned in lengths:
        sources = [case.draw(n, seed=n) for n in source_lengths]
        targets = [case.draw(n, seed=n + 1) for n in target_lengths]
        alone = [
            case.model(s[None], t[None], aligned=aligned).detach()[0] if len(t) else None
            for s, t in zip(sources, targets, strict=True)
        ]
        for sides in product(("left", "right"), repeat=2):
            if not aligned or len(set(sides)) == 1:
                padded(case, sources, targets, alone, aligned, *sides)


def padded(case: Case, sources, targets, alone, aligned: bool, source_side: str, target_side: str) -> None:
    source, source_keep = pad(sources, source_side)
    target, target_keep = pad(targets, target_side)
    logits = case.model(source, target, source_keep=source_keep, target_keep=target_keep, aligned=aligned)
    changed = f"Sources were padded on the {source_side} and targets on the {target_side}"
    if not logits.isfinite().all():
        case.fail(f"{changed}: all logits should be finite, those over pads too, and {(~logits.isfinite()).sum()} are not.")
    total = 0.0
    for i, (row, own) in enumerate(zip(targets, alone, strict=True)):
        if own is not None:
            kept = f"the logits of row {i}, with {len(sources[i])} source and {len(row)} target tokens,"
            case.same(logits[i][target_keep[i]], own, changed, kept)
            total += measure.token_nll(own, row).sum()
    batch = Batch(source, target, target_keep.float(), source_keep, target_keep, aligned)
    loss, _ = measure.loss(logits, batch)
    case.same(loss, torch.as_tensor(total), changed, "the summed loss of all rows")
    bad = [name for name, g in gradient(case.model, loss).items() if g is not None and not g.isfinite().all()]
    if bad:
        case.fail(f"{changed}: the gradients should be finite, and those of {', '.join(bad)} are not.")


@torch.no_grad()
def rows(case: Case) -> None:
    """A row of a batch does not see the others."""
    for source, aligned in case.passes():
        before = case.model(source, case.target, aligned=aligned)
        if source is not None:
            source = source.clone()
            source[1] = 5
        target = case.target
        target[1] = 6
        after = case.model(source, target, aligned=aligned)
        case.same(after[::2], before[::2], "The second row of a batch was replaced", "the logits of the others", 0.0)


@torch.no_grad()
def dropout(case: Case) -> None:
    """Dropout acts while training and leaves no trace in eval."""
    model = case.build(dropout=0.5)
    model.load_state_dict(case.model.state_dict())
    for source, aligned in case.passes():
        read = functools.partial(model, source, case.target, aligned=aligned)
        calm = case.model(source, case.target, aligned=aligned)
        with torch.random.fork_rng(devices=[]):
            for _ in range(2):
                case.same(read(), calm, "The model was given a dropout of 0.5", "the logits in eval mode", 0.0)
            model.train()
            if torch.equal(read(), read()):
                case.fail("The model was given a dropout of 0.5: two passes while training should differ and do not.")
            model.eval()


@torch.no_grad()
def round_trip(case: Case) -> None:
    """All that a model is lies in its state dict."""
    other = case.build(seed=1)
    other.load_state_dict(case.model.state_dict())
    for source, aligned in case.passes():
        read = functools.partial(Architecture.__call__, source=source, target=case.target, aligned=aligned)
        case.same(read(other), read(case.model), "The weights were loaded into a model of another seed", "the logits", 0.0)


@torch.no_grad()
def copies(case: Case) -> None:
    """A copy, and a copy in another dtype, tie the same parameters, and work."""
    ties = tied(case.model)
    before = case.model(case.source, case.target)
    for name, twin in {
        "copied": copy.deepcopy(case.model),
        "copied to float64": copy.deepcopy(case.model).to(torch.float64),
        "copied to bfloat16": copy.deepcopy(case.model).to(torch.bfloat16),
    }.items():
        if tied(twin) != ties:
            case.fail(f"The model was {name}: these parameters should be one, {ties}, and these are, {tied(twin)}.")
        after = twin(case.source, case.target)
        if not after.isfinite().all():
            case.fail(f"The model was {name}: all logits should be finite.")
        if after.dtype != torch.bfloat16:
            case.same(after.to(before.dtype), before, f"The model was {name}", "the logits", TOLERANCE)
        for p in twin.parameters():
            p.zero_()
    case.same(case.model(case.source, case.target), before, "The weights of copies were changed", "the original's logits", 0.0)


def tied(model: nn.Module) -> list[list[str]]:
    """Groups of names that stand for one parameter."""
    names: dict[int, list[str]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return sorted(group for group in names.values() if len(group) > 1)


def learning(case: Case) -> None:
    """A small step down the gradient lowers the loss."""
    model = case.build()
    before = mean_nll(model, case.source, case.target)
    found = {name: g for name, g in gradient(model, before).items() if g is not None}
    step = 0.01 / sum(g.square().sum() for g in found.values())
    with torch.no_grad():
        for name, g in found.items():
            model.get_parameter(name).sub_(step * g)
        after = mean_nll(model, case.source, case.target)
    if not after < before:
        case.fail(f"A step went down the gradient: the loss should have fallen by about 0.01 and went from {before:.5f} "
                  f"to {after:.5f}.")  # fmt: skip


def untrained(case: Case) -> None:
    """A model that has learned nothing gives each of V tokens about 1 / V."""
    loss, chance = mean_nll(case.build(), case.source, case.target).item(), math.log(case.model.shape.vocab_size)
    if not abs(loss - chance) <= 0.4:
        case.fail(f"Nothing was trained: the loss should be within 0.4 of ln V = {chance:.3f} and is {loss:.3f}.")


def generation(case: Case) -> None:
    """A row of a batch is written as if it were alone, and is padded after the token that ends it."""
    sources = [case.draw(n, seed=n) for n in (5, 2, 3)]
    prefixes = [case.draw(n, seed=n) for n in (1, 4, 2)] if case.model.autoregressive else None
    for side, stop in product(("left", "right"), ((), None)):
        source, source_keep = pad(sources, side)
        given = {"source_keep": source_keep}
        if prefixes is not None:
            given["prefix"], given["prefix_keep"] = pad(prefixes, side)
            free = case.model.generate(source, 6, stop=(), **given)
            stop = [int(free[0, 1])] if stop is None else stop
            given["stop"] = stop
        together = case.model.generate(source, 6, **given)
        for i, row in enumerate(sources):
            own = {"prefix": prefixes[i][None], "stop": stop} if prefixes is not None else {}
            changed = f"Rows were written together, padded on the {side}, stopping at {stop}"
            case.same(together[i], case.model.generate(row[None], 6, **own)[0], changed, f"the tokens of row {i}", 0.0)
        ended = torch.isin(together, torch.tensor(stop or [], dtype=torch.long)).cumsum(1).roll(1, 1)[:, 1:] > 0
        if stop and (together[:, 1:][ended] != case.model.shape.pad).any():
            case.fail(f"Rows were written that end at {stop}: only pads should follow it, and they are {together.tolist()}.")


CHECKS: dict[str, Callable[[Case], str | None]] = {
    check.__name__: check
    for check in (
        runs, gradients, kernels, future, window, decoding, padding, rows, dropout, round_trip, copies, learning,
        untrained, generation,
    )
}  # fmt: skip


def check_model(model, shape=None, *, registry=None) -> list[Result]:
    """Run every check on the model that `model` and `shape` declare, as in `zoo.build`.

    Raises `AssertionError` with a paragraph for each check that failed, and `SpecError` if the model cannot be.
    """
    case = Case.of(model, shape, registry)
    results, failed = [], []
    for name, check in CHECKS.items():
        try:
            results.append(Result(json.dumps(case.spec), name, check(case) or ""))
        except AssertionError as error:
            failed.append(f"{name}: {error}")
        except Exception as error:
            error.add_note(f"while checking '{name}' of {json.dumps(case.spec)}, shape {json.dumps(case.shape)}")
            raise
    if failed:
        raise AssertionError("\n\n".join(failed))
    return results


def check_variant(slot: str, name: str, *, registry=None, **options: Any) -> list[Result]:
    """Put a variant, with these options, into each model of the zoo's own `registry.yaml` and check what comes out.

    A partner that refuses it is left out. Raises `AssertionError` if a check fails or all partners refuse it, and
    `ValueError` for a slot that no model has.
    """
    if slot not in MODEL_SLOTS:
        raise ValueError(f"'{slot}' is no slot of a model; these are: {', '.join(s for s in SLOTS if s in MODEL_SLOTS)}")
    library = open_library(registry=registry)
    part = {"name": name, **options} if options else name
    results, refusals = [], []
    for i, (partner, node) in enumerate(library.section("models").items()):
        spec = library.expand("model", node, library.reader()).plain() | {slot: part}
        try:
            results += check_model(spec, [*SHAPES.values()][i % len(SHAPES)], registry=registry)
        except SpecError as error:
            refusals.append(f"{partner}: {error}")
    if not results:
        raise AssertionError("\n".join([f"No model takes {slot} '{name}'.", *refusals]))
    return results
