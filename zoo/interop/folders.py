"""Folders of other libraries: a configuration in JSON and weights in safetensors, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from zoo.declare import yaml
from zoo.declare.library import Library
from zoo.declare.shape import IDS, Shape
from zoo.declare.spec import ModelSpec, Node
from zoo.execute.trained import MODEL, Trained
from zoo.faults import Fault, SpecError, nearest
from zoo.files import replace, write_json
from zoo.model.builder import build_on_meta, make
from zoo.parts import Architecture
from zoo.registry import Registry

from .family import Family

CONFIG, TENSORS, WEIGHTS = "config.json", "model.safetensors", "weights.safetensors"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack")


class Files(Mapping[str, Tensor]):
    """The tensors of one or several files of safetensors, each read when it is asked for. Raises `SpecError`."""

    def __init__(self, paths: list[Path]):
        self.files: list[Any] = []
        self.owner: dict[str, Any] = {}
        for path in paths:
            try:
                file = safe_open(str(path), framework="pt")
            except (SafetensorError, OSError) as error:
                raise SpecError(f"{path} cannot be read: {error}") from error
            self.files.append(file)
            self.owner |= dict.fromkeys(file.keys(), file)

    def __getitem__(self, name: str) -> Tensor:
        return self.owner[name].get_tensor(name)

    def __contains__(self, name: object) -> bool:
        return name in self.owner

    def __iter__(self) -> Iterator[str]:
        return iter(self.owner)

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(frozen=True)
class Folder:
    """A folder in another library's form."""

    folder: Path
    config: dict[str, Any]
    tensors: Files

    def tokenizer(self, kind: Family) -> dict[str, Any] | None:
        """What reads the tokenizer of the folder, if it has one of the form that the family knows."""
        part = kind.tokenizer(self.config)
        return part if part and (self.folder / part["file"]).is_file() else None

    def reserved(self) -> dict[str, int]:
        """The ids of the reserved tokens that the tokenizer names, so far as its files tell them."""
        files = [self.folder / name for name in (TOKENIZER, TOKENIZER_CONFIG)]
        if not all(file.is_file() for file in files):
            return {}
        saved, config = map(read_json, files)
        ids = {token["content"]: token["id"] for token in saved.get("added_tokens", ())}
        named = {name: config.get(f"{name}_token") for name in IDS}
        words = {name: word["content"] if isinstance(word, dict) else word for name, word in named.items()}
        return {name: ids[word] for name, word in words.items() if word in ids}


def read_folder(path: Path) -> Folder:
    """What lies in a folder, or in one file of safetensors with its configuration beside it. Raises `SpecError`."""
    folder = path.parent if path.suffix == ".safetensors" else path
    if not path.exists():
        raise SpecError(f"{path} is not there")
    config = read_json(folder / CONFIG)
    return Folder(folder, config, Files([path] if path.is_file() else find_weight_files(folder)))


def find_weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights. Raises `SpecError`."""
    index = folder / f"{TENSORS}.index.json"
    if index.exists():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        missing = [name for name in names if not (folder / name).exists()]
        if missing or not names:
            raise SpecError(f"{index} names {', '.join(missing) or 'no file'}, and that is not there")
        return [folder / name for name in names]
    found = sorted(folder.glob("*.safetensors"))
    if (folder / TENSORS).exists():
        return [folder / TENSORS]
    if len(found) == 1:
        return found
    pickled = sorted(p.name for p in folder.iterdir() if p.suffix in PICKLED)
    if pickled and not found:
        raise SpecError(
            f"{folder / pickled[0]} is no safetensors file; such a file can run code while it is read, so it is not. "
            f"Load it with the library that wrote it and save it with safe_serialization=True"
        )
    said = f"several: {', '.join(p.name for p in found)}; name the file" if found else "none"
    raise SpecError(f"{folder} should hold one file of safetensors, and holds {said}")


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise SpecError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise SpecError(f"{path} should hold a mapping")
    return value


def load_families(registry: Registry) -> dict[str, Family]:
    """Every family on offer by name."""
    return {registry.spelling(e): registry.load(e)(**e.variant.fixed) for e in registry.variants("family")}


def find_family(registry: Registry, name: str | None, config: Mapping[str, Any] = MappingProxyType({})) -> Family:
    """The family of that name, or the one that a configuration's `model_type`, and if need be the rest of it, tells.

    Raises `SpecError`.
    """
    if name is not None:
        entry = registry.find("family", name)
        return registry.load(entry)(**entry.variant.fixed)
    known, model_type = load_families(registry), config.get("model_type")
    fitting = [name for name, family in known.items() if family.model_type == model_type]
    fitting = [name for name in fitting if len(fitting) == 1 or known[name].fits(config)] or fitting
    if len(fitting) == 1:
        return known[fitting[0]]
    said = f"its model_type is '{model_type}'" if model_type else "it has no model_type"
    told = f"several families have it: {', '.join(fitting)}" if fitting else f"the families are {', '.join(known)}"
    raise SpecError(f"{said}, and {told}{nearest(model_type or '', known) if not fitting else ''}; name one by --as")


@dataclass(frozen=True)
class Imported:
    """A model in the zoo's own terms."""

    family: Family
    spec: ModelSpec
    shape: Shape
    model: dict[str, Any]
    sizes: dict[str, Any]
    tensors: dict[str, Tensor]


def import_model(found: Folder, library: Library, name: str | None = None, ignore: tuple[str, ...] = ()) -> Imported:
    """The model of a folder. Raises `SpecError` with all that stands in the way."""
    kind = find_family(library.registry, name, found.config)
    model, sizes = kind.read(found.config, ignore)
    sizes = found.reserved() | sizes
    spec, shape = read_specs(model, sizes, library)
    built = build_on_meta(spec, shape, library.registry)
    return Imported(kind, spec, shape, model, sizes, kind.import_tensors(found.tensors, built))


def read_specs(model: dict[str, Any], sizes: dict[str, Any], library: Library) -> tuple[ModelSpec, Shape]:
    reader = library.reader()
    spec, shape = reader.model(Node(model)), reader.shape(Node(sizes))
    reader.finish()
    assert spec and shape  # else finish() has raised
    return spec, shape


def describe_import(imported: Imported, found: Folder) -> list[str]:
    """What an imported model is, in lines."""
    spec, tensors = imported.spec, imported.tensors.values()
    tokenizer = found.tokenizer(imported.family)
    facts = {slot: value.label() for slot, value in spec.slots.items() if slot in imported.model}
    facts |= {"share": str(spec.share)} if spec.share else {}
    facts["shape"] = ", ".join(f"{name} {value}" for name, value in imported.sizes.items())
    dtypes = ", ".join(sorted({str(x.dtype).removeprefix("torch.") for x in tensors}))
    facts["weights"] = f"{sum(x.numel() for x in tensors):,} numbers in {len(tensors)} tensors of {dtypes}"
    facts["tokenizer"] = tokenizer["file"] if tokenizer else "none beside the weights"
    width = max(map(len, facts))
    return [f"{found.folder}: {imported.family.name}", *(f"  {name:{width}}  {text}" for name, text in facts.items())]


def find_fitting_families(run: Trained, name: str | None) -> list[Family]:
    """The family of that name, or all that have an equivalent of everything in a model. Raises `SpecError`."""
    registry = run.library.registry
    if name is not None:
        return [find_family(registry, name)]
    found, refused = [], {}
    for each, kind in load_families(registry).items():
        try:
            kind.export_config(run.spec, run.model, registry)
            kind.pairs(run.model)
        except SpecError as error:
            refused[each] = error
        else:
            found.append(kind)
    if not found:
        near = min(refused, key=lambda name: len(refused[name].faults))
        said = "\n".join(f"  {fault.text}" for fault in refused[near].faults)
        raise SpecError(f"no family has an equivalent of this model; the nearest is {near}:\n{said}")
    return found


@torch.no_grad()
def load_model(imported: Imported, registry: Registry) -> Architecture:
    """The module with its weights, in evaluation mode."""
    model = make(imported.spec, imported.shape, registry=registry)
    own = model.state_dict()
    for name, x in imported.tensors.items():
        own[name].copy_(x)
    return model.eval()


def write_folder(imported: Imported, found: Folder, folder: Path) -> None:
    """Write a folder that describes the model in a file of the zoo and holds its weights and its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: x.contiguous() for name, x in imported.tensors.items()}
    replace(folder / WEIGHTS, lambda path: save_file(tensors, str(path)))
    model = {**imported.model, "shape": imported.sizes, "weights": WEIGHTS}
    document: dict[str, Any] = {"models": {name_after(folder): model}}
    tokenizer = found.tokenizer(imported.family)
    if tokenizer:
        text = (found.folder / tokenizer["file"]).read_bytes()
        replace(folder / tokenizer["file"], lambda path: path.write_bytes(text))
        document["defaults"] = {"tokenizer": tokenizer}
    head = f"# {imported.family.name}, read from {found.folder.absolute().name} by zoo import\n"
    replace(folder / MODEL, lambda path: path.write_text(head + yaml.dump(document), "utf-8"))


def name_after(folder: Path) -> str:
    """What a model is called after its folder."""
    return folder.absolute().name


def check_export(kind: Family, config: dict[str, Any], run: Trained) -> None:
    """Raise `SpecError` for each tensor that a model read back from this configuration has otherwise."""
    built = build_on_meta(*read_specs(*kind.read(config), run.library), run.library.registry)
    ours, theirs = ({n: list(x.shape) for n, x in model.state_dict().items()} for model in (run.model, built))
    wrong = [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]
    if wrong:
        said = [f"{n} is {ours.get(n, 'absent')}; {kind.name} has {theirs.get(n, 'none')}" for n in sorted(wrong)]
        raise SpecError([Fault(text) for text in said])


def export_model(kind: Family, run: Trained, folder: Path) -> dict[str, Any]:
    """Write a folder that the other library reads, and return its configuration. Raises `SpecError`."""
    config = kind.export_config(run.spec, run.model, run.library.registry)
    tensors = kind.export_tensors(run.model)
    check_export(kind, config, run)
    dtypes = {str(x.dtype).removeprefix("torch.") for x in tensors.values() if x.is_floating_point()}
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"format": "pt"}
    replace(folder / TENSORS, lambda path: save_file(tensors, str(path), metadata=metadata))
    config |= {"dtype": dtypes.pop()} if len(dtypes) == 1 else {}
    write_json(folder / CONFIG, config)
    if run.tokenizer and (text := run.tokenizer.shared()):
        replace(folder / TOKENIZER, lambda path: path.write_text(text, "utf-8"))
        write_json(folder / TOKENIZER_CONFIG, {"tokenizer_class": "PreTrainedTokenizerFast"})
    return config
