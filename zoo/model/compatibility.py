"""Which parts refuse each other: every pair of variants is put into one model, without weights, and built."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from zoo.declare.library import open_library
from zoo.declare.shape import Shape
from zoo.declare.spec import MODEL_SLOTS, Node
from zoo.faults import SpecError
from zoo.registry import Registry

from .builder import bind_task, build_on_meta, check_task

SHAPE = Shape()


@dataclass(frozen=True)
class Refusal:
    """Two parts, each as `slot:name`, that cannot stand in one model, and why. One part alone: not even by default."""

    parts: tuple[str, ...]
    reason: str


class Trial:
    """Models made of defaults and a few chosen parts."""

    def __init__(self, registry: Registry):
        self.library = open_library(registry=registry)
        reader = self.library.reader()
        self.slots = [s for s in (*MODEL_SLOTS, "task") if s != "cross"]
        self.parts = {
            (slot, name): reader.part(Node(name), slot)
            for slot in self.slots
            for name in map(registry.spelling, registry.variants(slot))
        }

    def explain_refusal(self, chosen: dict[str, str]) -> str:
        """Why this choice cannot be built; nothing if it can."""
        reader = self.library.reader()
        model = reader.model(Node({slot: name for slot, name in chosen.items() if slot != "task"}))
        try:
            reader.finish()
            assert model is not None, "`finish` raises"
            build_on_meta(model, SHAPE, self.library.registry)
            if "task" in chosen:
                task = self.parts["task", chosen["task"]]
                assert task is not None, "it was read before"
                check_task(model, SHAPE, bind_task(task, SHAPE), task, self.library.registry)
        except SpecError as error:
            return "; ".join(fault.text for fault in error.faults)
        return ""


def find_refusals(registry: Registry) -> Iterator[Refusal]:
    """Every part that cannot stand beside the defaults, and every pair of the others that cannot stand together."""
    trial = Trial(registry)
    alone = []
    for slot, name in (key for key, part in trial.parts.items() if part is not None):
        if reason := trial.explain_refusal({slot: name}):
            yield Refusal((f"{slot}:{name}",), reason)
        else:
            alone.append((slot, name))
    for one, other in itertools.combinations(alone, 2):
        if one[0] != other[0] and (reason := trial.explain_refusal(dict([one, other]))):
            yield Refusal((":".join(one), ":".join(other)), reason)
