"""One folder per run: what was asked, what came out, and files that never stand half-written.

Reading needs no torch.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

FORMAT = 1
FINISHED = ("done", "diverged")
"""Statuses of runs that would end the same way again, and so are not repeated."""
SPEEDS = "speeds.json"
"""The file in a comparison's folder that keeps how long its steps take; see `zoo.execute.match_seconds`."""


@dataclass(frozen=True)
class Run:
    """The folder of one run; its name is the run's id.

    `run.json` is written by whoever holds the lock: the planner before the run, then the run's own process.
    """

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def record(self) -> Path:
        return self.folder / "run.json"

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def weights(self) -> Path:
        return self.folder / "weights.safetensors"

    @property
    def resume(self) -> Path:
        return self.folder / "resume.safetensors"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.json"

    @property
    def error(self) -> Path:
        return self.folder / "error.txt"

    @property
    def output(self) -> Path:
        return self.folder / "output.txt"

    def read(self) -> dict[str, Any]:
        """The record, or an empty one if there is none yet."""
        return json.loads(self.record.read_text("utf-8")) if self.record.exists() else {}

    def update(self, **parts: Any) -> dict[str, Any]:
        """Set top-level parts of the record and return all of it."""
        record = {**self.read(), **parts}
        write_json(self.record, record)
        return record

    @property
    def finished(self) -> bool:
        return self.read().get("status") in FINISHED

    def begin(self, record: Mapping[str, Any]) -> None:
        """State what this run is, before it starts. A finished run and one that runs elsewhere stay as they are."""
        with self.lock() as mine:
            if mine:
                self.tidy()
            if mine and not self.finished:
                head = {"format": FORMAT, "id": self.id}
                write_json(self.record, {**head, **record, "status": "not run", "reason": None})

    def tidy(self) -> None:
        """Remove what a process that was killed left half-written, and the state of a run that needs it no more.

        The state goes after the record has the result: a run that is killed between the two has one of them.
        """
        for path in self.folder.glob(".*.new"):
            path.unlink()
        if self.finished:
            self.resume.unlink(missing_ok=True)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append one line to the curve."""
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """The curve; a line that a killed process left half-written is not in it."""
        text = self.metrics.read_text("utf-8") if self.metrics.exists() else ""
        return [line for line in map(parse, text.splitlines()) if line is not None]

    def trim(self, step: int) -> None:
        """Forget the lines of the curve after `step`: they are about to be written again."""
        kept = [line for line in self.lines() if line["step"] <= step]
        text = "".join(dumps(line) + "\n" for line in kept)
        replace(self.metrics, lambda path: path.write_text(text, "utf-8"))

    @contextmanager
    def lock(self, wait: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Keep other processes from writing this run; yields whether it is held.

        While another process holds it, asks `wait()` ten times a second whether to go on waiting. The system frees
        the lock of a process that died.
        """
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as file:
            while not (mine := flock(fcntl, file)) and wait():
                sleep(0.1)
            yield mine


def flock(fcntl, file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def strict(value: Any) -> Any:
    """The value in plain types, with null for every number that is not finite."""
    if isinstance(value, Mapping):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):  # a scalar of numpy or torch
        return strict(value.item())
    raise TypeError(f"{type(value).__name__} has no place in a record")


def dumps(value: Any, indent: int | None = None) -> str:
    return json.dumps(strict(value), indent=indent, allow_nan=False, ensure_ascii=False)


def write_json(path: Path, value: Any) -> None:
    """Strict JSON, written whole or not at all."""
    text = dumps(value, indent=1) + "\n"
    replace(path, lambda temporary: temporary.write_text(text, "utf-8"))


def replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a new file beside `path`, then put it in its place: at any moment one of the two is whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def machine() -> dict[str, Any]:
    """The computer: operating system, processor, cores that this process may use, memory in bytes."""
    return {
        "platform": platform.platform(),
        "processor": proc("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Python and the packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in ("transformer-zoo", "torch", "numpy", "tokenizers", "safetensors"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def peak_memory() -> int:
    """The most bytes of main memory that this process has held."""
    own = proc("/proc/self/status", "VmHWM")  # ru_maxrss would begin at what the parent held when it started us
    if own:
        return int(own.split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def proc(path: str, key: str) -> str | None:
    """The first value of `key` in one of Linux's tables, None elsewhere."""
    try:
        with open(path, encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(key)), None)
    except OSError:
        return None
