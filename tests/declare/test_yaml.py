"""The loader: YAML 1.2 scalars, every fault with its place, and what it writes it reads back."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zoo import SpecError
from zoo.declare import yaml


def faults(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        yaml.load(text, "f.yaml")
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    "text, value",
    [
        ("3e-4", 3e-4), ("1e5", 1e5), ("1E+5", 1e5), ("3.", 3.0), (".5", 0.5), ("-.5e1", -5.0), ("3.10", 3.1),
        (".inf", math.inf), ("-.INF", -math.inf), ("+.Inf", math.inf),
        ("010", 10), ("08", 8), ("0o10", 8), ("0x1F", 31), ("-3", -3), ("+7", 7), ("0", 0),
        ("1_000", "1_000"), ("1:30", "1:30"), ("2024-01-02", "2024-01-02"), ("0b1", "0b1"), ("1e", "1e"),
        ("no", "no"), ("on", "on"), ("Off", "Off"), ("yes", "yes"), ("y", "y"), ("tRUE", "tRUE"), ("inf", "inf"),
        ("true", True), ("False", False), ("TRUE", True), ("null", None), ("~", None), ("", None), ("none", "none"),
        ("'1'", "1"), ('"null"', "null"), ("=", "="), (".", "."), ("!!str 12", "12"), ("!!float 1", 1.0),
    ],
)  # fmt: skip
def test_scalars_of_yaml_1_2(text, value):
    got = yaml.load(f"- {text}").value[0]
    assert got == value and type(got) is type(value)
    assert yaml.scalar(text) == value


def test_nan_is_read():
    assert math.isnan(yaml.scalar(".nan"))


def test_places_of_values_and_keys():
    document = yaml.load("models:\n  a: {name: x, base: 3}\n  b:\n    - p\n    - q: 1\n", "f.yaml")
    assert document.where(("models", "a", "base")) == "f.yaml:2:22"
    assert document.where(("models", "a", "base"), key=True) == "f.yaml:2:16"
    assert document.where(("models", "b", 1, "q")) == "f.yaml:5:10"
    assert document.where(("models", "b", 0)) == document.where(("models", "b", 0), key=True) == "f.yaml:4:7"
    assert document.where(("models", "a", "absent", "deeper")) == "f.yaml:2:6"
    assert document.where(("models", "absent"), key=True) == "f.yaml:1:1"
    assert document.where(()) == "f.yaml:1:1" == yaml.load("", "f.yaml").where(("x",))


def test_repeated_keys_and_tags_are_reported_together():
    assert faults("a: 1\nnorm: x\na: 2\nb: !thing 1\nc:\n  norm: 1\n  norm: !!python/name:os.system\n") == [
        "f.yaml:3:1: key 'a' is already set in line 1",
        "f.yaml:4:4: tag '!thing' is not allowed here",
        "f.yaml:7:3: key 'norm' is already set in line 6",
    ]


def test_a_merged_value_may_be_overridden_before_or_after():
    text = "base: &b {x: 1, y: 2}\nlate: {<<: *b, x: 5}\nearly: {x: 6, <<: *b}\nboth: {<<: [*b, {y: 9, z: 3}]}\n"
    document = yaml.load(text, "f.yaml")
    assert document.value == {
        "base": {"x": 1, "y": 2}, "late": {"x": 5, "y": 2}, "early": {"x": 6, "y": 2}, "both": {"x": 1, "y": 2, "z": 3},
    }  # fmt: skip
    assert document.where(("late", "y")) == "f.yaml:1:20"
    assert document.where(("late", "x")) == "f.yaml:2:19"
    assert faults("<<: {a: 1}\n<<: {a: 2}") == ["f.yaml:2:1: key '<<' is already set in line 1"]
    assert faults("<<: 3") == ["f.yaml:1:5: '<<' takes a mapping or a list of mappings"]


def test_an_alias_makes_a_value_of_its_own():
    value = yaml.load("a: &a [1]\nb: *a").value
    value["a"].append(2)
    assert value["b"] == [1]


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}", "a: &a {<<: [*a]}"])
def test_recursion_is_refused(text):
    assert faults(text) == ["f.yaml:1:4: this value contains itself through an alias"]


def bomb(item: str) -> str:
    lines = [f"a0: &a0 {item.format('{k: 1}')}"]
    lines += [f"a{i}: &a{i} {item.format(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize("item", ["[{}]", "{{<<: [{}], more: 1}}", "{{x: [{}]}}"])
def test_alias_bombs_are_refused(item):
    assert "expand to more than 100000 values" in faults(bomb(item))[0]


def test_a_wide_mapping_merged_often_is_refused():
    wide = ", ".join(f"k{i}: {i}" for i in range(400))
    assert "expand to more than" in faults(f"a: &a {{{wide}}}\nb: {{<<: [{', '.join(['*a'] * 400)}]}}")[0]


@pytest.mark.parametrize(
    "text, fault",
    [
        ("a:\n\t- b", "2:1: a tab stands where only spaces may"),
        ("a: b: c", "1:5: mapping values are not allowed here"),
        ("x:\n - '1\n", "3:1: found unexpected end of stream (while scanning a quoted scalar, from line 2)"),
        ("--- a\n--- b", "2:1: a second document begins here; one file holds one"),
        ("a: 1\nb: \x01", "2:4: character U+0001 is not allowed"),
        ("[" * 1000, "1:65: more than 64 levels deep"),
        ("a: 1e999", "1:4: '1e999' is too large for a float"),
        ("a: " + "9" * 5000, "1:4: '" + "9" * 40 + "' is not a YAML int"),
        ("b: *y", "1:4: found undefined alias 'y'"),
        ("? [a]\n: b", "1:3: a key should be one plain text or number"),
        ("!!int abc", "1:1: 'abc' is not a YAML int"),
        ("!!set {a}", "1:1: tag '!!set' is not allowed here"),
        ('"\\UFFFFFFFF"', "1:4: this escape is not a character"),
    ],
)  # fmt: skip
def test_other_faults_have_a_place(text, fault):
    assert faults(text) == ["f.yaml:" + fault]


def test_files(tmp_path):
    good = tmp_path / "good.yaml"
    good.write_bytes("\ufeffa: é\r\nb: 2\r\n".encode())
    document = yaml.load_file(good)
    assert document.value == {"a": "é", "b": 2} and document.where(("b",)) == f"{good}:2:4"
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    for name, text in {
        "latin.yaml": "latin.yaml:2:7: byte 0xe9 is not UTF-8",
        "absent.yaml": "absent.yaml: cannot be read: no such file or directory",
        "": f"{tmp_path.name}: cannot be read: is a directory",
    }.items():
        with pytest.raises(SpecError, match=re.escape(text)):
            yaml.load_file(tmp_path / name)


words = st.sampled_from(
    ["1e5", "3e-4", "null", "~", "no", "true", "010", "0x1F", "1_000", ".inf", "<<", "=", "1:30", "", " a", "-", "a: b"]
    + ["# c", "!x", "&a", "*a", "2024-01-02", "\x85", "é\u2028", "\ufeff", "a\n b\n", "\ta"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9) | words, inner, max_size=4),
    max_leaves=12,
)


def same(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@settings(max_examples=300, deadline=None)
@given(values)
def test_what_is_written_reads_back(value):
    assert same(yaml.load(yaml.dump(value)).value, value)


def test_written_as_a_person_would():
    value = {"model": {"name": "x", "base": 1e-05, "eps": 1e5}, "rows": [1, "no", "3e-4"], "shared": None}
    assert yaml.dump(value) == ("model: {name: x, base: 1e-05, eps: 100000.0}\nrows: [1, no, '3e-4']\nshared: null\n")
    assert yaml.dump({"a": value["model"], "b": value["model"]}).count("&") == 0


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab: -[]{},&*!|>'\"\\U0xF?%@#\n\t~<.e1"), max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        document = yaml.load(text, "f.yaml")
    except SpecError as error:
        assert all(re.match(r"f\.yaml:\d+:\d+$", fault.where) for fault in error.faults)
    else:
        assert document.where(()).startswith("f.yaml:")
