"""The conformance kit itself: partners, values, verdicts, the command and its formats, and the tests that it makes."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

import pytest
import torch
from click.testing import CliRunner
from support import planted
from support.catalogue import offered
from torch import nn

from zoo import Variant, pytest_plugin
from zoo.cli import main
from zoo.cli.check import FORMATS, display
from zoo.declare.signature import Field, choices
from zoo.parts import Cell, Part
from zoo.registry import discover
from zoo.testing import SHAPES, ModelCase, Subject, check_variant, conformance, examine, report
from zoo.testing.harness import FAILED, PASSED, SKIPPED, Result, Suite
from zoo.testing.models import CHECKS, FURTHER, ONCE
from zoo.testing.option_values import list_edges, propose_values
from zoo.testing.partners import ORDER, choose_models

REGISTRY = discover(plugins=False)


def subject(what: str, partners: int = 6, registry=REGISTRY, **options) -> Subject:
    from zoo.declare.library import open_library

    return Subject(*what.split(":"), options, open_library(registry=registry), partners)


def names(value) -> set[str]:
    """All that a slot's value names."""
    if isinstance(value, dict) and "name" in value:
        return {value["name"]}
    if isinstance(value, list | dict):
        return {name for v in (value.values() if isinstance(value, dict) else value) for name in names(v)}
    return {value}


@pytest.mark.parametrize("what", ["norm:rmsnorm", "attention:lstm"])
def test_every_variant_is_beside_the_tested_one_or_refuses_it(what):
    tested = subject(what, partners=16)
    beside = {slot: set() for slot in ORDER}
    for spec, _ in choose_models(tested):
        for slot in ORDER:
            beside[slot] |= names(spec.get(slot, []))
    refused = {refusal.partition(": ")[0] for refusal in tested.refusals}
    for slot in set(ORDER) - {tested.slot}:
        missing = {e.variant.name for e in REGISTRY.variants(slot)} - beside[slot]
        assert {f"{slot}:{name}" for name in missing} <= refused


def test_partners_are_diverse_and_the_same_each_time():
    found = choose_models(subject("norm:rmsnorm"))
    assert found == choose_models(subject("norm:rmsnorm"))
    assert found[0] == ({"norm": "rmsnorm"}, "even"), "the plainest comes first"
    assert {shape for _, shape in found} == set(SHAPES)
    assert {spec.get("architecture") for spec, _ in found[1:]} == {"decoder-only", "encoder-only", "encoder-decoder"}
    assert any(isinstance(spec["ffn"], list) for spec, _ in found[1:]), "layers differ in one"
    assert any(isinstance(spec["norm"], dict) and len(spec["norm"]) == 3 for spec, _ in found), "its options differ"
    other = choose_models(subject("norm:layernorm"))
    assert [spec["ffn"] for spec, _ in found[1:]] != [spec["ffn"] for spec, _ in other[1:]], "another has others"


def test_a_mixer_that_cannot_do_all_stands_where_it_can():
    found = [spec for spec, _ in choose_models(subject("attention:lstm"))]
    across = next(spec for spec in found if spec.get("architecture") == "encoder-decoder")
    assert across["cross"] == "mha" and names(across["attention"]) >= {"lstm"}


def test_a_refusal_is_kept_with_its_reason():
    tested = subject("position:rope")
    choose_models(tested)
    assert any(r.startswith("shape:odd: position 'rope': a rotary width of 5 is odd") for r in tested.refusals)


@pytest.mark.parametrize(
    ("annotation", "default", "first"),
    [
        (bool, False, [True]),
        (int, 8, [9, 16, 4, 2]),
        (int | None, None, [2, 3]),
        (int | None, 2, [3, 4, 1]),
        (float, 0.0, [0.5, 1.0]),
        (float | None, 0.5, [1.0, 0.25]),
        (Literal["a", "b", "c"], "b", ["a", "c"]),
        (bool | list[Literal["q", "k"]], False, [True, ["q"], ["k"], ["q", "k"]]),
        (tuple[float, float], (1.0, 1.0), [[0.5, 0.5]]),
        (str, "x", []),
    ],
)
def test_other_values(annotation, default, first):
    assert propose_values(Field("x", annotation, default), REGISTRY)[: len(first)] == first


def test_other_values_of_a_part():
    found = propose_values(Field("x", Annotated[Any, Part("norm")], "rmsnorm", "norm"), REGISTRY)
    assert set(found) == {e.variant.name for e in REGISTRY.variants("norm")} - {"rmsnorm"}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [(int | None, [0, -1]), (float, [0.0, -1.0]), (list[int], [[], [0], [-1]]), (Literal["a"], []), (bool, [])],
)
def test_edges(annotation, expected):
    assert list_edges(annotation) == expected


class Numbered(int):
    label = property(lambda self: f"case {int(self)}")


def even(case):
    return None if case % 2 == 0 else "it is odd"


def small(case):
    if case == 7:
        raise KeyError("no such thing")
    assert case < 2, "it should be below 2."


@pytest.mark.parametrize(
    ("cases", "even_status", "small_status"),
    [([0, 1], PASSED, PASSED), ([1, 1], SKIPPED, PASSED), ([0, 2], PASSED, FAILED), ([0, 7], PASSED, FAILED)],
)
def test_a_verdict_over_cases(cases, even_status, small_status):
    suite = Suite(lambda _: [Numbered(n) for n in cases], {"even": even, "small": small})
    one, two = examine(subject("norm:rmsnorm"), suite)
    assert (one.status, two.status) == (even_status, small_status)
    assert one.partners == tuple(f"case {n}" for n in cases) and one.seconds >= 0
    assert one.reason == ("it is odd" if even_status == SKIPPED else "")
    assert ("zoo check norm:rmsnorm --only small" in two.reason) == (small_status == FAILED)
    if 7 in cases:
        assert "KeyError at test_harness.py:" in two.reason and "Model: case 7" in two.reason
    assert [r.check for r in examine(subject("norm:rmsnorm"), suite, ["small"])] == ["small"]


def test_a_costly_check_looks_at_the_first_case():
    suite = Suite(lambda _: [Numbered(1), Numbered(5)], {"small": small}, frozenset({"small"}))
    assert [(r.status, r.partners) for r in examine(subject("norm:rmsnorm"), suite)] == [(PASSED, ("case 1",))]


def test_tiny_models_are_checked_by_one_thread():
    seen, before = [], torch.get_num_threads()
    suite = Suite(lambda _: [Numbered(0)], {"threads": lambda _: seen.append(torch.get_num_threads())})
    torch.set_num_threads(2)
    list(examine(subject("norm:rmsnorm"), suite))
    assert (seen, torch.get_num_threads()) == ([1], 2)
    torch.set_num_threads(before)


FOUND = [
    report.Findings("norm:a", (Result("norm:a", "padding", PASSED, "", ("x", "y"), 0.5),), ("kernel:k: no",), 1.0),
    report.Findings(
        "norm:b",
        (
            Result(
                "norm:b", "padding", FAILED, "Pads | were <added>:\x00 they should not show.\nTo repeat it: …", ("x",)
            ),
            Result("norm:b", "window", SKIPPED, "its attention has no window", ("x",)),
        ),
    ),
]


def test_formats_are_those_of_the_command():
    assert set(FORMATS) == set(report.FORMATS)


def test_json_is_strict():
    read = json.loads(report.json(FOUND), parse_constant=pytest.fail)
    assert (read["format"], read["failed"]) == (1, 1)
    assert [v["variant"] for v in read["variants"]] == ["norm:a", "norm:b"]
    first = read["variants"][0]
    assert first["refusals"] == ["kernel:k: no"]
    assert first["results"][0] == {
        "variant": "norm:a", "check": "padding", "status": "passed", "reason": "", "partners": ["x", "y"], "seconds": 0.5,
    }  # fmt: skip


def test_junit_has_a_case_per_property():
    top = ElementTree.fromstring(report.junit(FOUND).encode())
    cases = top.findall("./testsuite/testcase")
    assert [(c.get("classname"), c.get("name")) for c in cases] == [
        ("norm:a", "padding"), ("norm:b", "padding"), ("norm:b", "window"),
    ]  # fmt: skip
    assert [s.get("failures") + s.get("skipped") + s.get("tests") for s in top] == ["001", "112"]
    assert cases[1].find("failure").text.startswith("Pads | were <added>: they should")
    assert cases[2].find("skipped").get("message") == "its attention has no window"


def test_text_of_one_and_of_many():
    one, many = report.text(FOUND[:1]), report.text(FOUND)
    assert "padding  passed  (2 partners, 0.5 s)" in one and "kernel:k: no" in one
    assert "norm:b fails 'padding':" in many and many.endswith("2 variants: 1 passed, 1 does not apply, 1 failed\n")


def test_markdown_has_notes():
    text = report.markdown([FOUND[1], replace(FOUND[1], variant="norm:c")])
    assert text.count("| ✗ 1") == 2 and text.count("| – 2") == 2 and "\n2. its attention has no window" in text
    assert "1. Pads \\| were \\<added>" in text


def run(*arguments: str):
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


SOUND = """
import torch, zoo
from torch import nn


class Doubled(nn.Module):
    def __init__(self, dim, *, gain: float = 2.0):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return self.gain * torch.tanh(x)


@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("norm", "doubled", Doubled, "Twice the hyperbolic tangent.")]
"""
BROKEN = {
    "imports what is not there": ("import torch", "import torch_nowhere", 4),
    "looks at the whole batch": ("torch.tanh(x)", "torch.tanh(x - x.mean(0))", 1),
    "is fine": ("", "", 0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_is_checked(tmp_path, name):
    old, new, code = BROKEN[name]
    path = tmp_path / "doubled.py"
    path.write_text(SOUND.replace(old, new))
    result = run(path, "--only", "rows", "--partners", 2)
    assert result.exit_code == code, result.output
    if code == 1:
        assert "The second row of a batch was replaced" in result.stdout
        assert f"zoo check {path} --partners 2 --only rows" in " ".join(result.stdout.split())
    if code == 4:
        assert "plugin 'doubled'" in result.stderr and "torch_nowhere" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["norm:rmsnom"], "no norm is called 'rmsnom'; did you mean 'rmsnorm'?"),
        (["nrm:rmsnorm"], "there is no slot 'nrm'; did you mean 'norm'?"),
        (["rmsnorm"], "there is no plugin 'rmsnorm'; did you mean 'norm:rmsnorm'?"),
        (["no-such-plugin"], "there is no plugin 'no-such-plugin'"),
        (["nowhere.py"], "plugin file nowhere.py cannot be read"),
        (["norm:rmsnorm", "--only", "pading"], "no property is called 'pading'; did you mean 'padding'?"),
        (["norm", "--set", "eps=1"], "name it as SLOT:NAME"),
        (["norm:rmsnorm", "--set", "eps"], "it should be option=value"),
    ],
)
def test_what_there_is_not(arguments, said):
    result = run(*arguments)
    assert result.exit_code == 2 and said in result.stderr, result.output


def test_an_option_of_the_command_reaches_the_variant(tmp_path):
    path = tmp_path / "found.json"
    result = run(
        "norm:rmsnorm", "--only", "rows", "--partners", 1, "--set", "eps=0.5", "--format", "json", "--output", path
    )
    assert result.exit_code == 0 and result.stdout == ""
    assert '"eps": 0.5' in json.loads(path.read_text())["variants"][0]["results"][0]["partners"][0]
    refused = run("norm:rmsnorm", "--only", "rows", "--set", "eps=-1.0")
    assert refused.exit_code == 1 and "eps is -1" in refused.stdout


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_lines_or_one_line_that_moves():
    for many, over, said in ((1, False, "norm:a  padding  passed"), (2, True, "norm:a  1 passed")):
        stream = io.StringIO()
        with display([None] * many, stream) as show:
            show(FOUND[0], not over)
            assert stream.getvalue() == ""
            show(FOUND[0], over)
        assert stream.getvalue().startswith(said)
    stream = Terminal()
    with display([None] * 2, stream) as show:
        show(FOUND[1], True)
    assert "1/2 variants, 1 failed: norm:b, window" in stream.getvalue()


def test_a_test_with_an_item_per_property():
    made = conformance("norm:rmsnorm", without=["compiles"])
    (mark,) = made.pytestmark
    every = [*CHECKS, *FURTHER, *ONCE]
    assert mark.kwargs["ids"] == [f"norm:rmsnorm-{name}" for name in every if name != "compiles"]


def test_pytest_finds_a_fault(tmp_path):
    """In a process of its own: by a test file's one line, and by the option without any file."""
    if not any(point.name == "zoo" for point in metadata.entry_points(group="pytest11")):
        pytest.skip("the package was installed before it had a pytest plugin")
    (tmp_path / "doubled.py").write_text(SOUND.replace("torch.tanh(x)", "torch.tanh(x - x.mean(0))"))
    (tmp_path / "test_doubled.py").write_text(
        "from zoo.testing import conformance\ntest_doubled = conformance('doubled.py', partners=2)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "rows or window or round_trip"]
    made = subprocess.run([*command, "--zoo-check", "doubled.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "2 failed, 2 passed, 2 skipped" in made.stdout, made.stdout
    assert made.stdout.count("The second row of a batch was replaced") >= 2


def test_pytest_refuses_what_there_is_not():
    """In this process: another would spend its time on importing torch."""
    session = SimpleNamespace(config=SimpleNamespace(getoption=lambda name: ["norm:x"]))
    with pytest.raises(pytest.UsageError, match="no norm is called 'x'"):
        pytest_plugin.pytest_collection_modifyitems(session, [])


def test_the_pytest_plugin_costs_nothing_unasked():
    code = "import zoo.pytest_plugin, sys; assert 'torch' not in sys.modules and 'zoo.registry' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def reading_the_last_slot(grow):
    """Which nobody has filled while the cache has room."""

    def broken(self, *new):
        return tuple(x + 1e-3 * b[:, :, -1:] for x, b in zip(grow(self, *new), self.buffers))

    return broken


def drawing(forward):
    def broken(self, x):
        torch.rand(())
        return forward(self, x)

    return broken


FURTHER_BUGS = {
    "half-full": ("decoding", Cell, "grow", reading_the_last_slot, "from a cache with room for"),
    "drawn in eval": ("determinism", nn.Dropout, "forward", drawing, "state of the random generator"),
}


@pytest.mark.parametrize("name", FURTHER_BUGS)
def test_what_else_a_property_finds(name, monkeypatch):
    check, owner, method, broken, said = FURTHER_BUGS[name]
    check = {**CHECKS, **FURTHER}[check]
    assert check(ModelCase.of(planted.DECODER)) is None
    monkeypatch.setattr(owner, method, broken(getattr(owner, method)))
    with pytest.raises(AssertionError, match=said):
        check(ModelCase.of(planted.DECODER))


class Optional(nn.Module):
    """A norm with options of every kind; `broken` says which is ignored or fails."""

    broken = ""

    def __init__(self, dim, *, kind: Literal["plain", "bent"] = "plain", size: int = 2, shift: float = 0.0):
        super().__init__()
        if size < 1 and self.broken != "refusal":
            raise ValueError(f"size is {size}; it should be at least 1")
        self.bend = kind == "bent" and self.broken != "kind"
        self.shift, self.size = 0.0 if self.broken == "shift" else shift, [1.0] * size
        self.scale = 0.5 ** len(self.size) / (size if self.broken == "refusal" else 1)

    def forward(self, x):
        return self.shift + self.scale * (torch.sin(x) if self.bend else torch.tanh(x))


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        ("", "options", ""),
        ("", "ranges", ""),
        ("kind", "options", "Option kind became 'bent'(.|\n)*Is it ignored"),
        ("shift", "options", "Option shift became one of 0.5(.|\n)*Is it ignored"),
        ("refusal", "ranges", "Option size became 0: it should be refused by a ValueError(.|\n)*ZeroDivisionError"),
    ],
)
def test_options_of_every_kind(broken, check, said, monkeypatch):
    monkeypatch.setattr(Optional, "broken", broken)
    registry = offered(Variant("norm", "optional", Optional))
    if not said:
        check_variant("norm", "optional", registry=registry, only=[check], partners=1)
        return
    with pytest.raises(AssertionError, match=said):
        check_variant("norm", "optional", registry=registry, only=[check], partners=1)


def test_every_word_of_an_option_counts():
    assert choices(Literal["a", "b"] | None) == ("a", "b")


def test_the_report_has_a_row_of_every_variant_and_no_failure():
    text = (Path(__file__).parents[2] / "reports" / "conformance.md").read_text()
    rows = set(re.findall(r"^\| (\S+:\S+) ", text, re.M))
    assert rows == {f"{e.variant.slot}:{e.variant.name}" for e in REGISTRY.entries}, "write it anew: make conformance"
    assert "✗" not in text.partition("\n|")[2]
