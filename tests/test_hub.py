"""Configurations as they lie on the hub, read by the tables, against the presets and their published counts."""

import pytest
from hub import CONFIGS

from zoo import exchange
from zoo.builder import sketch
from zoo.card import read_model
from zoo.library import open_library
from zoo.signature import show
from zoo.spec import MODEL_SLOTS, PartSpec

LIBRARY = open_library()
COUNTED = {"bart-base", "opus-mt-en-de"}
"""Models whose logits have a bias that is no parameter in transformers and is left out of the presets."""
APART = {
    "smollm3-3b": {"position"},  # the base was raised for long texts
    "starcoder2-3b": {"position"},  # 999999.44 in place of a million
    "bart-base": {"head"},
    "opus-mt-en-de": {"head"},
}
TRAINED = {"kernel", "dropout", "d_ff", "ratio", "balance"}
"""Options that are of no account here: the counts tell the widths, and the rest acts in training alone."""


def imported(name: str):
    family = exchange.family(LIBRARY.registry, None, CONFIGS[name])
    return exchange.typed(*family.read(CONFIGS[name]), LIBRARY)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_of_the_hub_gives_the_published_count(name):
    spec, shape = imported(name)
    count = sum(p.numel() for p in sketch(spec, shape, LIBRARY.registry).parameters())
    assert count - (shape.vocab_size if name in COUNTED else 0) == read_model(LIBRARY, name)[0].published.parameters


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_of_the_hub_gives_the_parts_of_the_preset(name):
    """Two people wrote them, one from the papers and one from the code; an option left open is as good as any."""
    (spec, shape), (preset, sizes) = imported(name), read_model(LIBRARY, name)
    different = set()
    for slot in set(MODEL_SLOTS) - {"cross", "kernel"}:
        for stack in spec.architecture.target.stacks:
            ours, theirs = (model.slots[slot].of(stack) for model in (spec, preset))
            if not all(alike(ours.at(i), theirs.at(i)) for i in range(shape.n_layers)):
                different.add(slot)
    assert different == APART.get(name, set())
    assert [getattr(shape, n) for n in ("d_model", "n_layers")] == [getattr(sizes, n) for n in ("d_model", "n_layers")]


def alike(a: PartSpec, b: PartSpec) -> bool:
    """Whether two parts are of one class and have the same options, where both have any."""
    mine, theirs = ({**part.options, **part.fixed} for part in (a, b))
    told = [(mine[k], theirs.get(k)) for k in mine.keys() - TRAINED if None not in (mine[k], theirs.get(k))]
    return a.target is b.target and all(
        alike(x, y) if isinstance(x, PartSpec) else show(x) == show(y) for x, y in told if "auto" not in (x, y)
    )
