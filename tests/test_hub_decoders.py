"""Configurations of decoders as they lie on the Hub: read, they are the zoo's own published models, and written so."""

from __future__ import annotations

import pytest
from test_hub_configs import LIBRARY, PUBLISHED, published

from zoo import SpecError, exchange
from zoo.builder import sketch
from zoo.spec import Node

COMMON = {"initializer_range": 0.02, "transformers_version": "4.27.0", "torch_dtype": "float16", "use_cache": True}
SUMMARY = {
    "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
    "summary_type": "cls_index", "summary_use_proj": True,
}  # fmt: skip
FALCON = COMMON | {
    "alibi": False, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
    "attention_dropout": 0.0, "auto_map": {"AutoConfig": "configuration_falcon.FalconConfig"}, "bias": False,
    "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0, "layer_norm_epsilon": 1e-05,
    "model_type": "falcon", "multi_query": True, "new_decoder_architecture": False, "parallel_attn": True,
    "vocab_size": 65024,
}  # fmt: skip
BLOOM = COMMON | {
    "apply_residual_connection_post_layernorm": False, "attention_dropout": 0.0, "attention_softmax_in_fp32": True,
    "architectures": ["BloomForCausalLM"], "bias_dropout_fusion": True, "bos_token_id": 1, "eos_token_id": 2,
    "hidden_dropout": 0.0, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom",
    "n_inner": None, "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1, "seq_length": 2048,
    "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0,
    "vocab_size": 250880,
}  # fmt: skip
OPT = COMMON | {
    "_remove_final_layer_norm": False, "activation_dropout": 0.0, "activation_function": "relu",
    "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2, "do_layer_norm_before": True,
    "dropout": 0.1, "eos_token_id": 2, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
    "model_type": "opt", "pad_token_id": 1, "prefix": "</s>", "vocab_size": 50272,
}  # fmt: skip
PHI = COMMON | {
    "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": None, "embd_pdrop": 0.0,
    "eos_token_id": None, "hidden_act": "gelu_new", "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
    "model_type": "phi", "num_attention_heads": 32, "num_key_value_heads": None, "partial_rotary_factor": 0.5,
    "qk_layernorm": False, "resid_pdrop": 0.0, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": False, "vocab_size": 51200,
}  # fmt: skip
CONFIGS = {
    "gpt-neo-125m": COMMON | SUMMARY | {
        "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"], "attention_dropout": 0,
        "attention_layers": ["global", "local"] * 6, "attention_types": [[["global", "local"], 6]],
        "bos_token_id": 50256, "embed_dropout": 0, "eos_token_id": 50256, "gradient_checkpointing": False,
        "hidden_size": 768, "intermediate_size": None, "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048,
        "model_type": "gpt_neo", "num_heads": 12, "num_layers": 12, "resid_dropout": 0, "vocab_size": 50257,
        "window_size": 256,
    },
    "gpt-j-6b": COMMON | SUMMARY | {
        "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0,
        "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "gradient_checkpointing": False,
        "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": None,
        "n_layer": 28, "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64,
        "scale_attn_weights": True, "task_specific_params": {"text-generation": {"do_sample": True}},
        "tie_word_embeddings": False, "tokenizer_class": "GPT2Tokenizer", "vocab_size": 50400,
    },
    "phi-1.5": PHI | {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24},
    "phi-2": PHI | {
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "partial_rotary_factor": 0.4, "resid_pdrop": 0.1,
    },
    "falcon-7b": FALCON | {"hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32},
    "falcon-rw-1b": FALCON | {
        "alibi": True, "bias": True, "bos_token_id": 1, "eos_token_id": 2, "hidden_size": 2048, "multi_query": False,
        "num_attention_heads": 32, "num_hidden_layers": 24, "parallel_attn": False, "vocab_size": 50304,
    },
    "bloom-560m": BLOOM | {"n_embed": 1024, "n_layer": 24, "num_attention_heads": 16},
    "bloom-7b1": BLOOM | {"hidden_size": 4096, "n_layer": 30, "n_head": 32},
    "mpt-7b": COMMON | {
        "architectures": ["MPTForCausalLM"], "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig"},
        "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0,
            "attn_type": "multihead_attention", "attn_uses_sequence_id": False, "clip_qkv": None, "prefix_lm": False,
            "qk_ln": False, "softmax_scale": None,
        },
        "d_model": 4096, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4,
        "init_config": {"init_nonlinearity": "relu", "name": "kaiming_normal_"}, "init_device": "cpu",
        "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
        "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
        "tokenizer_name": "EleutherAI/gpt-neox-20b", "verbose": 0, "vocab_size": 50432,
    },
    "opt-125m": OPT | {
        "ffn_dim": 3072, "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
        "word_embed_proj_dim": 768,
    },
    "opt-350m": OPT | {
        "do_layer_norm_before": False, "ffn_dim": 4096, "hidden_size": 1024, "num_attention_heads": 16,
        "num_hidden_layers": 24, "word_embed_proj_dim": 512,
    },
    "mamba-130m": COMMON | {
        "architectures": ["MambaForCausalLM"], "bos_token_id": 0, "conv_kernel": 4, "d_inner": 1536, "d_model": 768,
        "eos_token_id": 0, "expand": 2, "fused_add_norm": True, "hidden_act": "silu", "hidden_size": 768,
        "intermediate_size": 1536, "layer_norm_epsilon": 1e-05, "model_type": "mamba", "n_layer": 24,
        "num_hidden_layers": 24, "pad_token_id": 0, "pad_vocab_size_multiple": 8, "rescale_prenorm_residual": False,
        "residual_in_fp32": True, "rms_norm": True, "ssm_cfg": {}, "state_size": 16, "time_step_floor": 0.0001,
        "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 48,
        "time_step_scale": 1.0, "use_bias": False, "use_conv_bias": True, "vocab_size": 50280,
    },
}  # fmt: skip
IDS = {"pad_token_id", "bos_token_id", "eos_token_id", "architectures"}
SAME = [
    [None, 32], [32, None], [None, 3072], [None, 16384], [None, 18176], [None, 8192], [48, "auto"],
    [[[["global", "local"], 6]], [[["global", "local"] * 6, 1]]],
]  # fmt: skip
"""Settings that are left open on one side and mean the same."""


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_is_the_published_model(name):
    """Every size and choice of the folder's model is that of the registry, and it is counted alike."""
    config = CONFIGS[name]
    family = exchange.family(LIBRARY.registry, None, config)
    kind, sizes = family.read(config)
    reader = LIBRARY.reader()
    mine = sketch(reader.model(Node(kind)), reader.shape(Node(sizes)), LIBRARY.registry)
    reader.finish()
    assert sum(p.numel() for p in mine.parameters()) == PUBLISHED[name]["published"]["parameters"]

    back = family.settings(family.config(*published(name), LIBRARY.registry))
    given = family.settings(config)
    plain = {k for k, v in given.items() if k in back and k not in IDS and not isinstance(v, dict)}
    assert len(plain) >= 8
    assert not {k: (given[k], back[k]) for k in plain if back[k] != given[k] and [given[k], back[k]] not in SAME}


def test_falcon_40b_has_a_table_of_its_own():
    config = FALCON | {
        "hidden_size": 8192, "new_decoder_architecture": True, "num_attention_heads": 128, "num_hidden_layers": 60,
        "num_kv_heads": 8, "multi_query": False,
    }  # fmt: skip
    family = exchange.family(LIBRARY.registry, None, config)
    kind, sizes = family.read(config)
    reader = LIBRARY.reader()
    model = sketch(reader.model(Node(kind)), reader.shape(Node(sizes)), LIBRARY.registry)
    assert family.name == "falcon-40b" and sum(p.numel() for p in model.parameters()) == 41_303_293_952


REFUSED = {
    "gpt-j-6b": ({"tie_word_embeddings": True}, "tie_word_embeddings is true; gptj has false"),
    "phi-2": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_parameters.factor is 2.0"),
    "falcon-7b": ({"activation": "silu"}, "activation is 'silu'; the zoo can read 'gelu' or 'gelu_new'"),
    "bloom-560m": ({"apply_residual_connection_post_layernorm": True}, "post_layernorm is true; bloom has false"),
    "mpt-7b": ({"attn_config": {"clip_qkv": 6}}, "attn_config.clip_qkv is 6; mpt has null"),
    "opt-125m": ({"_remove_final_layer_norm": True}, "_remove_final_layer_norm is true; opt has false"),
    "mamba-130m": ({"use_bias": True}, "use_bias is true; mamba has false"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_equivalent_is_refused(name):
    change, said = REFUSED[name]
    family = exchange.family(LIBRARY.registry, None, CONFIGS[name])
    with pytest.raises(SpecError, match=said):
        family.read(CONFIGS[name] | change)


@pytest.mark.parametrize("name", ["bloom-560m", "mpt-7b"])
def test_a_width_that_their_ffn_cannot_have_is_refused(name):
    model, family = published(name, ffn={"d_ff": 80}), exchange.family(LIBRARY.registry, None, CONFIGS[name])
    with pytest.raises(SpecError, match="decoder.layers.0.ffn.down.weight|shape.d_model"):
        family.config(*model, LIBRARY.registry)
