"""Where runs take place: one table, which imports no engine until runs are started there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from zoo.faults import SpecError

if TYPE_CHECKING:
    from zoo.execute.pool import Start


@dataclass(frozen=True)
class Resources:
    """What the largest run of a comparison needs. `accelerated` is whether a run trains elsewhere than on the CPU."""

    cores: int = 1
    gpus: int = 0
    accelerated: bool = False


@dataclass(frozen=True)
class Engine:
    """A place for runs. `target` is `module:function`, which makes of `Resources` a context that gives what starts a
    run, and the capacity: how many runs go side by side. `package` is what has to be installed; the extra that does it
    has the engine's name.
    """

    name: str
    summary: str
    target: str
    package: str = ""

    def check(self) -> None:
        """Raise `SpecError` if a package that the engine needs is not installed."""
        if self.package and not is_installed(self.package):
            hint = f"pip install 'transformer-zoo[{self.name}]'"
            raise SpecError(f"'--on {self.name}' needs the package '{self.package}': {hint}")

    def open(self, resources: Resources, **given: Any) -> AbstractContextManager[tuple[Start, int]]:
        """The context. Raises `SpecError`, on entry too, where the engine cannot be used."""
        self.check()
        module, _, function = self.target.partition(":")
        make: Callable[..., AbstractContextManager[tuple[Start, int]]] = getattr(import_module(module), function)
        return make(resources, **given)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("local", "processes on this machine", "zoo.execute.engines.local:open_local"),
        Engine("ray", "tasks of a Ray cluster", "zoo.execute.engines.ray:open_cluster", "ray"),
        Engine("slurm", "jobs of Slurm", "zoo.execute.engines.slurm:open_slurm", "submitit"),
    )
}


def is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # it is in sys.modules without a description of itself
        return False
