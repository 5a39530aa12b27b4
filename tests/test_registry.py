"""Plugins: a bad one harms only itself and is named, a conflict is explicit, every variant keeps its origin."""

import hashlib
import re
from pathlib import Path

import pytest

import zoo
from zoo.hooks import SLOTS
from zoo.registry import NotFound, PluginError, Registry, discover

GOOD = """
import zoo

def wide(shape, *, width: int = 3):
    return width

@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("position", "wide", wide, "Wide.")]
"""


def hook(returned: str, before: str = "", arguments: str = "") -> str:
    return f"import zoo\n{before}\n@zoo.hookimpl\ndef zoo_variants({arguments}):\n    return {returned}\n"


def variant(slot="position", name="x", target="nowhere:X", more=""):
    return f"[zoo.Variant({slot!r}, {name!r}, {target!r}{more})]"


def record(registry: Registry, name: str, distribution: str = ""):
    (plugin,) = [p for p in registry.plugins if p.name == name and distribution in ("", p.distribution)]
    return plugin


def fault(registry: Registry, slot: str, name: str) -> str:
    with pytest.raises(NotFound) as caught:
        registry.find(slot, name)
    return str(caught.value)


BUILT_IN = {
    "position": "none sinusoidal learned rope rope-linear rope-ntk rope-yarn rope-llama3 alibi t5-bias",
    "norm": "layernorm rmsnorm scalenorm dyt none",
    "residual": "pre-norm post-norm sandwich-norm output-norm parallel rezero layerscale deepnorm",
    "ffn": "relu gelu gelu-tanh swish relu2 glu bilinear reglu geglu geglu-tanh swiglu swiglu-clamped moe moe-softmax "
    "moe-sigmoid none",
    "attention": "mha mqa gqa mla flash naive linear rnn lstm gru mamba none",
    "kernel": "naive flash tiled additive auto",
    "embedding": "plain scaled normed",
    "head": "tied transform untied",
    "architecture": "encoder-only decoder-only encoder-decoder",
    "task": "language-modeling masked-language-modeling classification sequence-to-sequence copy reverse sort "
    "associative-recall",
    "metric": "loss perplexity bpb accuracy exact",
    "data": "python-docs python-source text table",
    "tokenizer": "byte char bpe pretrained",
    "optimizer": "adamw sgd",
    "schedule": "cosine linear constant inverse-sqrt",
    "reference": "n-gram",
    "family": "gpt2 llama mistral qwen2 qwen3 gemma gemma2 gemma3 olmo olmo2 phi gpt-neox gptj gpt-neo falcon bloom "
    "mpt opt starcoder2 smollm3 mixtral gpt-oss cohere bert roberta albert modernbert t5 t5-v1.1 bart marian pegasus "
    "deepseek-v2 deepseek-v3 mamba",
}


@pytest.fixture(scope="module")
def built_in() -> Registry:
    return discover(plugins=False)


@pytest.mark.parametrize("slot", SLOTS)
def test_the_catalogue_is_complete(built_in, slot):
    assert set(BUILT_IN[slot].split()) <= {entry.variant.name for entry in built_in.variants(slot)}


def test_the_catalogue_arrives_by_the_entry_point(built_in):
    assert {(e.plugin, e.distribution, e.version, e.source) for e in built_in.entries} == {
        ("builtin", "transformer-zoo", zoo.__version__, "zoo_plugins")
    }


@pytest.mark.parametrize("entry", discover(plugins=False).entries, ids=lambda e: f"{e.variant.slot}:{e.variant.name}")
def test_every_target_is_there(built_in, entry):
    assert callable(built_in.load(entry))


def test_variants_are_sorted_and_picked(built_in):
    names = [e.variant.name for e in built_in.variants("position", "*[sz]*")]
    assert names == ["sinusoidal", "t5-bias"]
    slots = [e.variant.slot for e in built_in.variants()]
    assert list(dict.fromkeys(slots)) == list(SLOTS)
    assert built_in.variants("norm", "builtin:*") == built_in.variants("norm") == built_in.variants("norm", "*")


@pytest.mark.parametrize(
    "slot, name, said",
    [
        ("norm", "rmsnrom", "no norm is called 'rmsnrom'; did you mean 'rmsnorm'?"),
        ("norm", "rope", "no norm is called 'rope'; 'rope' is for the slot 'position'"),
        ("norm", "qqqq", "no norm is called 'qqqq'"),
        ("nrom", "x", "there is no slot 'nrom'; did you mean 'norm'?"),
        ("norm", "bultin:rmsnorm", "there is no plugin 'bultin'; did you mean 'builtin'?"),
        ("norm", "builtin:rmsnrom", "plugin 'builtin' offers no norm 'rmsnrom'; did you mean 'rmsnorm'?"),
    ],
)
def test_a_name_that_nobody_has(built_in, slot, name, said):
    assert fault(built_in, slot, name) == said


def test_a_third_party_plugin_is_like_a_built_in_one(package):
    module = package("zoo-good", "1.5", "good", GOOD)
    registry = discover()
    entry = registry.find("position", "wide")
    assert (entry.plugin, entry.distribution, entry.version, entry.source) == ("good", "zoo-good", "1.5", module)
    assert entry == registry.find("position", "good:wide") == registry.find("position", "zoo-good:wide")
    assert registry.load(entry)(None) == 3
    assert record(registry, "good").status == "ok" and record(registry, "good").variants == 1


NAME = "a name should be a text without spaces and colons"
ARGUMENTS = "its zoo_variants has arguments; it is called with none"
BROKEN = {
    "import": ("import zoo_nowhere", "ModuleNotFoundError: No module named 'zoo_nowhere'"),
    "inner": ("try:\n 1 / 0\nexcept ZeroDivisionError as e:\n raise ImportError('deep') from e", "ImportError: deep"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "syntax": ("def (:", "SyntaxError: invalid syntax"),
    "raises": (hook("1 / 0"), "ZeroDivisionError: division by zero"),
    "misspelt": (
        hook("[]").replace("zoo_variants", "zoo_variant"),
        "'zoo_variant' is no hook of the zoo; did you mean 'zoo_variants'?",
    ),
    "unmarked": (
        hook("[]").replace("@zoo.hookimpl", ""),
        "it has no hook; is @zoo.hookimpl missing above its zoo_variants?",
    ),
    "argument": (hook("[]", arguments="config"), ARGUMENTS),
    "default": (hook("[]", arguments="kind=None"), ARGUMENTS),
    "nothing": (hook("None"), "its zoo_variants returned None; it should return a list of zoo.Variant"),
    "text": (hook("'rope'"), "its zoo_variants returned 'rope'; it should return a list of zoo.Variant"),
    "tuple": (hook("[('a', 'x')]"), "its zoo_variants returned ('a', 'x') among its variants; each should be a"),
    "slot": (hook(variant(slot="nrom")), "it offers 'x' for the slot 'nrom', and there is none; did you mean 'norm'?"),
    "empty": (hook(variant(name="")), f"it offers a position called ''; {NAME}"),
    "colon": (hook(variant(name="a:b")), f"it offers a position called 'a:b'; {NAME}"),
    "space": (hook(variant(name="a b")), f"it offers a position called 'a b'; {NAME}"),
    "target": (hook(variant(target="nowhere")), "the target of position 'x' is 'nowhere'; it should be 'module:name'"),
    "fixed": (hook(variant(more=", fixed=['a']")), "the fixed options of position 'x' are ['a']; they should be a"),
    "twice": (hook(variant() + " * 2"), "it offers position 'x' twice"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_harms_only_itself(package, kind):
    source, cause = BROKEN[kind]
    package("zoo-bad", "0.9", "bad", source)  # loaded before the good one
    package("zoo-good", "1.5", "good", GOOD)
    registry = discover()
    bad = record(registry, "bad")
    assert bad.status == "broken" and bad.cause.startswith(cause) and registry.broken == [bad]
    assert registry.find("position", "wide").plugin == "good" and registry.find("position", "rope")
    said = fault(registry, "position", "bad-thing")
    assert said.startswith("no position is called 'bad-thing'")
    assert f"plugin 'bad' (zoo-bad 0.9) failed to load: {cause}" in said
    assert f"plugin 'bad' (zoo-bad 0.9) failed to load: {cause}" in fault(registry, "norm", "bad:thing")
    assert "failed" not in fault(registry, "norm", "good:thing")


def test_the_cause_chain_of_a_broken_plugin_is_kept(package):
    package("zoo-bad", "0.9", "bad", BROKEN["inner"][0])
    error = record(discover(), "bad").error
    assert isinstance(error, ImportError) and isinstance(error.__cause__, ZeroDivisionError)


def test_strict_makes_every_broken_plugin_fatal(package):
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    package("zoo-old", "3.0", "old", "zoo_api = 0\n" + GOOD)
    with pytest.raises(PluginError) as caught:
        discover(strict=True)
    assert [str(fault) for fault in caught.value.faults] == [
        "plugin 'bad' (zoo-bad 0.9) failed to load: ModuleNotFoundError: No module named 'zoo_nowhere'",
        "plugin 'old' (zoo-old 3.0) was written for plugin API 0; this zoo has 1",
    ]
    assert discover(strict=True, disable=["bad", "zoo-old"]).broken == []


def test_the_version_of_the_contract_is_checked_before_the_hook_runs(package):
    package("zoo-old", "3.0", "old", "zoo_api = 2\n" + hook("1 / 0"))
    package("zoo-new", "3.1", "new", "zoo_api = 1\n" + GOOD)
    registry = discover()
    assert record(registry, "old").status == "incompatible" and record(registry, "new").status == "ok"
    assert "plugin 'old' (zoo-old 3.0) was written for plugin API 2; this zoo has 1" in fault(registry, "norm", "x")


@pytest.mark.parametrize("one, two", [("zoo-aa", "zoo-bb"), ("zoo-bb", "zoo-aa")])
def test_equal_names_clash_only_where_they_are_used(package, one, two):
    package(one, "1.0", "a", GOOD)
    package(two, "2.0", "b", hook("[zoo.Variant('position', 'wide', int), zoo.Variant('position', 'narrow', int)]"))
    registry = discover()
    assert registry.find("position", "narrow").plugin == "b"
    said = fault(registry, "position", "wide")
    owners = sorted([(one, f"'a' ({one} 1.0)", "'a:wide'"), (two, f"'b' ({two} 2.0)", "'b:wide'")])
    assert (
        said
        == f"two plugins offer position 'wide': {owners[0][1]} and {owners[1][1]}; write {owners[0][2]} or {owners[1][2]}"
    )
    assert registry.find("position", "a:wide").version == "1.0" and registry.find("position", "b:wide").version == "2.0"
    assert [registry.find("position", registry.spelling(e)) for e in registry.entries if e.plugin in "ab"]


def test_two_distributions_may_use_one_entry_point_name(package):
    package("zoo-one", "1.0", "builtin", GOOD)
    package("zoo-two", "2.0", "builtin", GOOD.replace("3", "4"))
    registry = discover()
    assert "two plugins offer position 'wide'" in fault(registry, "position", "builtin:wide")
    assert fault(registry, "position", "wide").endswith("; write 'zoo-one:wide' or 'zoo-two:wide'")
    assert registry.load(registry.find("position", "zoo-two:wide"))(None) == 4
    assert registry.find("position", "rope").distribution == "transformer-zoo"


def test_one_plugin_found_twice_is_loaded_once(package, tmp_path):
    module = package("zoo-good", "1.5", "good", GOOD)
    package("zoo-good-again", "1.5", "again", module)
    registry = discover(files=[tmp_path / f"{module}.py", tmp_path / "." / f"{module}.py"])
    assert registry.find("position", "wide").plugin == "good"
    assert [p.name for p in registry.plugins] == ["builtin", "good"]


def test_plugins_can_be_left_out(package, monkeypatch):
    package("zoo-good", "1.5", "good", GOOD)
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    for given, cause in [
        ({"disable": ["good", "bad"]}, "request"),
        ({"disable": ["zoo-good", "zoo-bad"]}, "request"),
        ({"plugins": False}, "--no-plugins"),
    ]:
        registry = discover(**given)
        assert {(p.name, p.status, p.cause) for p in registry.plugins if p.name != "builtin"} == {
            ("good", "disabled", cause), ("bad", "disabled", cause)
        }  # fmt: skip
        assert record(registry, "builtin").status == "ok"
        assert f"plugin 'good' (zoo-good 1.5) is disabled by {cause}" in fault(registry, "position", "good:wide")
    monkeypatch.setenv("ZOO_DISABLE_PLUGINS", "bad, good")
    assert record(discover(), "good").cause == "ZOO_DISABLE_PLUGINS"
    monkeypatch.setenv("ZOO_DISABLE_PLUGINS", "bad")
    assert record(discover(), "good").status == "ok"
    assert record(discover(disable=["builtin"]), "builtin").status == "disabled"


def test_a_python_file_is_a_plugin(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    registry = discover(files=[path])
    entry = registry.find("position", "mine:wide")
    digest = hashlib.sha256(GOOD.encode()).hexdigest()
    assert entry.source == f"{path} sha256:{digest}"
    assert (entry.distribution, entry.version) == ("mine.py", f"sha256:{digest[:12]}")
    assert registry.load(entry).__annotations__ == {"width": int}, "the zoo's own __future__ imports must not leak in"
    assert discover(files=[path]).load(entry) is registry.load(entry), "one class, however often it is discovered"
    path.write_text(GOOD.replace("= 3", "= 5"))
    assert (again := discover(files=[path])).load(again.find("position", "wide"))(None) == 5
    assert not list(tmp_path.glob("__pycache__"))
    assert record(discover(files=[path], plugins=False), "mine").status == "disabled"


def test_files_that_fail(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {"bad.py": "import zoo_nowhere", "same.py": GOOD, "sub/same.py": GOOD.replace("3", "4")}.items():
        (tmp_path / name).write_text(text)
    registry = discover(files=[tmp_path / "bad.py", tmp_path / "same.py", tmp_path / "sub" / "same.py"])
    assert record(registry, "bad").cause == "ModuleNotFoundError: No module named 'zoo_nowhere'"
    assert [p.cause for p in registry.broken[1:]] == ["another plugin of this name is loaded already; rename one"]
    assert registry.load(registry.find("position", "wide"))(None) == 3
    with pytest.raises(zoo.SpecError, match=re.escape(f"plugin file {tmp_path / 'no.py'} cannot be read")) as caught:
        discover(files=[tmp_path / "same.py", tmp_path / "no.py"])
    assert [fault.path for fault in caught.value.faults] == [("files", 1)]


def test_what_a_plugin_prints_goes_to_stderr(package, capfd):
    package("zoo-loud", "1.0", "loud", "print('hello')\n" + GOOD)
    discover()
    out, err = capfd.readouterr()
    assert out == "" and err == "hello\n"


def test_requirements(package):
    package("zoo-good", "1.5", "good", GOOD)
    package("zoo-bad", "0.9", "bad", "import zoo_nowhere")
    discover(require=["zoo-good>=1.5", "Zoo_Good"])
    with pytest.raises(zoo.SpecError) as caught:
        discover(require=["zoo-good>=2", "zoo-good", "zoo-absent>=1", "zoo good", "zoo-bad"])
    assert [(fault.path, fault.text) for fault in caught.value.faults] == [
        (("require", 0), "'zoo-good>=2' is required, and zoo-good 1.5 is installed"),
        (("require", 2), "'zoo-absent>=1' is required and not installed; pip install 'zoo-absent>=1' brings it"),
        (("require", 3), "'zoo good' is no requirement; write it as for pip, for example 'zoo-x>=0.2'"),
        (("require", 4), "'zoo-bad' is required; plugin 'bad' (zoo-bad 0.9) failed to load: ModuleNotFoundError: "
                         "No module named 'zoo_nowhere'"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "target, said, cause",
    [
        ("zoo_nowhere:X", "ModuleNotFoundError: No module named 'zoo_nowhere'", ModuleNotFoundError),
        ("zoo.hooks:Varient", "zoo.hooks has no 'Varient'; did you mean 'Variant'?", PluginError),
        ("zoo.hooks:API", "zoo.hooks:API is of type int, which cannot be called", PluginError),
    ],
)
def test_a_target_that_cannot_be_loaded(package, target, said, cause):
    package("zoo-late", "1.0", "late", hook(variant(target=target)))
    registry = discover()
    with pytest.raises(PluginError) as caught:
        registry.load(registry.find("position", "x"))
    assert str(caught.value) == f"position 'x' of plugin 'late' (zoo-late 1.0) cannot be loaded: {said}"
    assert isinstance(caught.value.__cause__, cause)


def test_really_installed_packages(third_party, monkeypatch):
    monkeypatch.syspath_prepend(third_party)
    registry = discover()
    states = {(p.name, p.distribution): (p.status, p.version) for p in registry.plugins}
    assert states == {
        ("builtin", "transformer-zoo"): ("ok", zoo.__version__),
        ("logbias", "zoo-logbias"): ("ok", "0.3.1"),
        ("builtin", "zoo-clash"): ("ok", "2.0"),
        ("broken", "zoo-broken"): ("broken", "1.0"),
        ("misspelt", "zoo-misspelt"): ("broken", "1.1"),
        ("future", "zoo-future"): ("incompatible", "1.2"),
    }
    bias = registry.load(registry.find("position", "log-bias"))
    import torch

    at = torch.arange(3)[None]
    expected = -2 * torch.log(torch.tensor([[[[1.0, 2, 3], [2, 1, 2], [3, 2, 1]]]]))
    torch.testing.assert_close(bias(zoo.declare.shape.Shape(), strength=2.0).bias(at, at, True), expected)
    assert "write 'transformer-zoo:rope' or 'zoo-clash:rope'" in fault(registry, "position", "rope")
    with pytest.raises(PluginError, match="plugin 'builtin' .zoo-clash 2.0. cannot be loaded: ModuleNotFoundError"):
        registry.load(registry.find("norm", "late"))
    clashing = registry.load(registry.find("position", "zoo-clash:rope"))
    assert Path(clashing.__code__.co_filename).parent == third_party
