"""What any table of another library's names must do, without that library: a tiny model goes out and comes back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from zoo.declare.spec import ModelSpec, Node
from zoo.faults import SpecError
from zoo.interop.family import Family, first_names
from zoo.interop.template import Settings, nest, parse_choice, parse_expression
from zoo.model.builder import make
from zoo.parts import Architecture

from .harness import Suite
from .model_case import perturb
from .part_case import PartCase, collect_checks, isolate

SIZES = {
    "d_model": 32, "n_heads": 4, "head_dim": 8, "n_layers": 2, "max_len": 16, "vocab_size": 19, "d_ff": 128, "pad": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Tiny:
    """A small configuration of the other library, and the model that it stands for."""

    config: Mapping[str, Any]
    spec: ModelSpec
    model: Architecture


def build_family(case: PartCase) -> Family:
    return case.make()


def list_choices(template: Any) -> Iterator[tuple[str, list, bool]]:
    """The settings that choose between alternatives, and what they may be."""
    if isinstance(template, Mapping):
        if found := parse_choice(template):
            yield found[0], list(found[1]), found[2]
        for inner in template.values():
            yield from list_choices(inner)
    elif isinstance(template, list):
        for inner in template:
            yield from list_choices(inner)


def make_configuration(family: Family, **own: Any) -> dict[str, Any]:
    """Settings of the other library that make a small model: a size of ours for a size, and few of all else."""
    found = Settings()
    for name, template in family.table["shape"].items():
        if name in SIZES and isinstance(template, str) and (known := parse_expression(template)):
            found.solve(known, SIZES[name], name)
    found.solve_waiting()
    chosen = {}
    for name, values, by_layer in list_choices(family.table["model"]):
        chosen[name] = [values[i % len(values)] for i in range(SIZES["n_layers"])] if by_layer else values[0]
    asked = family.variables - family.table["first"].keys()
    counted = dict.fromkeys(family.table["first"].values(), 1)  # a first layer that is another than the rest
    usual = {name: shrink(family.table["defaults"].get(name)) for name in asked}
    needed = {name: chosen.get(name, 2) for name in asked - family.table["defaults"].keys()}
    return nest({**needed, **drop_unset(usual), **counted, **family.table["config"], **found.found, **own})


def shrink(value: Any) -> Any:
    """A number of things as one that a small model can have: about the third root, a power of two, so that what
    divides does so still.
    """
    return max(2, 1 << round(math.log2(value) / 3)) if type(value) is int and value > 2 else value


def drop_unset(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def build_tiny(case: PartCase, family: Family, config: Mapping[str, Any]) -> Tiny:
    """The model of a configuration, every parameter moved. Raises `SpecError`."""
    model, sizes = family.read(config)
    reader = case.library.reader()
    spec, shape = reader.model(Node(model)), reader.shape(Node(sizes))
    reader.finish()
    assert spec and shape  # else finish() has raised
    return Tiny(config, spec, perturb(make(spec, shape, registry=case.library.registry)))


def build_alternatives(case: PartCase, family: Family) -> Iterator[tuple[str, Tiny]]:
    """The plain configuration, and one for every other thing that a setting may choose."""
    yield "The usual configuration was read", build_tiny(case, family, make_configuration(family))
    for name, values, by_layer in list_choices(family.table["model"]):
        for value in values:
            own = {name: [value] * SIZES["n_layers"] if by_layer else value}
            try:
                yield f"{name} became {value!r}", build_tiny(case, family, make_configuration(family, **own))
            except SpecError:  # the parts of this choice ask for more than one setting
                continue


def reading(case: PartCase) -> None:
    """A configuration becomes a model, and the model's own configuration becomes the same model again."""
    family = build_family(case)
    for changed, tiny in build_alternatives(case, family):
        again = family.export_config(tiny.spec, tiny.model, case.library.registry)
        theirs, ours = (build_tiny(case, family, config) for config in (again, tiny.config))
        case.check_equal(theirs.spec.plain(), ours.spec.plain(), f"{changed} and written back", "the model")
        case.check_equal(theirs.model.shape, ours.model.shape, f"{changed} and written back", "the shape")


def names(case: PartCase) -> None:
    """Every tensor has a name there, goes out whole, and comes back to the last bit."""
    family = build_family(case)
    for changed, tiny in build_alternatives(case, family):
        own = tiny.model.state_dict()
        out = family.export_tensors(tiny.model)
        first = set(first_names(tiny.model).values())
        sent, kept = sum(x.numel() for x in out.values()), sum(own[name].numel() for name in first)
        case.check_equal(sent, kept, f"{changed}, and its weights were written", "the numbers in all tensors")
        back = family.import_tensors(out, tiny.model)
        case.check_equal(
            set(back), first, f"{changed}, and its weights were written and read", "the names of the tensors"
        )
        for name, x in back.items():
            case.check_equal(x, own[name], f"{changed}, and its weights were written and read", name)


def refusals(case: PartCase) -> None:
    """A tensor that is missing, over or of another size is refused by name, and so is a setting of unknown meaning."""
    family = build_family(case)
    tiny = build_tiny(case, family, make_configuration(family))
    out = family.export_tensors(tiny.model)
    name = next(iter(out))
    larger = torch.cat([out[name], out[name]])
    wrong = {
        f"'{name}' was left out": ({k: x for k, x in out.items() if k != name}, name),
        "a tensor was added": ({**out, "not.known": torch.zeros(1)}, "not.known"),
        f"'{name}' was doubled": ({**out, name: larger}, name),
    }
    for changed, (tensors, named) in wrong.items():
        if named not in (said := catch_refusal(partial(family.import_tensors, tensors, tiny.model))):
            case.fail(f"Of the weights {changed}: that should be refused by name; {said or 'it is not'}.")
    config = {**tiny.config, "not_known_at_all": 17}
    if "not_known_at_all" not in (said := catch_refusal(lambda: family.read(config))):
        case.fail(f"A setting that no table knows was added: it should be refused by name; {said or 'it is not'}.")


def catch_refusal(call: Callable[[], object]) -> str:
    """What a call is refused with, or nothing."""
    try:
        call()
    except SpecError as error:
        return str(error)
    return ""


SUITE = Suite(isolate, collect_checks(reading, names, refusals))
