"""Every variant of the slots that are no part of a model, held to what is held of its slot."""

import pytest

from zoo.registry import discover
from zoo.testing import Subject, check_variant
from zoo.testing.suites import load_suite

REGISTRY = discover(plugins=False)
SLOTS = ("task", "data", "tokenizer", "optimizer", "schedule", "metric", "reference", "family")
ENTRIES = [entry.variant for slot in SLOTS for entry in REGISTRY.variants(slot)]
OPTIONS = [
    ("task", "language-modeling", {"prefix": 5, "length": 12}),
    ("task", "copy", {"eos": False, "min_length": 4, "max_length": 4}),
    ("task", "associative-recall", {"pairs": 2, "queries": 3}),
    ("tokenizer", "char", {"unknown": False}),
    ("tokenizer", "bpe", {"vocab_size": 300}),
    ("optimizer", "adamw", {"implementation": "foreach"}),
    ("optimizer", "sgd", {"momentum": 0.0}),
    ("schedule", "cosine", {"floor": 0.0}),
    ("reference", "n-gram", {"order": 1, "discount": 0.5}),
]


@pytest.mark.parametrize("variant", ENTRIES, ids=lambda v: f"{v.slot}:{v.name}")
def test_every_variant_does_what_its_slot_asks(variant):
    results = check_variant(variant.slot, variant.name, registry=REGISTRY)
    assert {r.check for r in results} == set(load_suite(variant.slot).checks)


@pytest.mark.parametrize(("slot", "name", "options"), OPTIONS)
def test_with_other_options(slot, name, options):
    assert any(r.status == "passed" for r in check_variant(slot, name, registry=REGISTRY, **options))


def test_data_that_is_given_is_kept():
    with pytest.raises(AssertionError, match="the data has no source"):
        check_variant("task", "classification", registry=REGISTRY, data="python-docs")


@pytest.fixture
def tables(tmp_path):
    """A text and a table."""
    text, rows = tmp_path / "text.txt", tmp_path / "rows.tsv"
    text.write_text("".join(f"line {i}\n\n" for i in range(60)))
    rows.write_text("a\tb\n" + "".join(f"go {i}\taller {i}\n" for i in range(60)))
    return {"text": {"files": str(text), "documents": "blank-line"}, "table": {"files": str(rows), "target": "b"}}


@pytest.mark.parametrize(("name", "more"), [("text", {}), ("table", {}), ("table", {"source": "a"})])
def test_files_of_ones_own(tables, name, more):
    results = check_variant("data", name, registry=REGISTRY, **tables[name], **more)
    assert {r.status for r in results} == {"passed"}


def test_a_variant_that_needs_an_option_says_so():
    results = check_variant("data", "text", registry=REGISTRY)
    assert {(r.status, r.reason) for r in results} == {("does not apply", "it needs files, which nobody gave it")}


def test_tasks_are_tried_with_the_data_that_they_take():
    labels = [
        [case.label for case in load_suite("task").cases(Subject("task", name))]
        for name in ("language-modeling", "classification", "copy")
    ]
    assert labels == [["task:language-modeling with lines"], ["task:classification with pairs"], ["task:copy"]]
