"""What several tests need: plugin packages, made up or really installed."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def third_party(tmp_path_factory) -> Path:
    """A folder into which pip has installed every package of tests/third_party."""
    home = tmp_path_factory.mktemp("third_party")
    return installed(home, [path.parent for path in HERE.glob("third_party/*/pyproject.toml")])


def installed(home: Path, projects: list[Path]) -> Path:
    """The folder below `home` into which pip has installed these projects, without an index."""
    sources = [shutil.copytree(project, home / project.name) for project in projects]
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation"]
    target = home / "installed"
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", target, *sources], check=True)
    return target


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Puts a distribution with one entry point on the path: `package(name, version, point, source)`.

    `source` is the text of a module, or the name of one that exists. Returns the module's name.
    """
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def make(name: str, version: str, point: str, source: str) -> str:
        module = source if source.isidentifier() else f"made_{name}_{tmp_path.name}".replace("-", "_")
        if module != source:
            (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[zoo]\n{point} = {module}\n")
        importlib.invalidate_caches()
        return module

    yield make
    for module in set(sys.modules) - before:
        if module.startswith(("made_", "zoo_file_")):
            del sys.modules[module]


@pytest.fixture
def zoo_command():
    """Runs `python -m zoo` in a process of its own: `zoo_command(*arguments, path=None, **environment)`."""

    def run(*arguments: str, path: Path | None = None, **environment: str) -> subprocess.CompletedProcess:
        env = {**os.environ, "PYTHONPATH": str(path or ""), **environment}
        return subprocess.run([sys.executable, "-m", "zoo", *arguments], env=env, capture_output=True, text=True)

    return run
