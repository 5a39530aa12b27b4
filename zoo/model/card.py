"""What a model is made of and what it costs at its sizes, without weights; and what two models have apart."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from zoo import numbers
from zoo.declare.library import Library
from zoo.declare.shape import Shape
from zoo.declare.spec import ModelSpec, Node
from zoo.faults import SpecError
from zoo.parts import Architecture, Kernel, OutputProjection

from .builder import bind_on_meta, describe_error
from .cost import count_flops_per_token, make_rows, start_cache
from .stack import Stack

STEPS = ("attention", "cross", "ffn")


@dataclass(frozen=True)
class Card:
    """A model at some sizes, its costs counted for one row of `context` tokens.

    `depths` are the layers of its stacks, `widths` the different ones inside its FFNs, `kernels` what really computes
    the attention. `parameters` counts by part, tied weights once: qk-norms belong to the attention, the norm of the
    embedding to the embedding, all other norms to the residual. `flops_per_token` is of a forward pass, a multiply-add
    counted as two, of scores those that the mask lets through. `kv_bytes_per_token` is what the cache grows by in
    float16, None where nothing is cached; `kv_bytes` is all of it once the row has been read, a source of as many
    tokens and what does not grow included.
    """

    name: str
    spec: ModelSpec
    shape: Shape
    context: int
    depths: tuple[int, ...]
    widths: tuple[int, ...]
    kernels: tuple[str, ...]
    parameters: dict[str, int]
    flops_per_token: int
    kv_bytes_per_token: int | None
    kv_bytes: int | None
    weights_bytes: int

    @property
    def total(self) -> int:
        return sum(self.parameters.values())

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        published = self.spec.published
        return {
            "name": self.name,
            "model": self.spec.plain(),
            "shape": dataclasses.asdict(self.shape),
            "context": self.context,
            "widths": list(self.widths),
            "kernels": list(self.kernels),
            "parameters": {**self.parameters, "all": self.total},
            "published": published and dataclasses.asdict(published),
            "flops_per_token": self.flops_per_token,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "kv_bytes": self.kv_bytes,
            "weights_bytes": self.weights_bytes,
        }


def read_model(library: Library, name: str, shape: Any = None) -> tuple[ModelSpec, Shape]:
    """The model of that name and its sizes, or others that `shape` gives as in YAML. Raises `SpecError`."""
    reader = library.reader()
    named = library.find("models", name)
    node = library.expand("model", dataclasses.replace(named, value=name), reader)
    if shape is None and "shape" not in node.value:
        raise SpecError([named.fault(f"model '{name}' has no shape of its own; give it one")])
    written = library.expand("shape", Node({} if shape is None else shape, ("shape",)), reader)
    model, sizes = reader.sized(node, written)
    reader.finish()
    assert model is not None and sizes is not None, "what cannot be read is a fault, and `finish` raises it"
    return model, sizes


def make_card(library: Library, name: str, shape: Any = None, context: int | None = None) -> Card:
    """The card of a model for rows of `context` tokens, max_len of them unless given. Raises `SpecError`."""
    spec, sizes = read_model(library, name, shape)
    model = bind_on_meta(spec, sizes, library.registry).to(torch.float16)
    context = sizes.max_len if context is None else context
    source = 0 if model.autoregressive and not model.needs_source else context
    task = SimpleNamespace(source_len=source, target_len=context, aligned=not model.autoregressive)
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    try:
        for stack in stacks:
            stack.check(context)
    except ValueError as error:
        raise SpecError([spec.node.fault(str(error))]) from error
    steps = [layer.ffn for stack in stacks for layer in stack.layers if "ffn" in layer.steps]
    widths = tuple(
        dict.fromkeys(m.in_features for step in steps for m in step.modules() if isinstance(m, OutputProjection))
    )
    kernels = tuple(sorted({m.effective for m in model.modules() if isinstance(m, Kernel)}))
    parameters = count_by_part(model)
    try:
        costs = count_flops_per_token(model, task), *count_kv_bytes(model, task)
    except Exception as error:
        raise SpecError([spec.node.fault(f"the parts do not fit: {describe_error(error)}")]) from error
    depths = tuple(stack.depth for stack in stacks)
    return Card(name, spec, sizes, context, depths, widths, kernels, parameters, *costs, 2 * sum(parameters.values()))


def count_kv_bytes(model: Architecture, task) -> tuple[int | None, int | None]:
    """What the cache grows by per token, and all of it for the task's longest row."""
    if not model.autoregressive:
        return None, None
    cache = start_cache(model, *make_rows(task, 1), room=task.target_len)
    return cache.bytes_per_token(), cache.nbytes()


def count_by_part(model: Architecture) -> dict[str, int]:
    """Parameters by part, each counted once, where it is met first."""
    counts: Counter[str] = Counter()
    for path, parameter in model.named_parameters():
        counts[find_owner(path.split("."))] += parameter.numel()
    order = ("embedding", "position", *STEPS, "residual", "head", "rest")
    return {part: counts[part] for part in order if counts[part]}


def find_owner(path: list[str]) -> str:
    """The slot whose part holds a parameter, from the names of the modules that lead to it."""
    if path[0] == "head":
        return "head"
    places = {"embedding": "embedding", "positions": "position", "final": "residual"}
    if len(path) > 3 and path[1] == "layers":
        return path[3] if path[3] in (*STEPS, "residual") else "rest"
    return places.get(path[1], "rest") if len(path) > 1 else "rest"


Cells = list[tuple[str, str]]


def list_facts(card: Card) -> dict[str, Cells]:
    """All that a card says, in words, by section."""
    size = {f.name: getattr(card.shape, f.name) for f in dataclasses.fields(Shape)}
    default = {f.name: f.default for f in dataclasses.fields(Shape)}
    main = ("d_model", "n_heads", "n_layers", "max_len", "vocab_size")
    cached: Callable[[int | None], str] = lambda value: numbers.size(value) or "nothing is cached"  # noqa: E731
    sections = {
        "parts": [*((slot, value.label()) for slot, value in card.spec.slots.items()), *describe_sharing(card.spec)],
        "sizes": [
            *((k, f"{v:,}" if k in main else str(v)) for k, v in size.items() if k in main or v != default[k]),
            ("inside the FFN", " / ".join(f"{width:,}" for width in card.widths)),
        ],
        "parameters": [(k, numbers.count(v)) for k, v in {**card.parameters, "all": card.total}.items()],
        f"costs in a row of {card.context:,} tokens": [
            ("computed by", ", ".join(card.kernels)),
            ("FLOPs per token", numbers.flops(card.flops_per_token)),
            ("KV per token, fp16", cached(card.kv_bytes_per_token)),
            ("KV of the row, fp16", cached(card.kv_bytes)),
            ("weights, fp16", numbers.size(card.weights_bytes)),
        ],
    }
    return {section: [(what, text) for what, text in rows if text] for section, rows in sections.items()}


def describe_sharing(spec: ModelSpec) -> Cells:
    return [("share", str(spec.share))] if spec.share else []


def compare_with_published(card: Card) -> str:
    """How the count stands to what was published of the model; nothing where nothing was."""
    known = card.spec.published
    if known is None:
        return ""
    same = "as published" if card.total == known.parameters else f"published: {known.parameters:,}"
    if known.body is None:
        return same
    pooler = f" and with a pooler of {known.pooler:,}" if known.pooler else ""
    return f"{same}; known as {known.body:,}, counted without the head{pooler}"


def list_differences(one: Card, other: Card) -> list[tuple[str, str, str]]:
    """What differs: the thing, and what each of the two has of it."""
    out = []
    for (section, mine), (_, theirs) in zip(list_facts(one).items(), list_facts(other).items(), strict=True):
        of = "parameters: " if section == "parameters" else ""
        left, right = ({of + what: text for what, text in rows} for rows in (mine, theirs))
        out += [(k, left.get(k, ""), right.get(k, "")) for k in left | right if left.get(k) != right.get(k)]
    if one.context != other.context:
        out.append(("counted for rows of", f"{one.context:,} tokens", f"{other.context:,} tokens"))
    return out


OVERVIEW = (
    "model", "parameters", "published", "layers", "d_model", "d_ff", "heads", "position", "norm", "residual",
    "attention", "ffn", "tokens", "FLOPs/token", "KV/token", "paper",
)  # fmt: skip


def summarise_card(card: Card) -> list[str]:
    """One line of a table of models."""
    shape, slots = card.shape, card.spec.slots
    layers = " + ".join(map(str, card.depths))
    widths = " / ".join(f"{width:,}" for width in card.widths)
    sizes = [layers, f"{shape.d_model:,}", widths, f"{shape.n_heads} x {shape.head_width}"]
    parts = [slots[slot].label() for slot in ("position", "norm", "residual", "attention", "ffn")]
    costs = [f"{card.context:,}", numbers.flops(card.flops_per_token), numbers.size(card.kv_bytes_per_token)]
    paper = card.spec.published.paper if card.spec.published else ""
    return [card.name, f"{card.total:,}", compare_with_published(card), *sizes, *parts, *costs, paper]
