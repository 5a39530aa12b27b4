"""How long a command takes to say its first word, beside what an `import torch` alone takes."""

from __future__ import annotations

import subprocess
import sys
from functools import cache, partial
from time import perf_counter

import pytest
from race import in_turns, race, show

pytestmark = in_turns

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "zoo --help": ["-m", "zoo", "--help"],
    "zoo list": ["-m", "zoo", "list"],
    "zoo plugins": ["-m", "zoo", "plugins"],
    "python -c 'import torch'": ["-c", "import torch"],
}


def started(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


@cache
def timed() -> dict[str, list[float]]:
    return race({name: partial(partial, started, words) for name, words in COMMANDS.items()}, 5, perf_counter)


@pytest.mark.parametrize("name", COMMANDS)
def test_startup(benchmark, name):
    show(benchmark, "start-up", name, timed(), "python -c 'import torch'")
