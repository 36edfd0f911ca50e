"""Random directories of every family, made by transformers: two shapes each, the second sharded and in bf16."""
import os
import shutil

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

transformers.logging.disable_progress_bar()

LENGTH = 128
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
OTHER_HEADS = {"num_attention_heads": 6, "num_key_value_heads": 3}
# Values narrower than keys, and wider.
LATENT = {"num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
          "qk_rope_head_dim": 8, "v_head_dim": 12}
OTHER_LATENT = {"num_attention_heads": 6, "num_key_value_heads": 6, "kv_lora_rank": 24, "qk_nope_head_dim": 6,
                "qk_rope_head_dim": 4, "v_head_dim": 14}
YARN = {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 2.0, "original_max_position_embeddings": 48}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
          "original_max_position_embeddings": 32}
LINEAR = {"rope_type": "linear", "rope_theta": 800.0, "factor": 3.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 600.0, "factor": 3.0}
PLAIN = {"rope_type": "default", "rope_theta": 500.0}


def longrope(frequencies, original):
    """Texts of the checks are between 64 and 100 tokens long: the original length says which factors are used."""
    return {"rope_type": "longrope", "rope_theta": 700.0, "original_max_position_embeddings": original,
            "short_factor": [1.0 + 0.1 * i for i in range(frequencies)],
            "long_factor": [1.5 + 0.5 * i for i in range(frequencies)]}


def sliding(pattern, layers):
    return [{"s": "sliding_attention", "f": "full_attention"}[pattern[i % len(pattern)]] for i in range(layers)]


# What differs from the sizes below, for each shape.
FAMILIES = {
    "llama": [HEADS | {"rope_parameters": LLAMA3, "tie_word_embeddings": True, "hidden_act": "gelu"},
              OTHER_HEADS | {"head_dim": 20, "rope_parameters": YARN, "attention_bias": True, "mlp_bias": True}],
    "mistral": [HEADS | {"sliding_window": 24, "rope_parameters": PLAIN, "head_dim": 32},
                OTHER_HEADS | {"sliding_window": None, "rope_parameters": DYNAMIC, "max_position_embeddings": 48,
                               "tie_word_embeddings": True}],
    "qwen2": [HEADS | {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2, "rope_parameters": PLAIN},
              OTHER_HEADS | {"tie_word_embeddings": True, "rope_parameters": YARN}],
    "qwen3": [HEADS | {"head_dim": 32, "attention_bias": True, "rope_parameters": LLAMA3},
              OTHER_HEADS | {"head_dim": 12, "tie_word_embeddings": True, "use_sliding_window": True, "sliding_window": 20,
                             "layer_types": sliding("fs", 5), "rope_parameters": longrope(6, 100)}],
    "gemma2": [HEADS | {"head_dim": 24, "query_pre_attn_scalar": 40, "sliding_window": 20, "attn_logit_softcapping": 3.0,
                        "final_logit_softcapping": 4.0, "rope_parameters": PLAIN},
               OTHER_HEADS | {"head_dim": 16, "query_pre_attn_scalar": 9, "sliding_window": 30,
                              "attn_logit_softcapping": None, "final_logit_softcapping": 6.0, "attention_bias": True,
                              "rope_parameters": LINEAR}],
    "gemma3_text": [HEADS | {"head_dim": 24, "query_pre_attn_scalar": 40, "sliding_window": 20, "num_hidden_layers": 8,
                             "rope_parameters": {"full_attention": LINEAR, "sliding_attention": PLAIN}},
                    OTHER_HEADS | {"head_dim": 16, "query_pre_attn_scalar": 30, "sliding_window": 12,
                                   "layer_types": sliding("ssf", 5), "final_logit_softcapping": 5.0, "attention_bias": True,
                                   "rope_parameters": {"full_attention": PLAIN,
                                                       "sliding_attention": {"rope_type": "default", "rope_theta": 90.0}}}],
    "olmo2": [HEADS | {"rope_parameters": PLAIN}, OTHER_HEADS | {"rope_parameters": LINEAR, "tie_word_embeddings": True, "attention_bias": True}],
    "olmo3": [HEADS | {"sliding_window": 20,
                       "rope_parameters": {"full_attention": YARN,
                                           "sliding_attention": {"rope_type": "default", "rope_theta": 3000.0}}},
              OTHER_HEADS | {"sliding_window": 16, "layer_types": sliding("sf", 5), "attention_bias": True,
                             "rope_parameters": {"full_attention": PLAIN, "sliding_attention": PLAIN}}],
    "phi3": [HEADS | {"sliding_window": 24, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.75}},
             OTHER_HEADS | {"rope_parameters": longrope(4, 64) | {"partial_rotary_factor": 1.0},
                            "original_max_position_embeddings": 64, "tie_word_embeddings": True}],
    "gpt2": [{"n_head": 4, "n_inner": 96}, {"n_head": 16, "tie_word_embeddings": False, "activation_function": "gelu"}],
    "gpt_neox": [{"num_attention_heads": 4, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}},
                 {"num_attention_heads": 6, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new",
                  "rope_parameters": LINEAR | {"partial_rotary_factor": 0.5}, "tie_word_embeddings": True}],
    "starcoder2": [HEADS | {"sliding_window": 24, "rope_parameters": PLAIN},
                   OTHER_HEADS | {"use_bias": False, "rope_parameters": YARN, "tie_word_embeddings": False}],
    "granite": [HEADS | {"embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.6,
                         "logits_scaling": 2.0, "rope_parameters": PLAIN, "tie_word_embeddings": True},
                OTHER_HEADS | {"attention_bias": True, "mlp_bias": True, "attention_multiplier": 0.2,
                               "rope_parameters": LLAMA3}],
    "smollm3": [HEADS | {"rope_parameters": PLAIN},
                OTHER_HEADS | {"no_rope_layers": [1, 0, 1, 1, 0], "use_sliding_window": True, "sliding_window": 20,
                               "layer_types": sliding("fsffs", 5), "rope_parameters": YARN, "tie_word_embeddings": False,
                               "attention_bias": True, "mlp_bias": True}],
    "mixtral": [HEADS | {"num_local_experts": 5, "num_experts_per_tok": 2, "rope_parameters": PLAIN},
                OTHER_HEADS | {"num_local_experts": 4, "num_experts_per_tok": 3, "sliding_window": 20, "head_dim": 12,
                               "rope_parameters": YARN, "tie_word_embeddings": True}],
    "qwen3_moe": [HEADS | {"head_dim": 24, "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 40,
                           "norm_topk_prob": True, "rope_parameters": PLAIN},
                  OTHER_HEADS | {"head_dim": 12, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 56,
                                 "use_sliding_window": True, "sliding_window": 20, "attention_bias": True,
                                 "rope_parameters": LLAMA3, "tie_word_embeddings": True}],
    "qwen2_moe": [HEADS | {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 40,
                           "shared_expert_intermediate_size": 56, "norm_topk_prob": True, "rope_parameters": PLAIN},
                  OTHER_HEADS | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 56,
                                 "shared_expert_intermediate_size": 40, "qkv_bias": False, "mlp_only_layers": [0, 1],
                                 "use_sliding_window": True, "sliding_window": 20, "layer_types": sliding("fs", 5),
                                 "rope_parameters": LLAMA3, "tie_word_embeddings": True}],
    "deepseek_v2": [LATENT | {"q_lora_rank": None, "n_routed_experts": 6, "num_experts_per_tok": 3, "n_shared_experts": 2,
                              "moe_intermediate_size": 40, "first_k_dense_replace": 1, "rms_norm_eps": 0.0002,
                              "rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}},
                    OTHER_LATENT | {"q_lora_rank": 20, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
                                    "moe_intermediate_size": 24, "topk_method": "group_limited_greedy", "n_group": 4,
                                    "topk_group": 2, "routed_scaling_factor": 1.8, "attention_bias": True,
                                    "rope_parameters": YARN | {"mscale": 1.2, "mscale_all_dim": 0.8},
                                    "tie_word_embeddings": True}],
    "deepseek_v3": [LATENT | {"q_lora_rank": 24, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
                              "moe_intermediate_size": 40, "first_k_dense_replace": 2, "n_group": 4, "topk_group": 2,
                              "rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}},
                    OTHER_LATENT | {"q_lora_rank": None, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 2,
                                    "moe_intermediate_size": 24, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1,
                                    "norm_topk_prob": False, "routed_scaling_factor": 1.5, "rope_interleave": False,
                                    "attention_bias": True, "rope_parameters": PLAIN}],
    "olmoe": [HEADS | {"num_experts": 6, "num_experts_per_tok": 3, "rope_parameters": PLAIN},
              OTHER_HEADS | {"num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True, "rope_parameters": LINEAR, "attention_bias": True,
                             "tie_word_embeddings": True}],
}
# Families that were added when import was there: what their two shapes are is all that the checks know of them.
FAMILIES |= {
    "helium": [HEADS | {"head_dim": 16, "rope_parameters": PLAIN},
               OTHER_HEADS | {"head_dim": 8, "attention_bias": True, "mlp_bias": True, "rope_parameters": LINEAR,
                              "tie_word_embeddings": True}],
    "glm4": [HEADS | {"head_dim": 24, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}},
             OTHER_HEADS | {"head_dim": 16, "attention_bias": False, "hidden_act": "gelu",
                            "rope_parameters": YARN | {"partial_rotary_factor": 1.0}}],
}
FAMILIES |= {
    "gemma": [HEADS | {"head_dim": 24, "rope_parameters": PLAIN},
              OTHER_HEADS | {"head_dim": 16, "attention_bias": True, "rope_parameters": LINEAR, "tie_word_embeddings": False}],
    "glm": [HEADS | {"head_dim": 24, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.5}},
            OTHER_HEADS | {"head_dim": 16, "attention_bias": False, "hidden_act": "gelu", "tie_word_embeddings": True,
                           "rope_parameters": YARN | {"partial_rotary_factor": 1.0}}],
    "seed_oss": [HEADS | {"head_dim": 24, "rope_parameters": PLAIN},
                 OTHER_HEADS | {"head_dim": 12, "attention_bias": False, "attention_out_bias": True, "mlp_bias": True,
                                "rope_parameters": LLAMA3, "tie_word_embeddings": True}],
    "ernie4_5": [HEADS | {"head_dim": 24, "rope_parameters": PLAIN},
                 OTHER_HEADS | {"head_dim": 12, "use_bias": True, "rope_parameters": LINEAR, "tie_word_embeddings": False}],
    "stablelm": [HEADS | {"rope_parameters": PLAIN | {"partial_rotary_factor": 0.25}},
                 OTHER_HEADS | {"use_qkv_bias": True, "hidden_act": "gelu", "tie_word_embeddings": True,
                                "rope_parameters": LINEAR | {"partial_rotary_factor": 0.5}}],
}
SIZES = [{"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4},
         {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 5}]


def config_of(family, shape, vocab, eos):
    sizes = dict(SIZES[shape])
    if family == "gpt2":
        sizes.pop("intermediate_size")
    words = {"vocab_size": vocab, "max_position_embeddings": LENGTH, "bos_token_id": eos, "eos_token_id": eos,
             "pad_token_id": None, "initializer_range": 0.03}
    return AutoConfig.for_model(family, **sizes | words | FAMILIES[family][shape])


def random_model(family, shape, vocab, eos, seed):
    """Weights of such sizes that every part of the model shows in its logits."""
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config_of(family, shape, vocab, eos), attn_implementation="eager")
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.ndim == 3:  # experts: [expert, out, in]
                p.copy_(noise * 1.2 / p.shape[2] ** 0.5)
            elif p.ndim == 2:
                fan_in = p.shape[0] if type(model).__name__.startswith("GPT2") else p.shape[1]
                embedding = any(word in name for word in ("embed", "wte", "wpe"))
                p.copy_(noise * (0.4 if embedding else 1.2 / fan_in ** 0.5))
            else:
                p.add_(0.2 * noise)
        for name, b in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                b.copy_(0.1 * torch.randn(b.shape, generator=generator))
    return model.eval()


def write_directory(model, directory, shape, tokenizer):
    """The second shape in bf16 and in several files. Gives the model as it was written, in f32."""
    if shape == 1:
        model = model.to(torch.bfloat16)
    model.save_pretrained(directory, max_shard_size="5GB" if shape == 0 else "60KB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (tokenizer.parent / name).exists():
            shutil.copy(tokenizer.parent / name, directory)
    return load(directory)


def load(directory):
    model, info = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, output_loading_info=True,
                                                       attn_implementation="eager")
    return model.eval(), {k: v for k, v in info.items() if v}
