"""What a process of one run sets up before it imports torch, and how it is asked to stop."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

OOM_SCORE = 500
"""Of 1000 by which Linux can be told to prefer a process where it needs memory."""
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h


class StopRequest:
    """True once this process was asked to end, or the one that started it is gone. A second request ends it at once."""

    def __init__(self) -> None:
        self.received = False
        self.parent = os.getppid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.receive)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])  # who started us may have blocked it, as Ray does

    def receive(self, number: int, frame: Any) -> None:
        if self.received:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = True

    def __call__(self) -> bool:
        return self.received or os.getppid() != self.parent


def set_up_process(threads: int) -> None:
    """Set up this process for so many threads, before torch is imported."""
    volunteer_for_oom_kill()
    keep_freed_pages()
    os.environ |= {"OMP_NUM_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
    import torch

    torch.set_num_threads(threads)


def volunteer_for_oom_kill() -> None:
    """Be the process that the system ends first where memory runs out: one run is lost, and no other, nor the pool."""
    with suppress(OSError):  # elsewhere than on Linux, or where it is forbidden
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def keep_freed_pages() -> None:
    """Let glibc keep the large blocks that every training step frees and asks for again.

    Otherwise each is given back and cleared anew: ten times the page faults, a fifth of the processor time at width
    256, and 20 MB to 150 MB less memory. The bits of a result do not change.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28)):
            libc.mallopt(option, value)


def summarise_error(error: BaseException) -> str:
    """An exception as the reason in a table, on one line."""
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    return text if len(text) <= 300 else f"{text[:299]}…"
