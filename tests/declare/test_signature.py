"""A constructor as the schema of its options: types in words, checks of values, requests by name."""

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest

from zoo.declare.signature import REQUIRED, Field, Part, fields_of, read, show, words
from zoo.declare.spec import Train
from zoo.registry import discover

WORDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    int | None: "an integer or null",
    Literal["a", "b"]: "one of a, b",
    Literal["a"]: "a",
    list[str]: "a list of texts",
    list[int] | None: "a list of integers or null",
    tuple[float, float]: "a list of 2: a number, a number",
    tuple[int, ...]: "a list of integers",
    bool | list[Literal["q", "k"]]: "true or false or a list of any of q, k",
    dict[str, int]: "a mapping",
    Mapping[str, int]: "a mapping",
    list: "a list",
    Any: "any value",
    Annotated[Any, Part("ffn")]: "any value",
}


@pytest.mark.parametrize("annotation", WORDS, ids=str)
def test_types_in_words(annotation):
    assert words(annotation) == WORDS[annotation]


@pytest.mark.parametrize(
    "annotation, value, expected",
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (float, 1e-5, 1e-5),
        (bool, True, True),
        (int | None, None, None),
        (Literal["a", "b"], "b", "b"),
        (tuple[float, float], [0.9, 1], (0.9, 1.0)),
        (bool | list[Literal["q", "k"]], ["k"], ["k"]),
        (float | str | list[str], "x", "x"),
        (Any, {"a": [1]}, {"a": [1]}),
    ],
)
def test_values_that_are_taken(annotation, value, expected):
    found = Field("x", annotation).check(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    "annotation, value, said",
    [
        (int, True, "true; it should be an integer"),
        (int, 2.0, "2.0; it should be an integer"),
        (int, "3", "'3'; it should be an integer"),
        (int | None, 2.5, "2.5; it should be an integer or null"),
        (float, True, "true; it should be a number"),
        (float, "1e-3", "'1e-3'; it should be a number"),
        (float, math.inf, ".inf; it should be a number"),
        (float, -math.inf, "-.inf; it should be a number"),
        (float, math.nan, ".nan; it should be a number"),
        (Any, [math.nan], "[NaN]; it should be any value"),
        (bool, 0, "0; it should be true or false"),
        (bool, "no", "'no'; it should be true or false"),
        (str, False, "false; it should be text"),
        (str, 3.1, "3.1; it should be text"),
        (Literal["half", "interleaved"], "interleved", "'interleved'; it should be one of half, interleaved; "
                                                       "did you mean 'interleaved'?"),
        (bool | list[Literal["q", "out"]], ["x"], '["x"]; it should be true or false or a list of any of q, out'),
        (tuple[float, float], [0.9], "[0.9]; it should be a list of 2: a number, a number"),
        (list[str], "x", "'x'; it should be a list of texts"),
        (int, object, f"{object}; it should be an integer"),
    ],
)  # fmt: skip
def test_values_that_are_refused(annotation, value, said):
    with pytest.raises(ValueError) as caught:
        Field("x", annotation).check(value)
    assert str(caught.value) == said


def test_a_number_beyond_every_float_is_no_number():
    with pytest.raises(ValueError, match="it should be a number"):
        Field("x", float).check(10**400)


def attention(shape, kernel, norm, *, heads: int, bias: bool = False, inner: Annotated[Any, Part("ffn")] = "x"):
    pass


class Takes:
    def __init__(self, dim, *, eps: "float" = 1e-5, inner: Annotated[Any, Part("norm")] | None = None):
        pass


def test_requests_and_options():
    found = read(attention, "attention")
    assert found.requests == ("shape", "kernel", "norm")
    assert {name: (f.default, f.slot) for name, f in found.options.items()} == {
        "kernel": (None, "kernel"), "norm": (None, "norm"), "heads": (REQUIRED, None), "bias": (False, None),
        "inner": ("x", "ffn"),
    }  # fmt: skip
    assert found.options["kernel"].expected == "a part for kernel"
    found = read(Takes, "norm")
    assert found.requests == ("dim",) and found.options["eps"].annotation is float
    assert found.options["inner"].slot == "norm", "a part or null is a part"


def test_what_a_variant_fixes_is_no_option():
    found = read(attention, "attention", {"heads": 3, "kernel": "y"})
    assert set(found.options) == {"norm", "bias", "inner"}
    assert {name: f.slot for name, f in found.fixed.items()} == {"heads": None, "kernel": "kernel"}
    assert found.requests == ("shape", "kernel", "norm")
    assert set(read(attention, "attention").options) >= {"heads", "kernel"}, "the same target under another name"


def rest(*shapes):
    pass


def anything(shape, **options):
    pass


def reserved(shape, *, first: int = 0):
    pass


def opaque(shape, *, device: object().__class__ | type(math) = None):
    pass


def astray(shape, *, x: "Nowhere" = 0):  # noqa: F821
    pass


def no_such_slot(shape, *, x: 'Annotated[Any, Part("fnn")]' = None):
    pass


@pytest.mark.parametrize(
    "target, said",
    [
        (attention, "its constructor asks for 'kernel'; a position may ask for shape"),
        (rest, "its constructor asks for 'shapes'; a position may ask for shape"),
        (anything, "its constructor asks for 'options'; a position may ask for shape"),
        (reserved, "its option 'first' has a name that says what form a value has; call it otherwise"),
        (opaque, "its option 'device' is object or module, which no YAML can hold"),
        (astray, "its constructor cannot be read: name 'Nowhere' is not defined"),
        (no_such_slot, "its constructor cannot be read: there is no slot 'fnn'; did you mean 'ffn'?"),
        (int, "its constructor cannot be read: "),
        (functools.partial(print), "its constructor cannot be read: "),
    ],
)
def test_constructors_that_no_user_could_fill(target, said):
    with pytest.raises(ValueError) as caught:
        read(target, "position")
    assert str(caught.value).startswith(said)


def test_fixing_what_is_not_there():
    with pytest.raises(ValueError, match="it fixes 'haeds', which its constructor does not have"):
        read(attention, "attention", {"haeds": 3})


@pytest.mark.parametrize("slot, name", [(e.variant.slot, e.variant.name) for e in discover(plugins=False).entries])
def test_every_variant_says_what_it_takes(slot, name):
    """Annotations and defaults of every option agree, so that what `zoo config` prints can be read again."""
    registry = discover(plugins=False)
    entry = registry.find(slot, name)
    for f in read(registry.load(entry), slot, entry.variant.fixed).options.values():
        assert f.expected
        if f.slot is None and f.default is not REQUIRED:
            assert f.check(f.default) == f.default


def test_fields_of_a_dataclass():
    fields = fields_of(Train)
    assert fields["lr"].expected == "a number above 0" and fields["lr"].default == 3e-3
    assert fields["schedule"].slot == "schedule" and fields["tokens"].expected == "an integer of at least 1 or null"
    assert list(fields)[:3] == ["steps", "tokens", "batch_size"]


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "null"), (True, "true"), (3, "3"), (1e-5, "1e-05"), ("x", "'x'"), ("é", "'é'"),
        (["é", None], '["é", null]'), (math.inf, ".inf"), (-math.inf, "-.inf"), (math.nan, ".nan"),
        ({"a": 1}, '{"a": 1}'),
    ],
)  # fmt: skip
def test_values_as_they_are_written(value, text):
    assert show(value) == text
