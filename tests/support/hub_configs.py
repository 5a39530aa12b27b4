"""Configurations as they lie on the Hugging Face hub, by the name of the preset that is the same model.

They are of many ages: settings that later versions renamed or dropped are part of what has to be read.
"""

from __future__ import annotations

COMMON = {"initializer_range": 0.02, "use_cache": True, "torch_dtype": "float16", "transformers_version": "4.31.0.dev0"}
LLAMA = COMMON | {
    "architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 2048, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "pad_token_id": 0, "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False, "vocab_size": 32000,
}  # fmt: skip
GPT2 = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
    "summary_type": "cls_index", "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 50257,
}  # fmt: skip
BERT = {
    "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
    "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
    "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522,
}  # fmt: skip
T5 = {
    "architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 512,
    "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0,
    "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions": 512, "num_heads": 8,
    "num_layers": 6, "output_past": True, "pad_token_id": 0, "relative_attention_num_buckets": 32,
    "task_specific_params": {"summarization": {"early_stopping": True, "num_beams": 4}}, "vocab_size": 32128,
}  # fmt: skip
QWEN2 = COMMON | {
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 131072,
    "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
    "tie_word_embeddings": True, "use_sliding_window": False, "vocab_size": 151936,
}  # fmt: skip
GEMMA = COMMON | {
    "architectures": ["GemmaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2,
    "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_size": 2048, "intermediate_size": 16384,
    "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 10000.0,
    "vocab_size": 256000,
}  # fmt: skip
PYTHIA = {
    "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu",
    "hidden_size": 512, "initializer_range": 0.02, "intermediate_size": 2048, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6,
    "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
    "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304,
}  # fmt: skip

CONFIGS = {
    "gpt2": GPT2,
    "gpt2-medium": GPT2 | {"n_embd": 1024, "n_head": 16, "n_layer": 24, "n_special": 0, "predict_special_tokens": True},
    "llama-7b": LLAMA,
    "llama-2-70b": LLAMA | {
        "hidden_size": 8192, "intermediate_size": 28672, "max_position_embeddings": 4096, "num_attention_heads": 64,
        "num_hidden_layers": 80, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": None,
    },
    "llama-3-8b": LLAMA | {
        "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "intermediate_size": 14336, "max_position_embeddings": 8192, "num_key_value_heads": 8, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 500000.0, "vocab_size": 128256,
    },
    "llama-3.2-1b": LLAMA | {
        "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
        "head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
        "mlp_bias": False, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": 128256,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        },
    },
    "mistral-7b": LLAMA | {
        "architectures": ["MistralForCausalLM"], "intermediate_size": 14336, "max_position_embeddings": 32768,
        "model_type": "mistral", "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "sliding_window": 4096,
    },
    "mixtral-8x7b": LLAMA | {
        "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mixtral", "num_experts_per_tok": 2, "num_key_value_heads": 8,
        "num_local_experts": 8, "output_router_logits": False, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
        "router_aux_loss_coef": 0.02, "sliding_window": None,
    },
    "qwen2-0.5b": QWEN2,
    "qwen2.5-7b": QWEN2 | {
        "hidden_size": 3584, "intermediate_size": 18944, "max_window_layers": 28, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": False, "use_mrope": False,
        "vocab_size": 152064,
    },
    "qwen3-0.6b": QWEN2 | {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "head_dim": 128, "hidden_size": 1024,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
        "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_scaling": None,
        "sliding_window": None,
    },
    "gemma-2b": GEMMA,
    "gemma-7b": GEMMA | {
        "hidden_size": 3072, "intermediate_size": 24576, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 16,
    },
    "gemma2-2b": GEMMA | {
        "architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid",
        "final_logit_softcapping": 30.0, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 2304, "intermediate_size": 9216, "model_type": "gemma2", "num_hidden_layers": 26,
        "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "sliding_window": 4096,
    },
    "gemma3-1b": {k: v for k, v in GEMMA.items() if k != "hidden_act"} | {
        "architectures": ["Gemma3ForCausalLM"], "attn_logit_softcapping": None, "cache_implementation": "hybrid",
        "final_logit_softcapping": None, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152,
        "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
        "num_attention_heads": 4, "num_hidden_layers": 26, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000,
        "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144,
    },
    "olmo-1b": {k: v for k, v in LLAMA.items() if k != "rms_norm_eps"} | {
        "architectures": ["OlmoForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "clip_qkv": None,
        "eos_token_id": 50279, "hidden_size": 2048, "intermediate_size": 8192, "model_type": "olmo",
        "num_attention_heads": 16, "num_hidden_layers": 16, "num_key_value_heads": 16, "pad_token_id": 1,
        "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": True, "vocab_size": 50304,
    },
    "olmo2-7b": LLAMA | {
        "architectures": ["Olmo2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "eos_token_id": 100257, "max_position_embeddings": 4096, "model_type": "olmo2", "num_key_value_heads": 32,
        "pad_token_id": 100277, "rope_scaling": None, "rope_theta": 500000, "vocab_size": 100352,
    },
    "smollm3-3b": LLAMA | {
        "architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 128000, "eos_token_id": 128001, "hidden_size": 2048, "layer_types": ["full_attention"] * 36,
        "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": False, "model_type": "smollm3",
        "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16,
        "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2,
        "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None, "tie_word_embeddings": True,
        "use_sliding_window": False, "vocab_size": 128256,
    },
    "command-r-35b": COMMON | {
        "architectures": ["CohereForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 5,
        "eos_token_id": 255001, "hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 22528,
        "layer_norm_eps": 1e-05, "logit_scale": 0.0625, "max_position_embeddings": 8192, "model_max_length": 131072,
        "model_type": "cohere", "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64,
        "pad_token_id": 0, "pretraining_tp": 1, "rope_theta": 8000000.0, "use_qk_norm": False, "vocab_size": 256000,
    },
    "stablelm-2-1.6b": COMMON | {
        "architectures": ["StableLmForCausalLM"], "bos_token_id": 100257, "eos_token_id": 100257, "hidden_act": "silu",
        "hidden_size": 2048, "intermediate_size": 5632, "layer_norm_eps": 1e-05, "max_position_embeddings": 4096,
        "model_type": "stablelm", "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": 32,
        "partial_rotary_factor": 0.25, "rope_theta": 10000, "tie_word_embeddings": False, "use_qkv_bias": True,
        "vocab_size": 100352,
    },
    "starcoder2-3b": COMMON | {
        "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1, "bos_token_id": 0, "embedding_dropout": 0.1,
        "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "intermediate_size": 12288,
        "layer_norm_type": None, "max_position_embeddings": 16384, "mlp_type": "default", "model_type": "starcoder2",
        "norm_epsilon": 1e-05, "norm_type": "layer_norm", "num_attention_heads": 24, "num_hidden_layers": 30,
        "num_key_value_heads": 2, "residual_dropout": 0.1, "rope_theta": 999999.4420358813, "sliding_window": 4096,
        "use_bias": True, "vocab_size": 49152,
    },
    "pythia-70m": PYTHIA,
    "gpt-neox-20b": PYTHIA | {
        "attention_probs_dropout_prob": 0, "hidden_act": "gelu_fast", "hidden_dropout_prob": 0, "hidden_size": 6144,
        "intermediate_size": 24576, "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
    },
    "gpt-j-6b": {
        "activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0,
        "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "gradient_checkpointing": False,
        "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16,
        "n_inner": None, "n_layer": 28, "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64,
        "scale_attn_weights": True, "summary_activation": None, "summary_first_dropout": 0.1,
        "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50, "temperature": 1.0}},
        "tie_word_embeddings": False, "tokenizer_class": "GPT2Tokenizer", "transformers_version": "4.18.0.dev0",
        "use_cache": True, "vocab_size": 50400,
    },
    "gpt-neo-125m": {
        "activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"], "attention_dropout": 0,
        "attention_layers": ["global", "local"] * 6, "attention_types": [[["global", "local"], 6]],
        "bos_token_id": 50256, "embed_dropout": 0, "eos_token_id": 50256, "gradient_checkpointing": False,
        "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": None, "layer_norm_epsilon": 1e-05,
        "max_position_embeddings": 2048, "model_type": "gpt_neo", "num_heads": 12, "num_layers": 12,
        "resid_dropout": 0, "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
        "summary_type": "cls_index", "summary_use_proj": True, "transformers_version": "4.9.0.dev0", "use_cache": True,
        "vocab_size": 50257, "window_size": 256,
    },
    "opt-125m": {
        "_name_or_path": "opt-125m", "activation_dropout": 0.0, "activation_function": "relu",
        "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2,
        "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768,
        "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt",
        "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "prefix": "</s>",
        "torch_dtype": "float16", "transformers_version": "4.21.0.dev0", "use_cache": True, "vocab_size": 50272,
        "word_embed_proj_dim": 768,
    },
    "opt-350m": {
        "activation_dropout": 0.0, "activation_function": "relu", "architectures": ["OPTForCausalLM"],
        "attention_dropout": 0.0, "bos_token_id": 2, "do_layer_norm_before": False, "dropout": 0.1, "eos_token_id": 2,
        "ffn_dim": 4096, "hidden_size": 1024, "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048,
        "model_type": "opt", "num_attention_heads": 16, "num_hidden_layers": 24, "pad_token_id": 1,
        "prefix": "</s>", "torch_dtype": "float16", "transformers_version": "4.20.0.dev0", "use_cache": True,
        "vocab_size": 50272, "word_embed_proj_dim": 512,
    },
    "bloom-560m": {
        "apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
        "attention_dropout": 0.0, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
        "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 1024, "n_inner": None, "n_layer": 24,
        "num_attention_heads": 16, "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1,
        "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False,
        "transformers_version": "4.20.0", "unk_token_id": 0, "use_cache": True, "vocab_size": 250880,
    },
    "mpt-7b": {
        "architectures": ["MPTForCausalLM"], "d_model": 4096, "emb_pdrop": 0, "expansion_ratio": 4,
        "init_device": "cpu", "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt",
        "n_heads": 32, "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
        "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
        "use_cache": False, "verbose": 0, "vocab_size": 50432,
        "attn_config": {
            "alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention",
            "attn_uses_sequence_id": False, "clip_qkv": None, "prefix_lm": False, "qk_ln": False, "softmax_scale": None,
        },
        "init_config": {"emb_init_std": None, "name": "kaiming_normal_", "verbose": 0},
    },
    "falcon-7b": {
        "alibi": False, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
        "attention_dropout": 0.0, "bias": False, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0,
        "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon",
        "multi_query": True, "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32,
        "parallel_attn": True, "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True,
        "vocab_size": 65024,
    },
    "falcon-rw-1b": {
        "alibi": True, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
        "attention_dropout": 0.0, "bias": True, "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0,
        "hidden_size": 2048, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon",
        "multi_query": False, "new_decoder_architecture": False, "num_attention_heads": 32, "num_hidden_layers": 24,
        "parallel_attn": False, "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True,
        "vocab_size": 50304,
    },
    "phi-2": {
        "architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0,
        "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560, "initializer_range": 0.02,
        "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "phi",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4,
        "qk_layernorm": False, "resid_pdrop": 0.1, "rope_scaling": None, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "torch_dtype": "float16", "transformers_version": "4.37.0", "use_cache": True,
        "vocab_size": 51200,
    },
    "deepseek-v2-lite": COMMON | {
        "architectures": ["DeepseekV2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"}, "aux_loss_alpha": 0.001,
        "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu",
        "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 4096,
        "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
        "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": False, "num_attention_heads": 16,
        "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "pretraining_tp": 1,
        "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
        "rope_scaling": None, "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax",
        "seq_aux": True, "tie_word_embeddings": False, "topk_group": 1, "topk_method": "greedy", "v_head_dim": 128,
        "vocab_size": 102400,
    },
    "gpt-oss-20b": COMMON | {
        "architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
        "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880,
        "initial_context_length": 4096, "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12, "max_position_embeddings": 131072,
        "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4, "num_hidden_layers": 24,
        "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": False, "pad_token_id": 199999,
        "rms_norm_eps": 1e-05, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128,
        "swiglu_limit": 7.0, "tie_word_embeddings": False, "vocab_size": 201088,
        "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
            "rope_type": "yarn", "truncate": False,
        },
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
    "bert-base": BERT,
    "bert-large": BERT | {
        "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
    },
    "roberta-base": BERT | {
        "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1,
        "vocab_size": 50265,
    },
    "distilbert": {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
        "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
        "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False, "tie_weights_": True,
        "transformers_version": "4.10.0.dev0", "vocab_size": 30522,
    },
    "albert-base-v2": {
        "architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 2,
        "classifier_dropout_prob": 0.1, "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3,
        "gap_size": 0, "hidden_act": "gelu_new", "hidden_dropout_prob": 0, "hidden_size": 768,
        "initializer_range": 0.02, "inner_group_num": 1, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "model_type": "albert", "net_structure_type": 0, "num_attention_heads": 12,
        "num_hidden_groups": 1, "num_hidden_layers": 12, "num_memory_blocks": 0, "pad_token_id": 0,
        "type_vocab_size": 2, "vocab_size": 30000,
    },
    "modernbert-base": {
        "architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0,
        "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False,
        "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0, "gradient_checkpointing": False, "hidden_activation": "gelu",
        "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152,
        "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0,
        "max_position_embeddings": 8192, "mlp_bias": False, "mlp_dropout": 0.0, "model_type": "modernbert",
        "norm_bias": False, "norm_eps": 1e-05, "num_attention_heads": 12, "num_hidden_layers": 22,
        "pad_token_id": 50283, "position_embedding_type": "absolute", "reference_compile": None,
        "repad_logits_with_grad": False, "sep_token_id": 50282, "sparse_pred_ignore_index": -100,
        "sparse_prediction": False, "torch_dtype": "float32", "transformers_version": "4.47.0.dev0",
        "vocab_size": 50368,
    },
    "t5-small": T5,
    "t5-base": T5 | {"d_ff": 3072, "d_model": 768, "num_heads": 12, "num_layers": 12},
    "t5-v1.1-small": T5 | {
        "d_ff": 1024, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8,
        "tie_word_embeddings": False,
    },
    "bart-base": {
        "_num_labels": 3, "activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False,
        "add_final_layer_norm": False, "architectures": ["BartModel"], "attention_dropout": 0.1, "bos_token_id": 0,
        "classif_dropout": 0.1, "classifier_dropout": 0.0, "d_model": 768, "decoder_attention_heads": 12,
        "decoder_ffn_dim": 3072, "decoder_layerdrop": 0.0, "decoder_layers": 6, "decoder_start_token_id": 2,
        "dropout": 0.1, "early_stopping": True, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072,
        "encoder_layerdrop": 0.0, "encoder_layers": 6, "eos_token_id": 2, "forced_bos_token_id": 0,
        "forced_eos_token_id": 2, "gradient_checkpointing": False, "id2label": {"0": "LABEL_0"}, "init_std": 0.02,
        "is_encoder_decoder": True, "label2id": {"LABEL_0": 0}, "max_position_embeddings": 1024, "model_type": "bart",
        "no_repeat_ngram_size": 3, "normalize_before": False, "normalize_embedding": True, "num_beams": 4,
        "num_hidden_layers": 6, "pad_token_id": 1, "scale_embedding": False, "task_specific_params": {"s": {}},
        "torch_dtype": "float32", "transformers_version": "4.12.0.dev0", "use_cache": True, "vocab_size": 50265,
    },
    "opus-mt-en-de": {
        "_num_labels": 3, "activation_dropout": 0.0, "activation_function": "swish", "add_bias_logits": False,
        "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "attention_dropout": 0.0,
        "bad_words_ids": [[58100]], "bos_token_id": 0, "classif_dropout": 0.0, "classifier_dropout": 0.0,
        "d_model": 512, "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "decoder_layerdrop": 0.0,
        "decoder_layers": 6, "decoder_start_token_id": 58100, "decoder_vocab_size": 58101, "dropout": 0.1,
        "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "encoder_layerdrop": 0.0, "encoder_layers": 6,
        "eos_token_id": 0, "forced_eos_token_id": 0, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 512,
        "max_position_embeddings": 512, "model_type": "marian", "normalize_before": False,
        "normalize_embedding": False, "num_beams": 6, "num_hidden_layers": 6, "pad_token_id": 58100,
        "scale_embedding": True, "share_encoder_decoder_embeddings": True, "static_position_embeddings": True,
        "transformers_version": "4.22.0.dev0", "use_cache": True, "vocab_size": 58101,
    },
}  # fmt: skip


def like(name: str, **changes) -> dict:
    """Another configuration's settings with some changed, and those that are None left out."""
    return {k: v for k, v in (CONFIGS[name] | changes).items() if v is not None}


def both(heads: int, layers: int, ffn: int) -> dict:
    sizes = {"attention_heads": heads, "layers": layers, "ffn_dim": ffn}
    return {f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()}


CONFIGS |= {
    "bart-large": like("bart-base", architectures=None, d_model=1024, num_hidden_layers=12, **both(16, 12, 4096)),
    "mbart-large": like(
        "bart-base", architectures=None, d_model=1024, model_type="mbart", add_final_layer_norm=True,
        normalize_before=True, scale_embedding=True, static_position_embeddings=False, vocab_size=250027,
        **both(16, 12, 4096),
    ),
    "pegasus-large": like(
        "bart-base", architectures=None, d_model=1024, model_type="pegasus", activation_function="relu",
        add_final_layer_norm=True, decoder_start_token_id=0, eos_token_id=1, extra_pos_embeddings=1,
        forced_bos_token_id=None, length_penalty=0.8, normalize_before=True, normalize_embedding=False,
        num_hidden_layers=16, pad_token_id=0, scale_embedding=True, static_position_embeddings=True, vocab_size=96103,
        **both(16, 16, 4096),
    ),
    "phi-1.5": like(
        "phi-2", hidden_size=2048, intermediate_size=8192, num_hidden_layers=24, num_key_value_heads=None,
        partial_rotary_factor=0.5, resid_pdrop=0.0,
    ),
    "bloom-7b1": like(
        "bloom-560m", hidden_size=4096, n_embed=None, n_head=32, n_layer=30, num_attention_heads=None, seq_length=2048
    ),
}  # fmt: skip
