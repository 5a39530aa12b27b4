"""The linter, the formatter and the type checker find nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check", "mypy"])
def test_a_checker_finds_nothing(command):
    """What each looks at stands in pyproject.toml."""
    pytest.importorskip(command.split()[0], reason="in the extra 'dev'")
    done = subprocess.run([sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
