"""Runs as processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zoo.execute.pool import Start, start_locally
from zoo.record.folder import cores

from . import Resources


def choose_capacity(resources: Resources) -> int:
    """How many runs go side by side here: as many as fill the cores, or one on a GPU."""
    return 1 if resources.accelerated else max(1, cores() // resources.cores)


@contextmanager
def open_local(resources: Resources) -> Iterator[tuple[Start, int]]:
    yield start_locally, choose_capacity(resources)
