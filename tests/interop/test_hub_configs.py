"""Configurations as they lie on the hub, read by the tables, against the presets and their published counts."""

import json

import pytest
import torch
from safetensors.torch import save_file
from support.hub_configs import CONFIGS

from zoo import SpecError
from zoo.declare.library import open_library
from zoo.declare.signature import show
from zoo.declare.spec import MODEL_SLOTS, Node, PartSpec
from zoo.execute.trained import Trained
from zoo.interop import folders
from zoo.model.builder import build_on_meta
from zoo.model.card import read_model
from zoo.testing.model_case import perturb

LIBRARY = open_library()
BIASED = {"bart-base", "bart-large", "mbart-large", "pegasus-large", "opus-mt-en-de"}
"""Models whose logits have a bias that is no parameter in transformers and is left out of the presets."""
APART = {
    "smollm3-3b": {"position"},  # the base was raised for long texts
    "starcoder2-3b": {"position"},  # 999999.44 in place of a million
    **{name: {"head"} for name in BIASED},
}
TRAINED = {"kernel", "dropout", "d_ff", "ratio", "balance"}
"""Options that are of no account here: the counts tell the widths, and the rest acts in training alone."""


def imported(name: str):
    family = folders.find_family(LIBRARY.registry, None, CONFIGS[name])
    return folders.read_specs(*family.read(CONFIGS[name]), LIBRARY)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_of_the_hub_gives_the_published_count(name):
    spec, shape = imported(name)
    count = sum(p.numel() for p in build_on_meta(spec, shape, LIBRARY.registry).parameters())
    assert count - (shape.vocab_size if name in BIASED else 0) == read_model(LIBRARY, name)[0].published.parameters


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


IDS = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "architectures"}
SAME = [
    [None, 32], [32, None], [None, 3072], [None, 4096], [None, 16384], [None, 18176], [None, 8192], [48, "auto"],
    ["gelu_fast", "gelu_new"], [[[["global", "local"], 6]], [[["global", "local"] * 6, 1]]],
]  # fmt: skip
"""Settings that are left open on one side, or have two names, and mean the same."""
OUT = [
    "gpt2", "gpt2-medium", "pythia-70m", "gpt-neox-20b", "gpt-neo-125m", "gpt-j-6b", "phi-1.5", "phi-2", "falcon-7b",
    "falcon-rw-1b", "bloom-560m", "bloom-7b1", "mpt-7b", "opt-125m", "opt-350m", "mamba-130m", "bert-base",
    "roberta-base", "albert-base-v2", "distilbert", "t5-small", "t5-base", "t5-v1.1-small", "bart-base", "bart-large",
    "mbart-large", "pegasus-large", "opus-mt-en-de",
]  # fmt: skip
"""Those whose settings differ in nothing but what they leave open."""


def published(name: str, **slots) -> tuple:
    """A model of the registry, without weights, changed in some slots."""
    reader = LIBRARY.reader()
    node = LIBRARY.expand("model", Node({"like": name, **slots}, ("model",)), reader)
    spec, shape = reader.sized(node, Node({}, ("shape",)))
    reader.finish()
    return spec, build_on_meta(spec, shape, LIBRARY.registry)


@pytest.mark.parametrize("name", OUT)
def test_a_preset_goes_out_with_the_settings_of_the_hub(name):
    """Every size and choice of the folder is that of the registry's model."""
    family = folders.find_family(LIBRARY.registry, None, CONFIGS[name])
    head = {"head": {"name": "tied", "bias": True}} if name in BIASED else {}
    pad = {"shape": {"pad": CONFIGS[name]["pad_token_id"]}} if CONFIGS[name].get("pad_token_id") is not None else {}
    back = family.read_settings(family.export_config(*published(name, **head, **pad), LIBRARY.registry))
    given = family.read_settings(CONFIGS[name])
    plain = {k for k, v in given.items() if k in back and k not in IDS and not isinstance(v, dict)}
    assert len(plain) >= 8
    assert not {k: (given[k], back[k]) for k in plain if back[k] != given[k] and [given[k], back[k]] not in SAME}


def test_of_two_families_of_one_type_the_configuration_tells_which():
    found = {name: folders.find_family(LIBRARY.registry, None, CONFIGS[name]).name for name in CONFIGS if "t5" in name}
    assert found == {"t5-small": "t5", "t5-base": "t5", "t5-v1.1-small": "t5-v1.1"}
    with pytest.raises(SpecError, match="several families have it: t5, t5-v1.1"):
        folders.find_family(LIBRARY.registry, None, CONFIGS["t5-small"] | {"feed_forward_proj": "gated-silu"})


REFUSED = {
    "gpt-j-6b": ({"tie_word_embeddings": True}, "tie_word_embeddings is true; gptj has false"),
    "phi-2": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_parameters.factor is 2.0"),
    "falcon-7b": ({"activation": "silu"}, "activation is 'silu'; the zoo can read 'gelu' or 'gelu_new'"),
    "bloom-560m": ({"apply_residual_connection_post_layernorm": True}, "post_layernorm is true; bloom has false"),
    "mpt-7b": ({"attn_config": {"clip_qkv": 6}}, "attn_config.clip_qkv is 6; mpt has null"),
    "opt-125m": ({"_remove_final_layer_norm": True}, "_remove_final_layer_norm is true; opt has false"),
    "mamba-130m": ({"use_bias": True}, "use_bias is true; mamba has false"),
    "bart-base": ({"decoder_attention_heads": 6}, "decoder_attention_heads is 6 and encoder_attention_heads 12"),
    "opus-mt-en-de": ({"decoder_vocab_size": 9}, "decoder_vocab_size is 9 and vocab_size 58101"),
    "bert-base": ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    "albert-base-v2": ({"num_hidden_groups": 2}, "num_hidden_groups is 2; albert has 1"),
    "distilbert": ({"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds is true; distilbert has false"),
    "modernbert-base": ({"global_attn_every_n_layers": 2}, "global_attn_every_n_layers is 2; modernbert has 3"),
    "t5-small": ({"num_layers": None}, "has no 'num_layers'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_equivalent_is_refused(name):
    change, said = REFUSED[name]
    family = folders.find_family(LIBRARY.registry, None, CONFIGS[name])
    with pytest.raises(SpecError, match=said):
        family.read({k: v for k, v in (CONFIGS[name] | change).items() if v is not None or k not in change})


def test_falcon_40b_has_a_table_of_its_own():
    config = CONFIGS["falcon-7b"] | {
        "hidden_size": 8192, "new_decoder_architecture": True, "num_attention_heads": 128, "num_hidden_layers": 60,
        "num_kv_heads": 8, "multi_query": False,
    }  # fmt: skip
    family = folders.find_family(LIBRARY.registry, None, config)
    kind, sizes = family.read(config)
    reader = LIBRARY.reader()
    model = build_on_meta(reader.model(Node(kind)), reader.shape(Node(sizes)), LIBRARY.registry)
    assert family.name == "falcon-40b" and sum(p.numel() for p in model.parameters()) == 41_303_293_952


@pytest.mark.parametrize("name", ["bloom-560m", "mpt-7b"])
def test_a_width_that_their_ffn_cannot_have_is_refused(name):
    model, family = published(name, ffn={"d_ff": 80}), folders.find_family(LIBRARY.registry, None, CONFIGS[name])
    with pytest.raises(SpecError, match="decoder.layers.0.ffn.down.weight|shape.d_model"):
        family.export_config(*model, LIBRARY.registry)


def test_decoder_layers_may_be_left_open():
    """As many as the encoder's, in a folder and in a model."""
    kind, sizes = folders.find_family(LIBRARY.registry, "t5").read(CONFIGS["t5-small"])
    assert kind["architecture"] == {"name": "encoder-decoder", "decoder_layers": 6} and sizes["n_layers"] == 6
    spec, model = published("bart-base", head={"name": "tied", "bias": True})
    assert spec.architecture.options["decoder_layers"] is None
    assert (
        folders.find_family(LIBRARY.registry, "bart").export_config(spec, model, LIBRARY.registry)["decoder_layers"]
        == 6
    )


def test_old_names_of_norms_and_heads_for_other_tasks(tmp_path):
    """Weights from TensorFlow call gain and bias of a norm gamma and beta; a pooler recovers no token."""
    model = {"architecture": "encoder-only", "embedding": {"name": "normed", "scale": False, "segments": 2}}
    model |= {"position": "learned", "norm": {"name": "layernorm", "eps": 1e-12}, "residual": "post-norm"}
    model |= {"attention": {"name": "mha", "bias": True}, "ffn": {"name": "gelu", "bias": True}, "head": "transform"}
    family = folders.find_family(LIBRARY.registry, "bert")
    reader = LIBRARY.reader()
    spec = reader.model(Node(model))
    shape = reader.shape(Node({"d_model": 8, "n_heads": 2, "n_layers": 2, "vocab_size": 11, "max_len": 6, "d_ff": 12}))
    reader.finish()
    own = folders.make(spec, shape, registry=LIBRARY.registry)
    folders.export_model(family, Trained(spec, own, LIBRARY), tmp_path)
    given = family.export_tensors(own)
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
           for k, x in given.items()}  # fmt: skip
    old |= {"bert.pooler.dense.weight": torch.ones(8, 8), "cls.seq_relationship.bias": torch.ones(2)}
    assert sum(name.endswith("gamma") for name in old) == 6
    save_file(old, tmp_path / "model.safetensors")
    taken = folders.import_model(folders.read_folder(tmp_path), LIBRARY)
    assert (
        all(torch.equal(x, own.state_dict()[name]) for name, x in taken.tensors.items()) and taken.family.name == "bert"
    )
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "bert"


def test_t5_v11_with_the_head_of_its_own_that_was_published(tmp_path):
    """transformers ties it whatever the configuration says, unless the weights say otherwise."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    family = folders.find_family(LIBRARY.registry, "t5-v1.1")
    config = {"vocab_size": 37, "d_model": 24, "d_kv": 5, "d_ff": 40, "num_heads": 4, "num_layers": 2}
    kind, sizes = family.read(config | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False})
    reader = LIBRARY.reader()
    spec, shape = reader.model(Node(kind)), reader.shape(Node(sizes))
    reader.finish()
    model = perturb(folders.make(spec, shape, registry=LIBRARY.registry))
    folders.export_model(family, Trained(spec, model, LIBRARY), tmp_path)
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager").eval()
    source, target = (
        torch.randint(4, 37, size, generator=torch.Generator().manual_seed(0)) for size in ((2, 6), (2, 5))
    )
    with torch.no_grad():
        there = theirs(input_ids=source, decoder_input_ids=target).logits
        here = model.step(model.start(source, room=5), target)
    assert (there - here).abs().max() <= 1e-5
    assert theirs.lm_head.weight is not theirs.shared.weight
