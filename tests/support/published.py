"""Small models of published kinds as transformers configures them: odd sizes, a loud eps, every pattern at work.

A family's table and its rows here belong together: test_parity.py holds every row to both worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

V = 37


@dataclass(frozen=True)
class Row:
    """A family of the catalogue, the class of transformers and its settings.

    `spread` is how far parameters are moved from where they start (matrices: so much over the root of their width),
    `attention` the path of transformers that is right, `segments` whether kinds of tokens are given, `fixed` names
    parameters of transformers that are constants. `positions` says whether transformers takes them (`told`), counts
    real tokens itself (`counted`) or counts pads too (`slots`), so that a row padded on the left is another row.
    `unseen` are slips that no logit shows: transformers fixes an eps that is too small, or training alone is changed.
    """

    family: str
    cls: str
    settings: Mapping[str, Any]
    spread: float = 1.0
    attention: str = "eager"
    segments: bool = False
    fixed: tuple[str, ...] = ()
    positions: Literal["told", "counted", "slots"] = "told"
    unseen: tuple[str, ...] = ()


IDS = {"vocab_size": V, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = IDS | {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64, "layer_norm_epsilon": 1e-2}
LLAMA = IDS | {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-2,
}  # fmt: skip
LAYERNORM = {name: value for name, value in LLAMA.items() if name != "rms_norm_eps"}
NEOX = {name: value for name, value in LAYERNORM.items() if name != "num_key_value_heads"} | {"layer_norm_eps": 1e-2}


def rope(kind: str = "default", base: float = 500.0, **more: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": base, **more}}


PARTLY = {"hidden_size": 40} | rope(partial_rotary_factor=0.4)
"""Heads 10 wide of which 4 are rotated: two pairs, so that the base is seen."""

MODELS = {
    "gpt2": Row("gpt2", "GPT2LMHeadModel", GPT2),
    "gpt2-relu": Row("gpt2", "GPT2LMHeadModel", GPT2 | {"activation_function": "relu", "n_inner": 56}),
    "llama": Row("llama", "LlamaForCausalLM", LLAMA | rope()),
    "llama-biased": Row(
        "llama", "LlamaForCausalLM",
        LLAMA | {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True, "head_dim": 10},
    ),
    "llama-linear": Row("llama", "LlamaForCausalLM", LLAMA | rope("linear", factor=3.0)),
    "llama-3": Row(
        "llama", "LlamaForCausalLM",
        LLAMA | rope(
            "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=20
        ),
    ),
    "llama-yarn": Row(
        "llama", "LlamaForCausalLM",
        LLAMA | {"head_dim": 14} | rope(
            "yarn", base=100.0, factor=4.0, original_max_position_embeddings=20, beta_fast=3.0, beta_slow=0.3,
            truncate=False,
        ),
    ),
    "mistral": Row("mistral", "MistralForCausalLM", LLAMA | {"sliding_window": 5}),
    "qwen2": Row("qwen2", "Qwen2ForCausalLM", LLAMA | rope()),
    "qwen3": Row("qwen3", "Qwen3ForCausalLM", LLAMA | {"head_dim": 10}),
    "gemma": Row("gemma", "GemmaForCausalLM", LLAMA | {"head_dim": 10}),
    "olmo": Row("olmo", "OlmoForCausalLM", LAYERNORM),
    "olmo2": Row("olmo2", "Olmo2ForCausalLM", LLAMA),
    "smollm3": Row(
        "smollm3", "SmolLM3ForCausalLM", LLAMA | rope() | {"num_hidden_layers": 5, "no_rope_layers": [1, 1, 0, 1, 1]}
    ),
    "cohere": Row("cohere", "CohereForCausalLM", LAYERNORM | rope() | {"layer_norm_eps": 1e-2, "logit_scale": 0.5}),
    "stablelm": Row(
        "stablelm", "StableLmForCausalLM", LAYERNORM | PARTLY | {"layer_norm_eps": 1e-2, "use_qkv_bias": True}
    ),
    "stablelm-parallel": Row(
        "stablelm", "StableLmForCausalLM",
        LAYERNORM | PARTLY | {"layer_norm_eps": 1e-2, "use_parallel_residual": True},
    ),
    "nemotron": Row("nemotron", "NemotronForCausalLM", LAYERNORM | PARTLY | {"norm_eps": 1e-2}),
    "starcoder2": Row(
        "starcoder2", "Starcoder2ForCausalLM", LAYERNORM | {"norm_epsilon": 1e-2, "sliding_window": 5}
    ),
    "gpt-neox": Row("gpt-neox", "GPTNeoXForCausalLM", NEOX | PARTLY),
    "gpt-neox-serial": Row("gpt-neox", "GPTNeoXForCausalLM", NEOX | PARTLY | {"use_parallel_residual": False}),
}  # fmt: skip

BERT = IDS | {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 64, "layer_norm_eps": 1e-2,
}  # fmt: skip
MODERN = {name: value for name, value in BERT.items() if name != "layer_norm_eps"} | {
    "num_hidden_layers": 5, "norm_eps": 1e-2, "local_attention": 6, "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
DISTIL = IDS | {"dim": 24, "hidden_dim": 40, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 64}
T5 = {
    "vocab_size": V, "d_model": 24, "d_kv": 5, "d_ff": 40, "num_heads": 4, "num_layers": 3, "num_decoder_layers": 2,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 10, "layer_norm_epsilon": 1e-2,
}  # fmt: skip
BART = IDS | {
    "d_model": 24, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40, "decoder_ffn_dim": 56, "max_position_embeddings": 64, "decoder_start_token_id": 2,
}  # fmt: skip
SINES = ("embed_positions.weight",)

MODELS |= {
    "bert": Row("bert", "BertForMaskedLM", BERT, segments=True),
    "bert-tanh": Row("bert", "BertForMaskedLM", BERT | {"hidden_act": "gelu_new", "type_vocab_size": 3}, segments=True),
    "roberta": Row("roberta", "RobertaForMaskedLM", BERT | {"pad_token_id": 1}, segments=True, positions="counted"),
    "xlm-roberta": Row("xlm-roberta", "XLMRobertaForMaskedLM", BERT | {"pad_token_id": 1}, positions="counted"),
    "camembert": Row("camembert", "CamembertForMaskedLM", BERT | {"pad_token_id": 3}, positions="counted"),
    "albert": Row("albert", "AlbertForMaskedLM", BERT | {"embedding_size": 10}, segments=True),
    "electra": Row("electra", "ElectraForMaskedLM", BERT | {"embedding_size": 10}, segments=True),
    "distilbert": Row("distilbert", "DistilBertForMaskedLM", DISTIL, unseen=("norm.eps doubled",)),
    "modernbert": Row("modernbert", "ModernBertForMaskedLM", MODERN),
    "modernbert-biased": Row(
        "modernbert", "ModernBertForMaskedLM",
        MODERN | {
            "attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True, "decoder_bias": False,
            "layer_types": ["sliding_attention", "full_attention"] * 2 + ["full_attention"],
        },
    ),
    "t5": Row("t5", "T5ForConditionalGeneration", T5),
    "t5-v1.1": Row(
        "t5-v1.1", "T5ForConditionalGeneration",
        T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, spread=0.2,
    ),
    "bart": Row("bart", "BartForConditionalGeneration", BART, positions="slots"),
    "bart-scaled": Row(
        "bart", "BartForConditionalGeneration", BART | {"scale_embedding": True, "activation_function": "relu"},
        positions="slots",
    ),
    "mbart": Row("mbart", "MBartForConditionalGeneration", BART, positions="slots"),
    "marian": Row(
        "marian", "MarianMTModel", BART | {"scale_embedding": True, "activation_function": "swish"}, fixed=SINES,
        positions="slots",
    ),
    "pegasus": Row(
        "pegasus", "PegasusForConditionalGeneration", BART | {"scale_embedding": True, "activation_function": "relu"},
        fixed=SINES, positions="slots",
    ),
}  # fmt: skip

MOE = {"num_local_experts": 5, "num_experts_per_tok": 2}
CORRECT = ("ffn.repeat[0].correct doubled",)
BALANCE = ("no ffn.balance", "ffn.balance doubled")
GEMMA2 = LLAMA | {"head_dim": 10, "sliding_window": 5, "query_pre_attn_scalar": 20, "num_hidden_layers": 4}
DEEPSEEK = LLAMA | rope() | {
    "num_key_value_heads": 4, "kv_lora_rank": 2, "q_lora_rank": 3, "qk_nope_head_dim": 4, "qk_rope_head_dim": 6,
    "v_head_dim": 3, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 2,
    "moe_intermediate_size": 12, "routed_scaling_factor": 1.5, "first_k_dense_replace": 1,
}  # fmt: skip
"""Latents so narrow that some are short: transformers fixes the eps of their norms at 1e-6, and it shows."""
SIDES_OF_GEMMA3 = {
    "full_attention": {"rope_type": "default", "rope_theta": 2000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}

NEO = IDS | {"hidden_size": 24, "num_layers": 3, "num_heads": 4, "max_position_embeddings": 64, "window_size": 5}
GPTJ = GPT2 | {"n_embd": 40, "rotary_dim": 4}
FALCON = {name: value for name, value in NEOX.items() if name not in ("intermediate_size", "layer_norm_eps")} | {
    "layer_norm_epsilon": 1e-2, "ffn_hidden_size": 40,
}  # fmt: skip
BLOOM = IDS | {"hidden_size": 24, "n_layer": 3, "n_head": 6, "layer_norm_epsilon": 1e-2}
MPT = IDS | {
    "d_model": 24, "n_layers": 3, "n_heads": 6, "max_seq_len": 64, "layer_norm_epsilon": 1e-2,
}  # fmt: skip
OPT = IDS | {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 40, "max_position_embeddings": 64,
}  # fmt: skip
MAMBA = IDS | {"hidden_size": 24, "num_hidden_layers": 3, "state_size": 5, "layer_norm_epsilon": 1e-2}

MODELS |= {
    "gpt-neo": Row(
        "gpt-neo", "GPTNeoForCausalLM",
        NEO | {"layer_norm_epsilon": 1e-2, "attention_types": [[["global", "local"], 1], [["local"], 1]]},
        spread=0.5,
    ),
    "gptj": Row("gptj", "GPTJForCausalLM", GPTJ),
    "phi": Row("phi", "PhiForCausalLM", NEOX | PARTLY | {"num_key_value_heads": 2}),
    "phi-normalised": Row("phi", "PhiForCausalLM", NEOX | PARTLY | {"num_key_value_heads": 1, "qk_layernorm": True}),
    "falcon-7b": Row("falcon", "FalconForCausalLM", FALCON | rope()),
    "falcon-rw": Row(
        "falcon", "FalconForCausalLM",
        FALCON | {"multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}, attention="sdpa",
    ),
    "falcon-40b": Row(
        "falcon-40b", "FalconForCausalLM",
        FALCON | rope() | {
            "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 2,
        },
    ),
    "bloom": Row("bloom", "BloomForCausalLM", BLOOM),
    "mpt": Row("mpt", "MptForCausalLM", MPT),
    "mpt-scaled": Row("mpt", "MptForCausalLM", MPT | {"attn_config": {"softmax_scale": 0.3}}),
    "opt": Row("opt", "OPTForCausalLM", OPT),
    "opt-350m": Row(
        "opt", "OPTForCausalLM", OPT | {"do_layer_norm_before": False, "word_embed_proj_dim": 10}
    ),
    "mamba": Row("mamba", "MambaForCausalLM", MAMBA | {"conv_kernel": 3, "time_step_rank": 3}),
    "mamba-untied": Row(
        "mamba", "MambaForCausalLM", MAMBA | {"expand": 3, "time_step_rank": 1, "tie_word_embeddings": False}
    ),
    "gemma2": Row(
        "gemma2", "Gemma2ForCausalLM", GEMMA2 | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}
    ),
    "gemma3": Row(
        "gemma3", "Gemma3ForCausalLM",
        GEMMA2 | {
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": SIDES_OF_GEMMA3,
        },
    ),
    "mixtral": Row("mixtral", "MixtralForCausalLM", LLAMA | MOE | rope() | {"sliding_window": 5}, unseen=BALANCE),
    "qwen3-moe": Row(
        "qwen3-moe", "Qwen3MoeForCausalLM", LLAMA | MOE | {"head_dim": 10, "moe_intermediate_size": 12}, unseen=BALANCE
    ),
    "qwen3-moe-normalised": Row(
        "qwen3-moe", "Qwen3MoeForCausalLM", LLAMA | MOE | {"moe_intermediate_size": 12, "norm_topk_prob": True},
        unseen=BALANCE,
    ),
    "deepseek-v2": Row("deepseek-v2", "DeepseekV2ForCausalLM", DEEPSEEK | {"q_lora_rank": None}),
    "deepseek-v2-yarn": Row(
        "deepseek-v2", "DeepseekV2ForCausalLM",
        DEEPSEEK | {"qk_rope_head_dim": 14} | rope(
            "yarn", base=100.0, factor=4.0, original_max_position_embeddings=20, beta_fast=3.0, beta_slow=0.3,
            truncate=False, mscale=0.7, mscale_all_dim=1.4,
        ),
    ),
    "deepseek-v2-groups": Row(
        "deepseek-v2", "DeepseekV2ForCausalLM",
        DEEPSEEK | {
            "topk_method": "group_limited_greedy", "n_group": 3, "topk_group": 2, "num_experts_per_tok": 3,
            "first_k_dense_replace": 2, "attention_bias": True,
        },
    ),
    "deepseek-v3": Row(
        "deepseek-v3", "DeepseekV3ForCausalLM", DEEPSEEK | {"n_group": 3, "topk_group": 2}, unseen=CORRECT
    ),
    "deepseek-v3-halves": Row(
        "deepseek-v3", "DeepseekV3ForCausalLM",
        DEEPSEEK | {"n_group": 2, "topk_group": 1, "rope_interleave": False, "v_head_dim": 13}, unseen=CORRECT,
    ),
    "gpt-oss": Row(
        "gpt-oss", "GptOssForCausalLM",
        LLAMA | MOE | {"head_dim": 14, "sliding_window": 5, "swiglu_limit": 1.5, "swiglu_alpha": 1.3} | rope(
            "yarn", base=100.0, factor=4.0, original_max_position_embeddings=20, beta_fast=3.0, beta_slow=0.3,
            truncate=False,
        ),
        unseen=BALANCE,
    ),
}  # fmt: skip
