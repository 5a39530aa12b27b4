"""What `run.json` holds: one run, from what was asked to what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .document import FORMAT, NEEDED, Number, Plain, Scores, check_choice, check_folder, check_name, describe, read

RUN = "run.json"
FINISHED = ("done", "diverged")
"""Statuses of runs that would end the same way again, and so are not repeated."""


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """The kernels of a model."""

    requested: str | None = describe("by name, as the model's description has them; null where none is named")
    effective: tuple[str, ...] = describe("by name, those that compute", default=())


@dataclass(frozen=True, kw_only=True)
class Start:
    """The file that a model's weights start from."""

    file: str = describe("path of the file", default="")
    sha256: str = describe("hash of the file", default="")
    filled: int = describe("tensors that are taken from the file", default=0)
    drawn: tuple[str, ...] = describe("tensors that the file lacks, drawn at random", default=())
    unused: tuple[str, ...] = describe("tensors of the file that the model lacks", default=())


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What a model is and costs, counted before it runs."""

    parameters: int | None = describe("trained numbers, each once")
    flops_per_token: int | None = describe("floating-point operations of a forward pass, per token", "FLOPs")
    kv_bytes_per_token: Number | None = describe("what the cache grows by with each token that is written", "bytes")
    kernel: Kernels | None = describe("its kernels")
    factorisation: str | None = describe("whether tokens are predicted `left to right` or `independent` of each other")
    weights: Start | None = describe("the file that its weights start from; null where all are drawn")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a part comes from."""

    slot: str | None = describe("the slot")
    name: str | None = describe("the variant's name in the slot")
    plugin: str | None = describe("the plugin that offers it")
    distribution: str | None = describe("the installed package, or the plugin file")
    version: str | None = describe("version of the package, or the beginning of the file's sha256")
    source: str | None = describe("the module, or the path of the file")


@dataclass(frozen=True, kw_only=True)
class Plugins:
    """What it takes to find the same variants again."""

    files: tuple[str, ...] = describe("paths of plugin files", default=())
    disable: tuple[str, ...] = describe("names of plugins that are left out", default=())
    plugins: bool = describe("whether plugins of installed packages are loaded", default=True)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The computer that a run took place on."""

    platform: str | None = describe("operating system")
    processor: str | None = describe("model of the processor")
    cores: int | None = describe("processor cores that the process may use")
    memory_bytes: int | None = describe("main memory", "bytes")


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """The text that a run has read."""

    sha256: str | None = describe("hash of the text; empty where the task makes its own")
    train_tokens: Number | None = describe("size of the training text; null where it is made without end", "tokens")
    vocab_size: int | None = describe("size of the vocabulary", "tokens")
    notes: tuple[str, ...] | None = describe("sentences on the text that a report prints", default=())
    labels: tuple[str, ...] = describe("names of the last ids of the vocabulary, where these are labels", default=())
    has_source: bool | None = describe("whether a model reads a source, and answers it")
    source_len: int | None = describe("longest source", "tokens")


@dataclass(frozen=True, kw_only=True)
class TrainFacts:
    """How training went, evaluations included unless said otherwise."""

    steps: int | None = describe("optimizer steps done", "steps")
    tokens: Number | None = describe("target tokens seen, by their weights", "tokens")
    epochs: Number | None = describe("passes over the training text; null where it is made without end", "passes")
    seconds: Number | None = describe("wall clock of training", "s")
    tokens_per_second: Number | None = describe("speed of the steps after the first, evaluations left out", "tokens/s")
    peak_memory_bytes: int | None = describe("most memory held, on the GPU if there is one", "bytes")
    precision: str | None = describe("`fp32` or `bf16`")
    device: str | None = describe("`cpu`, `cuda`, …")


@dataclass(frozen=True, kw_only=True)
class Best:
    """The evaluation whose weights are kept."""

    step: int | None = describe("step of the evaluation", "steps")
    dev: Scores | None = describe("metric to score on dev")


@dataclass(frozen=True, kw_only=True)
class DecodeFacts:
    """How fast the best weights write with a cache."""

    tokens_per_second: Number | None = describe("all rows together, the fastest of a few passes", "tokens/s")
    rows: int | None = describe("rows written side by side")
    tokens: int | None = describe("length of each row", "tokens")
    clock: str | None = describe("`processor` time of one thread, or the `wall` clock")
    cache_bytes: Number | None = describe("size of the cache of all rows at the end", "bytes")
    load: Number | None = describe("processes that computed or waited to, the machine's mean over a minute")

    def __post_init__(self) -> None:
        if self.clock is not None:
            check_choice("decode.clock", self.clock, ("processor", "wall"))


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """`run.json`: what was asked of one run, where it took place, and what came out."""

    format: int = describe("version of this format", default=NEEDED)
    id: str = describe("the folder's name: a hash of all that decides the result", default=NEEDED)
    spec: Mapping[str, Plain] = describe("the run, every default filled in", default_factory=dict)
    model: ModelFacts | None = describe("what the model is and costs; null for a reference")
    seed: int = describe("seed of weights, data order and dropout", default=0)
    threads: int = describe("threads of each process", default=1)
    processes: int = describe("processes that share the run", default=1)
    provenance: tuple[Provenance, ...] = describe("where each part comes from", default=())
    plugins: Plugins = describe("what finds the same variants again", default_factory=Plugins)
    status: str = describe("`not run`, `running`, `done`, `diverged`, `failed` or `interrupted`", default="not run")
    reason: str | None = describe("why it ended otherwise than `done`")
    machine: Machine | None = describe("the computer", null_if="machine")
    versions: Mapping[str, str] | None = describe(
        "Python and the packages that can change a result", null_if="versions"
    )
    data: DataFacts | None = describe("the text that was read", null_if="data")
    train: TrainFacts | None = describe("how training went; null for a reference", null_if="metrics")
    best: Best | None = describe("the evaluation whose weights are kept; null if none was finite", null_if="metrics")
    metrics: Mapping[str, Scores] | None = describe("split to metric to score of the best weights", null_if="metrics")
    decode: DecodeFacts | None = describe("how fast it writes; null where that was not timed", null_if="train")

    def __post_init__(self) -> None:
        check_name(self.id)
        if min(self.threads, self.processes) < 1:
            raise ValueError(f"{self.threads} threads and {self.processes} processes cannot do a run")

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def reference(self) -> bool:
        """Whether nothing is trained."""
        return "reference" in self.spec


def read_run(folder: Path) -> RunRecord:
    """What a folder says of its run, "not run" if it says nothing yet. Raises `Unreadable`."""
    path = folder / RUN
    if not path.exists():
        return RunRecord(format=FORMAT, id=folder.name)
    record = read(path, RunRecord)
    check_folder(path, record.id)
    return record
