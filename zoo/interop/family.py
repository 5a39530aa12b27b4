"""Models of other libraries: a family's table, held against a model in both directions, and folders in their form."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zoo.declare import yaml
from zoo.declare.shape import IDS, Shape
from zoo.declare.signature import RESERVED, show
from zoo.declare.spec import MODEL_SLOTS, WHOLE, ModelSpec
from zoo.faults import Fault, SpecError, nearest
from zoo.parts import Architecture
from zoo.registry import Registry

from . import tensor_names
from .template import (
    WIDTHS,
    Matcher,
    Mismatch,
    Settings,
    Unknown,
    Unset,
    fill,
    gather_layers,
    nest,
    parse_choice,
    parse_expression,
    select_layer,
)

HEAD = "architectures"
"""The setting that names a class, head and all: another head's folder can hold the same model."""
MAPPINGS = ("config", "defaults", "equal", "older", "first", "shape", "model", "sizes")
SECTIONS = ("like", *MAPPINGS, "idle", "names", "ignore", "zero", "prefix", "tokenizer")


class Family:
    """How another library configures and names the models of one kind: a table in YAML.

    `config` holds settings that every model of the kind has; `defaults` what a setting is where it is not written, `$b`
    being what b is; `equal` leads from settings to those that they cannot differ from here; `idle` lists settings that
    change nothing in a trained model; `older` leads from old spellings to new ones. `shape` and `model` are what the
    zoo calls the same, as templates (see `template`) over the settings; `sizes` names for a setting, or for what is
    reckoned with it, the tensor of ours whose last axis tells it (`{i}` is any layer); `first` leads from lists with an
    entry per layer, true in the first few, to the settings that count these. `names` are the rules of `tensor_names`,
    `ignore` patterns of tensors that are constants, `zero` of those that are 0 where a file lacks them, `prefix` what
    the names of a model without a head lack, `tokenizer` the part that reads the tokenizer beside the weights. `like`
    names a table beside this one, which these sections change. Raises `SpecError` for a table that cannot be.
    """

    def __init__(self, path: str | Path):
        self.name = Path(path).stem
        table = load_table(Path(path))
        self.table = {key: table.get(key) or {} for key in MAPPINGS}
        self.idle = set(table.get("idle", ()))
        self.prefix = table.get("prefix", "")
        self.reader = table.get("tokenizer")
        try:
            self.rules = tensor_names.read_rules(table.get("names", ""))
        except ValueError as error:
            raise SpecError([Fault(str(error), where=str(path))]) from None
        self.constants = [tensor_names.compile_pattern(line, "") for line in table.get("ignore", "").split()]
        self.zeros = [tensor_names.compile_pattern(line, "") for line in table.get("zero", "").split()]
        self.variables = set(list_variables([self.table["shape"], self.table["model"]]))

    @property
    def model_type(self) -> str:
        return self.table["config"].get("model_type", self.name)

    # From theirs to ours

    def fits(self, config: Mapping[str, Any]) -> bool:
        """Whether a configuration says nothing against what all models of the kind have."""
        given = {**self.table["defaults"], **flatten(modernise(config, self.table["older"]))}
        return all(given.get(name, fact) == fact for name, fact in self.table["config"].items() if name != HEAD)

    def read_settings(self, config: Mapping[str, Any], ignore: Iterable[str] = ()) -> dict[str, Any]:
        """All settings of a configuration by dotted names. Raises `SpecError` for those that the table cannot take."""
        given = flatten(modernise(config, self.table["older"]))
        out = self.complete({**self.table["defaults"], **given})
        for name, counted in self.table["first"].items():
            out[name] = [i < (out.get(counted) or 0) for i in range(fill(self.table["shape"]["n_layers"], out))]
        faults = [
            f"{name} is {show(out[name])} and {other} {show(out[other])}; here they are one"
            for name, other in self.table["equal"].items() if name in out and out[name] != out.get(other)
        ]  # fmt: skip
        for name, fact in self.table["config"].items():
            found = out.setdefault(name, fact)
            if name != HEAD and found != fact and name not in ignore:
                faults.append(f"{name} is {show(found)}; {self.name} has {show(fact)}")
        known = self.variables | self.table["config"].keys() | self.table["equal"].keys() | self.idle | set(ignore)
        known |= set(self.table["first"].values())
        for name, value in given.items():
            inside = isinstance(value, Mapping) and any(k.startswith(f"{name}.") for k in known)
            outer = {name[:i] for i, c in enumerate(name) if c == "."}
            if not (name in known or inside or outer & known or value in (None, False, "", [], {})):
                faults.append(f"{name} is {show(value)}, and nothing is known of that setting{nearest(name, known)}")
        if faults:
            raise SpecError([Fault(text) for text in faults])
        return out

    def complete(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings, and those that are open as their defaults refer to others."""
        out = dict(settings)
        for name, value in self.table["defaults"].items():
            needed = set(list_variables(value))
            if needed and needed <= out.keys() and out.get(name) in (None, value):
                out[name] = fill(value, out)
        return out

    def read(self, config: Mapping[str, Any], ignore: Iterable[str] = ()) -> tuple[dict, dict]:
        """The model and the shape, as YAML holds them, of a configuration. Raises `SpecError`."""
        settings = self.read_settings(config, ignore)
        faults: list[Fault] = []

        def filled(template: Any, depth: int) -> Any:
            try:
                return fill(template, settings, depth)
            except Unset as error:
                faults.append(Fault(f"the configuration has no '{error.args[0]}'"))
            except Unknown as error:
                faults.append(Fault(str(error)))
            return None

        shape = {name: filled(template, 0) for name, template in self.table["shape"].items()}
        # A model may have several tokens that end a text; the first is the one that it writes.
        shape |= {name: shape[name][0] for name in IDS if isinstance(shape.get(name), list)}
        shape = {name: value for name, value in shape.items() if value is not None}
        model = {slot: filled(template, shape.get("n_layers", 0)) for slot, template in self.table["model"].items()}
        if faults:
            raise SpecError(dict.fromkeys(faults))
        return model, shape

    def tokenizer(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """The part that reads the file in which a folder of this kind keeps its tokenizer; None if there is no such."""
        return fill(self.reader, {**self.table["defaults"], **flatten(config)}) if self.reader else None

    def import_tensors(self, theirs: Mapping[str, Tensor], model: Architecture) -> dict[str, Tensor]:
        """Their tensors under our names, each once. Raises `SpecError` for all that is missing, over or misshapen."""
        first, shapes = first_names(model), {name: x.shape for name, x in model.state_dict().items()}
        out: dict[str, Tensor] = {}
        used, faults = set(), []
        pairs = self.pairs(model)
        for pair in pairs:
            name = self.find_name(pair.theirs, theirs)
            if name is None:
                continue
            used.add(name)
            try:
                pieces = pair.split(theirs[name], shapes, model.shape.head_width)
            except ValueError as error:
                faults.append(Fault(str(error)))
                continue
            for ours, x in pieces.items():
                if first[ours] in out and not torch.equal(out[first[ours]], x):
                    faults.append(Fault(f"{name} is another tensor than the one that it should be tied to"))
                out.setdefault(first[ours], x)
        if not faults:
            lacking = {p.theirs: p.names() for p in pairs if any(first[n] not in out for n in p.names())}
            zero = {name for name in lacking if any(p.fullmatch(name) for p in self.zeros)}
            out |= {first[ours]: torch.zeros(shapes[ours]) for name in zero for ours in lacking[name]}
            faults += [Fault(f"{name} is missing") for name in lacking if name not in zero]
        over = [name for name in theirs if name not in used and not any(p.fullmatch(name) for p in self.constants)]
        faults += [Fault(f"{name} is left over: the model has no place for it") for name in over]
        if faults:
            raise SpecError(faults)
        return out

    def find_name(self, name: str, theirs: Mapping[str, Tensor]) -> str | None:
        """The name as it stands in a file, perhaps of a model without a head."""
        bare = name.removeprefix(f"{self.prefix}.")
        return next((n for n in (name, bare) if n in theirs), None)

    # From ours to theirs

    def export_config(self, spec: ModelSpec, model: Architecture, registry: Registry) -> dict[str, Any]:
        """The configuration that gives this very model. Raises `SpecError` for all that it has no equivalent of."""
        settings, faults = Settings(), []
        matcher = Matcher(registry)
        tensors = model.state_dict()
        for name, tensor in self.table["sizes"].items():
            pattern = tensor_names.compile_pattern(tensor, "")
            widths = [x.shape[-1] for ours, x in tensors.items() if pattern.fullmatch(ours)]
            if widths and (known := parse_expression(f"${name}")):
                settings.solve(known, widths[0], tensor)
        for template, value, path, slot, layer in [*self.sizes(model.shape), *self.parts(spec, model)]:
            try:
                matcher.match(template, value, path, settings, slot, layer)
            except Mismatch as mismatch:
                faults.append(mismatch.text(self.name))
        try:
            settings.solve_waiting()
        except Mismatch as mismatch:
            faults.append(mismatch.text(self.name))
        if faults:
            raise SpecError([Fault(text) for text in dict.fromkeys(faults)])
        found = self.complete(self.count_firsts(gather_layers(settings.found)))
        equal = {name: found[other] for name, other in self.table["equal"].items()}
        return nest({**self.table["config"], **found, **equal})

    def count_firsts(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The settings, with a number in place of each list that is true in the first layers. Raises `SpecError`."""
        out = {name: value for name, value in found.items() if name not in self.table["first"]}
        for name, counted in self.table["first"].items():
            out[counted] = sum(found[name])
            if found[name] != sorted(found[name], reverse=True):
                layer = found[name].index(False)
                raise SpecError(f"layer {layer} is not as those after it; {self.name} has such layers first")
        return out

    def sizes(self, shape: Shape) -> Iterator[tuple]:
        """What each size of the shape should be; head and embedding widths as they come out."""
        have = dataclasses.asdict(shape) | {"head_dim": shape.head_width, "d_embed": shape.embed_width}
        usual = {"head_dim": shape.d_model // shape.n_heads, "d_embed": shape.d_model}
        for name, template in {**usual, **self.table["shape"]}.items():
            if name not in WIDTHS:
                yield template, have[name], f"shape.{name}", "", 0

    def parts(self, spec: ModelSpec, model: Architecture) -> Iterator[tuple]:
        """What each part of each layer should be, in the order of the table: what comes first settles a choice."""
        templates = self.table["model"]
        yield templates.get("share"), spec.share, "share", "", 0
        for stack in model.stacks:
            built = getattr(model, stack)
            crossed = ["cross"] if "cross" in built.layers[0].steps else []
            for slot in (s for s in dict.fromkeys([*templates, *crossed]) if s in MODEL_SLOTS):
                kind = "attention" if slot == "cross" else slot
                layered = spec.slots.get(slot, spec.slots[kind]).of(stack)
                if layered is None:
                    continue
                for layer in range(1 if slot in WHOLE else built.depth):
                    template = select_layer(templates.get(slot, templates[kind]), layer, stack)
                    yield template, layered.at(layer % (spec.share or built.depth)), slot, kind, layer

    def export_tensors(self, model: Architecture) -> dict[str, Tensor]:
        """Our tensors under their names. Raises `SpecError`."""
        first, tensors = first_names(model), model.state_dict()
        out: dict[str, Tensor] = {}
        written: set[str] = set()
        for pair in self.pairs(model):
            mine = {first[name] for name in pair.names()}
            if not mine <= written:
                out[pair.theirs] = pair.join(tensors, model.shape.head_width)
                written |= mine
        return out

    def pairs(self, model: nn.Module) -> list[tensor_names.Pair]:
        """Their tensors and ours. Raises `SpecError` for tensors of ours that have no name there."""
        names = list(model.state_dict())
        try:
            found = tensor_names.pair_names(self.rules, names)
        except ValueError as error:
            raise SpecError(str(error)) from None
        first = first_names(model)
        named = {first[name] for pair in found for name in pair.names()}
        over = sorted({first[name] for name in names} - named)
        if over:
            raise SpecError([Fault(f"{self.name} has no name for the model's {name}") for name in over])
        return found


def first_names(model: nn.Module) -> dict[str, str]:
    """For every tensor's name the first name of the same tensor."""
    seen: dict[int, str] = {}
    return {name: seen.setdefault(id(x), name) for name, x in model.state_dict(keep_vars=True).items()}


def load_table(path: Path) -> dict[str, Any]:
    """A table and what it is like, as one. Raises `SpecError`."""
    document = load_file(path, path.stat().st_mtime_ns if path.exists() else 0)
    table = dict(document.value) if isinstance(document.value, Mapping) else {}
    faults = [
        Fault(f"a table has no {show(key)}{nearest(key, SECTIONS)}", where=document.where((key,), key=True))
        for key in table if key not in SECTIONS
    ]  # fmt: skip
    if faults or not table:
        raise SpecError(faults or [Fault("a table is a mapping of sections", where=str(path))])
    if "like" not in table:
        return table
    base = load_table(path.with_name(f"{table['like']}.yaml"))
    out = {**base, **table}
    for key in MAPPINGS:
        join = override if key == "model" else lambda old, new: new
        old, own = base.get(key) or {}, table.get(key) or {}
        out[key] = {**old, **{name: join(old.get(name), value) for name, value in own.items()}}
    out["idle"] = [*base.get("idle", ()), *table.get("idle", ())]
    out["ignore"] = base.get("ignore", "") + "\n" + table.get("ignore", "")
    own = {rule.theirs for rule in tensor_names.read_rules(table.get("names", ""))}
    kept = [line for line in base.get("names", "").splitlines() if line.partition("=")[0].strip() not in own]
    out["names"] = "\n".join([table.get("names", ""), *kept])
    return out


@functools.cache
def load_file(path: Path, changed: int) -> yaml.Document:
    """A table's own file, read once until it changes: what many tables are like is read for all of them."""
    return yaml.load_file(path)


def override(old: Any, new: Any) -> Any:
    """A part of the table beneath, changed by options without a name."""
    if not isinstance(new, Mapping) or new.keys() & set(RESERVED) or parse_choice(new):
        return new
    return {**(old if isinstance(old, Mapping) else {"name": old}), **new}


def list_variables(value: Any) -> Iterator[str]:
    """The settings that a template asks for."""
    if isinstance(value, str):
        if known := parse_expression(value):
            yield from (known.name, *known.others())
    elif isinstance(value, Mapping):
        if chosen := parse_choice(value):
            yield chosen[0]
        for inner in value.values():
            yield from list_variables(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from list_variables(inner)


def flatten(config: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Every setting by its dotted name, mappings also as they are."""
    out: dict[str, Any] = {}
    for key, value in config.items():
        out[f"{before}{key}"] = value
        if isinstance(value, Mapping):
            out |= flatten(value, f"{before}{key}.")
    return out


def modernise(config: Mapping[str, Any], older: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with old spellings moved to where the table looks; what stands there already wins."""
    out = json.loads(json.dumps(config))
    for old, new in older.items():
        *outer, last = old.split(".")
        at = out
        for step in outer:
            at = at.get(step) if isinstance(at, dict) else None
        if not isinstance(at, dict) or last not in at:
            continue
        value = at.pop(last)
        if value is None:
            continue
        *outer, last = new.split(".")
        at = out
        for step in outer:
            at[step] = at.get(step) or {}
            at = at[step]
        at[last] = value if at.get(last) is None else {**value, **at[last]} if isinstance(value, dict) else at[last]
    return out
