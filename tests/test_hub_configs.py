"""Configurations as they lie on the Hub: read, they are the zoo's own published models, and those are written so."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from zoo import SpecError, exchange
from zoo.builder import sketch
from zoo.library import open_library, own_document
from zoo.runner import Trained
from zoo.spec import Node
from zoo.testing.case import loud

LIBRARY = open_library()
PUBLISHED = own_document().value["models"]
BERT = {
    "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 12,
    "pad_token_id": 0, "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522,
}  # fmt: skip
BART = {
    "_num_labels": 3, "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False,
    "add_final_layer_norm": False, "attention_dropout": 0.1, "bos_token_id": 0, "classif_dropout": 0.1,
    "classifier_dropout": 0.0, "decoder_layerdrop": 0.0, "decoder_start_token_id": 2, "dropout": 0.1,
    "early_stopping": True, "encoder_layerdrop": 0.0, "eos_token_id": 2, "forced_eos_token_id": 2,
    "gradient_checkpointing": False, "id2label": {"0": "LABEL_0"}, "init_std": 0.02, "is_encoder_decoder": True,
    "label2id": {"LABEL_0": 0}, "max_position_embeddings": 1024, "no_repeat_ngram_size": 3, "normalize_before": False,
    "normalize_embedding": True, "num_beams": 4, "pad_token_id": 1, "scale_embedding": False,
    "task_specific_params": {"summarization": {"num_beams": 4}}, "torch_dtype": "float32", "use_cache": True,
    "vocab_size": 50265,
}  # fmt: skip
T5 = {
    "d_ff": 2048, "d_kv": 64, "d_model": 512, "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1,
    "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5",
    "n_positions": 512, "num_heads": 8, "num_layers": 6, "output_past": True, "pad_token_id": 0,
    "relative_attention_num_buckets": 32, "task_specific_params": {"summarization": {"prefix": "summarize: "}},
    "use_cache": True, "vocab_size": 32128,
}  # fmt: skip


def both(d_model: int, heads: int, layers: int, ffn: int) -> dict:
    sizes = {"attention_heads": heads, "layers": layers, "ffn_dim": ffn}
    return {"d_model": d_model, **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()}}


CONFIGS = {
    "bert-base": BERT | {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
    "roberta-base": BERT | {
        "model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2,
        "layer_norm_eps": 1e-05, "max_position_embeddings": 514, "pad_token_id": 1, "type_vocab_size": 1,
        "vocab_size": 50265,
    },
    "albert-base-v2": BERT | {
        "model_type": "albert", "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0,
        "bos_token_id": 2, "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128,
        "eos_token_id": 3, "gap_size": 0, "hidden_act": "gelu_new", "inner_group_num": 1, "net_structure_type": 0,
        "num_hidden_groups": 1, "num_memory_blocks": 0, "vocab_size": 30000,
    },
    "distilbert": {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
        "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
        "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True, "vocab_size": 30522,
    },
    "modernbert-base": {
        "architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0,
        "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False,
        "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0, "gradient_checkpointing": False, "hidden_activation": "gelu",
        "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152,
        "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0, "max_position_embeddings": 8192,
        "mlp_bias": False, "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05,
        "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283,
        "position_embedding_type": "absolute", "sep_token_id": 50282, "tie_word_embeddings": True,
        "vocab_size": 50368,
    },
    "t5-small": T5 | {"architectures": ["T5ForConditionalGeneration"]},
    "t5-base": T5 | {"d_ff": 3072, "d_model": 768, "num_heads": 12, "num_layers": 12},
    "t5-v1.1-small": T5 | {
        "d_ff": 1024, "num_heads": 6, "num_layers": 8, "num_decoder_layers": 8, "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
    },
    "bart-base": BART | both(768, 12, 6, 3072) | {"model_type": "bart", "architectures": ["BartModel"]},
    "bart-large": BART | both(1024, 16, 12, 4096) | {"model_type": "bart", "num_hidden_layers": 12},
    "mbart-large": BART | both(1024, 16, 12, 4096) | {
        "model_type": "mbart", "add_final_layer_norm": True, "normalize_before": True, "scale_embedding": True,
        "static_position_embeddings": False, "vocab_size": 250027,
    },
    "pegasus-large": BART | both(1024, 16, 16, 4096) | {
        "model_type": "pegasus", "activation_function": "relu", "add_final_layer_norm": True, "eos_token_id": 1,
        "decoder_start_token_id": 0, "extra_pos_embeddings": 1, "length_penalty": 0.8, "normalize_before": True,
        "normalize_embedding": False, "pad_token_id": 0, "scale_embedding": True, "static_position_embeddings": True,
        "vocab_size": 96103,
    },
    "opus-mt-en-de": BART | both(512, 8, 6, 2048) | {
        "model_type": "marian", "activation_function": "swish", "bad_words_ids": [[58100]],
        "decoder_start_token_id": 58100, "eos_token_id": 0, "max_position_embeddings": 512,
        "normalize_embedding": False, "pad_token_id": 58100, "scale_embedding": True,
        "static_position_embeddings": True, "vocab_size": 58101,
    },
}  # fmt: skip
LOGIT_BIAS = {"bart", "mbart", "pegasus", "marian"}
"""Families whose bias of the logits is zero as published and counted by nobody."""


def published(name: str, **slots) -> tuple:
    """A model of the registry, without weights, changed in some slots."""
    reader = LIBRARY.reader()
    node = LIBRARY.expand("model", Node({"like": name, **slots}, ("model",)), reader)
    spec, shape = reader.sized(node, Node({}, ("shape",)))
    reader.finish()
    return spec, sketch(spec, shape, LIBRARY.registry)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_is_the_published_model(name):
    """Every size and choice of the folder's model is that of the registry, and it is counted alike."""
    config = CONFIGS[name]
    family = exchange.family(LIBRARY.registry, None, config)
    head = {"head": {"name": "tied", "bias": True}} if family.name in LOGIT_BIAS else {}
    spec, model = published(name, shape={"pad": config["pad_token_id"]}, **head)
    back = family.config(spec, model, LIBRARY.registry)
    ids = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "architectures"}
    wrong = {k: (v, config[k]) for k, v in back.items() if k in config.keys() - ids and v != config[k]}
    assert not wrong
    sizes = {"vocab_size", "max_position_embeddings", "n_positions", "d_model", "hidden_size", "dim"}
    assert len(sizes & back.keys() & config.keys()) >= 3

    kind, sizes = family.read(config)
    reader = LIBRARY.reader()
    mine = sketch(reader.model(Node(kind)), reader.shape(Node(sizes)), LIBRARY.registry)
    reader.finish()
    extra = mine.shape.vocab_size if head else 0
    assert sum(p.numel() for p in mine.parameters()) - extra == PUBLISHED[name]["published"]["parameters"]


def test_of_two_families_of_one_type_the_configuration_tells_which():
    found = {name: exchange.family(LIBRARY.registry, None, CONFIGS[name]).name for name in CONFIGS if "t5" in name}
    assert found == {"t5-small": "t5", "t5-base": "t5", "t5-v1.1-small": "t5-v1.1"}
    with pytest.raises(SpecError, match="several families have it: t5, t5-v1.1"):
        exchange.family(LIBRARY.registry, None, T5 | {"feed_forward_proj": "gated-silu"})


@pytest.mark.parametrize(
    "name, change, said",
    [
        ("bart-base", {"decoder_attention_heads": 6}, "decoder_attention_heads is 6 and encoder_attention_heads 12"),
        ("opus-mt-en-de", {"decoder_vocab_size": 9}, "decoder_vocab_size is 9 and vocab_size 58101"),
        ("bert-base", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("albert-base-v2", {"num_hidden_groups": 2}, "num_hidden_groups is 2; albert has 1"),
        ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds is true; distilbert has false"),
        ("modernbert-base", {"global_attn_every_n_layers": 2}, "global_attn_every_n_layers is 2; modernbert has 3"),
        ("t5-small", {"num_layers": None}, "has no 'num_layers'"),
    ],
)
def test_what_has_no_equivalent_is_refused(name, change, said):
    config = {k: v for k, v in (CONFIGS[name] | change).items() if v is not None}
    with pytest.raises(SpecError, match=said):
        exchange.family(LIBRARY.registry, CONFIGS[name]["model_type"] if "t5" not in name else "t5").read(config)


def test_decoder_layers_may_be_left_open():
    """As many as the encoder's, in a folder and in a model."""
    kind, sizes = exchange.family(LIBRARY.registry, "t5").read(T5)
    assert kind["architecture"] == {"name": "encoder-decoder", "decoder_layers": 6} and sizes["n_layers"] == 6
    spec, model = published("bart-base", head={"name": "tied", "bias": True})
    assert spec.architecture.options["decoder_layers"] is None
    assert exchange.family(LIBRARY.registry, "bart").config(spec, model, LIBRARY.registry)["decoder_layers"] == 6


def test_old_names_of_norms_and_heads_for_other_tasks(tmp_path):
    """Weights from TensorFlow call gain and bias of a norm gamma and beta; a pooler recovers no token."""
    model = {"architecture": "encoder-only", "embedding": {"name": "normed", "scale": False, "segments": 2}}
    model |= {"position": "learned", "norm": {"name": "layernorm", "eps": 1e-12}, "residual": "post-norm"}
    model |= {"attention": {"name": "mha", "bias": True}, "ffn": {"name": "gelu", "bias": True}, "head": "transform"}
    family = exchange.family(LIBRARY.registry, "bert")
    reader = LIBRARY.reader()
    spec = reader.model(Node(model))
    shape = reader.shape(Node({"d_model": 8, "n_heads": 2, "n_layers": 2, "vocab_size": 11, "max_len": 6, "d_ff": 12}))
    reader.finish()
    own = exchange.make(spec, shape, registry=LIBRARY.registry)
    exchange.give(family, Trained(spec, own, LIBRARY), tmp_path)
    given = family.give(own)
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
           for k, x in given.items()}  # fmt: skip
    old |= {"bert.pooler.dense.weight": torch.ones(8, 8), "cls.seq_relationship.bias": torch.ones(2)}
    assert sum(name.endswith("gamma") for name in old) == 6
    save_file(old, tmp_path / "model.safetensors")
    taken = exchange.take(exchange.look(tmp_path), LIBRARY)
    assert (
        all(torch.equal(x, own.state_dict()[name]) for name, x in taken.tensors.items()) and taken.family.name == "bert"
    )
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "bert"


def test_t5_v11_with_the_head_of_its_own_that_was_published(tmp_path):
    """transformers ties it whatever the configuration says, unless the weights say otherwise."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    family = exchange.family(LIBRARY.registry, "t5-v1.1")
    config = {"vocab_size": 37, "d_model": 24, "d_kv": 5, "d_ff": 40, "num_heads": 4, "num_layers": 2}
    kind, sizes = family.read(config | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False})
    reader = LIBRARY.reader()
    spec, shape = reader.model(Node(kind)), reader.shape(Node(sizes))
    reader.finish()
    model = loud(exchange.make(spec, shape, registry=LIBRARY.registry))
    exchange.give(family, Trained(spec, model, LIBRARY), tmp_path)
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager").eval()
    source, target = (
        torch.randint(4, 37, size, generator=torch.Generator().manual_seed(0)) for size in ((2, 6), (2, 5))
    )
    with torch.no_grad():
        there = theirs(input_ids=source, decoder_input_ids=target).logits
        here = model.step(model.start(source, room=5), target)
    assert (there - here).abs().max() <= 1e-5
    assert theirs.lm_head.weight is not theirs.shared.weight
