"""One folder per run: its record, its curve, its weights, and the lock of whoever writes it.

Reading needs no torch.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from time import sleep
from typing import Any

from zoo import files, record
from zoo.record import FORMAT, RUN, RunRecord, read_run


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
        return self.folder / RUN

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

    def read(self) -> RunRecord:
        """The record, or that of a run of which nothing is known yet. Raises `SpecError` if it cannot be read."""
        return read_run(self.folder)

    def update(self, **parts: Any) -> RunRecord:
        """Set parts of the record, as records or as plain values, and return all of it.

        Raises `ValueError` for what the record cannot hold.
        """
        return self.write({**record.plain(self.read()), **parts})

    def write(self, parts: Mapping[str, Any]) -> RunRecord:
        """Put a record of these parts in place of the one before. Raises `ValueError` for what it cannot hold."""
        if unknown := parts.keys() - {field.name for field in fields(RunRecord)}:
            raise ValueError(f"a record of a run has no {', '.join(sorted(unknown))}")
        made = record.parse(files.strict(record.plain(parts)), RunRecord)
        record.write(self.record, made)
        return made

    @property
    def finished(self) -> bool:
        return self.read().finished

    def begin(self, parts: Mapping[str, Any]) -> None:
        """State what this run is, before it starts. A finished run and one that runs elsewhere stay as they are."""
        with self.lock() as mine:
            if mine:
                self.tidy()
            if mine and not self.finished:
                self.write({"format": FORMAT, "id": self.id, **parts})

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
            file.write(files.dumps(line) + "\n")

    def lines(self) -> list[dict[str, Any]]:
        """The curve; a line that is no point of one, such as a half-written one of a killed process, is not in it."""
        text = self.metrics.read_text("utf-8", "replace") if self.metrics.exists() else ""
        found = map(files.parse_line, text.splitlines())
        return [line for line in found if line is not None and type(line.get("step")) is int]

    def trim(self, step: int) -> None:
        """Forget the lines of the curve after `step`: they are about to be written again."""
        kept = [line for line in self.lines() if line["step"] <= step]
        text = "".join(files.dumps(line) + "\n" for line in kept)
        files.replace(self.metrics, lambda path: path.write_text(text, "utf-8"))

    @contextmanager
    def lock(self, wait: Callable[[], bool] = lambda: False) -> Iterator[bool]:
        """Keep other processes from writing this run; yields whether it is held.

        While another process holds it, asks `wait()` ten times a second whether to go on waiting. The system frees
        the lock of a process that died.
        """
        import fcntl

        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as file:
            while not (mine := acquire(fcntl, file)) and wait():
                sleep(0.1)
            yield mine


def acquire(fcntl: Any, file: Any) -> bool:
    """Take the lock if nobody has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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
