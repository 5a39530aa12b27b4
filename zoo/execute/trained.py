"""Trained models read back from a run's folder, or from one that `zoo import` wrote."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError

from zoo.compare.run_spec import RunSpec, TrainedRun
from zoo.declare.library import Library, open_library
from zoo.declare.spec import ModelSpec, Node
from zoo.faults import SpecError
from zoo.model.builder import bind, make
from zoo.model.weights import load_matching, read_model
from zoo.parts import Architecture
from zoo.record.folder import Run
from zoo.tasks import Tokenizer

from .materialise import reopen

MODEL = "model.yaml"
"""The file beside weights that describes a model which was not trained here."""


@dataclass(frozen=True)
class Trained:
    """A model with its weights, in evaluation mode, and what it was made of."""

    spec: ModelSpec
    model: Architecture
    library: Library
    tokenizer: Tokenizer | None = None


def load_trained(folder: str | os.PathLike) -> Trained:
    """The model of a run folder, at its best weights on dev, or of a folder that `zoo import` wrote.

    Raises `SpecError` if the folder holds no trained model.
    """
    run = Run(Path(os.path.abspath(folder)))
    known = run.record.exists()
    if not known and (run.folder / MODEL).exists():
        return load_described(run.folder / MODEL)
    record = run.read()
    if not run.weights.exists():
        state = f"its status is '{record.status}'" if known else "it has no run.json"
        raise SpecError(f"{run.folder} holds no trained model; {state}")
    spec, library = reopen(record)
    if not (isinstance(spec, TrainedRun) and record.data and record.data.vocab_size):
        raise SpecError(f"{run.record} says neither model nor vocabulary of its weights")
    shape = replace(spec.shape, vocab_size=record.data.vocab_size)
    model = make(spec.model, shape, seed=spec.seed, registry=library.registry)
    try:
        read_model(model, run.weights)
    except (RuntimeError, SafetensorError) as error:
        raise SpecError(f"{run.weights} does not hold the weights of the model that {run.record} describes") from error
    return Trained(spec.model, model.eval(), library, load_tokenizer(run, spec))


def load_tokenizer(run: Run, spec: RunSpec) -> Tokenizer | None:
    """The tokenizer of a run as it was trained; None if its task has none."""
    part = next((part for part in spec.task.parts() if part.slot == "tokenizer"), None)
    if part is None or not run.tokenizer.exists():
        return None
    tokenizer = bind(part, {})
    tokenizer.restore(run.tokenizer.read_text("utf-8"))
    return tokenizer


def load_described(path: Path) -> Trained:
    """The one model that a file describes, with its weights. Raises `SpecError`."""
    library = open_library(path)
    names = list(library.documents[0].value.get("models", {}))
    if len(names) != 1:
        raise SpecError(f"{path} holds {len(names)} models; it should hold one")
    reader = library.reader()
    spec, shape = reader.sized(library.expand("model", Node(names[0]), reader), Node({}))
    reader.finish()
    assert spec and shape, "or it would have raised"
    if not spec.weights or not spec.shape:
        raise SpecError(f"{path} says neither shape nor weights of '{names[0]}'")
    model = make(spec, shape, registry=library.registry)
    if drawn := load_matching(model, spec.weights):
        raise SpecError(f"{spec.weights} lacks {', '.join(drawn)}")
    own = "tokenizer" in library.documents[0].value.get("defaults", {})
    node = reader.default("tokenizer") if own else None
    part = reader.part(node, "tokenizer") if node else None
    reader.finish()
    return Trained(spec, model.eval(), library, bind(part, {}) if part else None)
