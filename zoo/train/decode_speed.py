"""How fast a model writes with a cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor

from zoo.model.cost import count_cache_bytes
from zoo.parts import Architecture
from zoo.parts.generate import generate, greedy
from zoo.tasks import Task

ROWS = 8
"""Rows that are written side by side."""
MOST = 512
"""Tokens of a row at most. Within a comparison the number hangs on `max_len` and the task alone."""
REPEATS = 5
SECONDS = 1.5
"""After so many passes, or so much time, no further pass begins; the first is always finished."""
CLOCKS = {"processor": process_time, "wall": perf_counter}
"""One thread on a CPU is timed by what it computes, whoever else does; others wait for each other, or for a device."""


class Stopped(Exception):
    """This process is to end."""


def decode(model: Architecture, task: Task, stop: Callable[[], bool] = lambda: False) -> dict[str, Any] | None:
    """Tokens per second of `ROWS` rows together: the fastest of a few passes of `generate`.

    Each pass reads the source of the first dev row, in every row the same, and then writes what `max_len` leaves room
    for (`target_len` or more, `MOST` at most) greedily and never ending. Also `rows`, `tokens` of each, the
    `clock` (see `CLOCKS`), the bytes that the cache holds for all rows in the end, and the `load` of the machine
    (processes that compute or wait to, over the last minute). None where the model does not factorise left to right,
    or once `stop()`.
    """
    if not getattr(model, "autoregressive", False):
        return None
    row = next(task.batches("dev", 1)).to(next(model.parameters()).device)
    source = row.source.expand(ROWS, -1)
    keep = None if row.source_keep is None else row.source_keep.expand(ROWS, -1)
    clock = "processor" if source.device.type == "cpu" and torch.get_num_threads() == 1 else "wall"
    n = min(MOST, max(task.target_len, model.shape.max_len - source.shape[1]))

    def choose(logits: Tensor) -> Tensor:
        if stop():
            raise Stopped
        return greedy(logits)

    def write(n: int) -> float:
        began = CLOCKS[clock]()
        generate(model, source, n, source_keep=keep, stop=(), choose=choose).cpu()  # waits for the device
        return CLOCKS[clock]() - began

    try:
        write(min(n, 2))  # warms up
        taken = [write(n)]
        while len(taken) < REPEATS and sum(taken) < SECONDS:
            taken.append(write(n))
    except Stopped:
        return None
    held = count_cache_bytes(model, source, row.target[:, :1].expand(ROWS, -1), n)
    speed = {"tokens_per_second": ROWS * n / min(taken), "rows": ROWS, "tokens": n, "clock": clock}
    return {**speed, "cache_bytes": held, "load": os.getloadavg()[0]}
