"""`zoo list --matrix`: the pairs of parts that refuse each other, and no others."""

from __future__ import annotations

import json

from click.testing import CliRunner

import zoo.model.compatibility
from zoo import Variant
from zoo.cli import main
from zoo.model.compatibility import Refusal, find_refusals
from zoo.parts import Position
from zoo.registry import Entry, Registry, discover

FEW = {
    "position": {"none", "rope", "sinusoidal"},
    "attention": {"mha", "naive", "none"},
    "kernel": {"auto", "naive"},
    "architecture": {"decoder-only", "encoder-only"},
    "task": {"language-modeling", "copy", "classification"},
    "norm": {"layernorm"},
    "residual": {"pre-norm"},
    "ffn": {"gelu"},
}


def few() -> Registry:
    every = discover(plugins=False).entries
    entries = [e for e in every if e.variant.name in FEW.get(e.variant.slot, {e.variant.name})]
    return Registry(entries, [])


def test_every_pair_that_refuses_and_no_other():
    found = {refusal.parts: refusal.reason for refusal in find_refusals(few())}
    assert set(found) == {
        ("task:classification",),
        ("architecture:encoder-only", "task:language-modeling"),
        ("position:rope", "attention:none"),
        *(("attention:naive", f"kernel:{kernel}") for kernel in FEW["kernel"]),
        *(("attention:none", f"kernel:{kernel}") for kernel in FEW["kernel"]),
    }
    assert found["position:rope", "attention:none"] == (
        "attention 'none': it does not support rotation, which position 'rope' needs; use 'none' or 'sinusoidal'"
    )
    assert "use 'decoder-only'" in found["architecture:encoder-only", "task:language-modeling"]


def test_names_that_clash_are_written_with_their_plugin():
    """And a part that cannot even stand beside the defaults is told once."""

    class Picky(Position):
        def __init__(self, shape):
            raise ValueError("not today")

    kept = {"position": {"none"}, "attention": {"mha"}, "kernel": {"auto"}, "task": {"copy"}}
    entries = [e for e in few().entries if e.variant.name in kept.get(e.variant.slot, {e.variant.name})]
    entries.append(Entry("other", "zoo-other", "1.0", "other", Variant("position", "none", Picky)))
    found = [r for r in find_refusals(Registry(entries, [])) if "position" in str(r.parts)]
    assert ("position:other:none",) in [r.parts for r in found] and "not today" in str(found)
    assert not any("position:other:none" in r.parts and len(r.parts) > 1 for r in found)


def test_the_command_prints_those_of_a_slot(monkeypatch):
    told = [Refusal(("norm:a", "ffn:b"), "they quarrel"), Refusal(("task:c",), "alone")]
    monkeypatch.setattr(zoo.model.compatibility, "find_refusals", lambda registry: iter(told))
    run = CliRunner().invoke
    assert run(main, ["list", "--matrix"]).output == "norm:a x ffn:b  they quarrel\ntask:c  alone\n"
    assert run(main, ["list", "ffn", "--matrix"]).output == "norm:a x ffn:b  they quarrel\n"
    assert json.loads(run(main, ["list", "task", "--matrix", "--json"]).output) == [
        {"parts": ["task:c"], "reason": "alone"}
    ]
