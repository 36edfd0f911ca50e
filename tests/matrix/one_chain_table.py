"""The configurations of tests/matrix/one_chain.py: for each its name and what it changes of the base there.

Keys are dotted. Precisions are written out, because a chain covers the text of the option.
"""
ABSENT = "absent"  # instead of a value: a key of the base that these configurations do not have
F32, BF16, INT8 = {"trainer.mp": "f32"}, {"trainer.mp": "p=f32,c=bfloat16"}, {"trainer.mp": "p=f32,c=int8"}
ALL_INT8 = {"trainer.mp": "p=f32,c=int8,a=int8"}  # products of attention, too
TC16 = {"trainer.mp": "p=f32,c=bf16_tc16"}  # the rule of tensor cores

# Families, with the options by which a small model shows what is theirs; each in bf16 and in int8. Those without experts:
WINDOW = {"sliding_window": 7}
DENSE = {
    "llama": {},
    "decoder": {**WINDOW, "norm": "layer", "norm_bias": True, "norm_place": "sandwich", "parallel": True, "qk_norm": "whole",
                "attention_sink": True, "layer_pattern": ["sliding", "full"], "rope": {"type": "yarn", "factor": 2},
                "rope_interleaved": True, "head_bias": True},
    "mistral": {**WINDOW},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": {**WINDOW, "query_pre_attn_scalar": 12},
    "gemma3": {**WINDOW, "layer_pattern": ["sliding", "full"]},
    "olmo2": {},
    "olmo3": {**WINDOW, "rope": {"type": "yarn", "factor": 2}},
    "phi3": {**WINDOW, "partial_rotary_factor": 0.5},
    "gpt2": {"num_kv_heads": ABSENT, "max_position_embeddings": 64},
    "gpt_neox": {"num_kv_heads": ABSENT, "partial_rotary_factor": 0.5},
    "starcoder2": {**WINDOW},
    "granite": {"embedding_multiplier": 6, "attention_multiplier": 0.2, "residual_multiplier": 0.4, "logits_scaling": 3},
    "smollm3": {"num_layers": 4},
    "helium": {"rope": {"type": "longrope", "long_factor": [2.0], "original_max_position_embeddings": 8}},
    "glm": {},
    "glm4": {"head_dim": 8, "vocab_size": 288, "rope": {"type": "dynamic", "original_max_position_embeddings": 8}},
    "seed_oss": {"out_bias": True, "mlp_bias": True},
    "ernie4_5": {},
    "stablelm": {"qkv_bias": True, "partial_rotary_factor": 0.5},
}
NORMS_OF_HEADS = ("decoder", "qwen3", "qwen3_moe", "gemma3", "olmo2", "olmo3", "olmoe")
# Mixtures of experts.
LATENT = {"num_kv_heads": ABSENT, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4}
MIXTURES = {
    "mixtral": {**WINDOW, "num_experts": 4, "track_expert_load": True, "router_bias_update_rate": 0.01,
                "router_aux_loss_coef": 0.01, "router_z_loss_coef": 0.001},
    "qwen3_moe": {"num_experts": 6, "num_experts_per_tok": 3},
    "olmoe": {"num_experts": 5},
    "grok": {"num_experts": 4},
    "qwen2_moe": {"num_experts": 4, "shared_intermediate_dim": 12, "first_k_dense_replace": 1, "dense_intermediate_dim": 20},
    "deepseek_v2": {**LATENT, "num_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "dense_intermediate_dim": 20,
                    "shared_intermediate_dim": 12},
    "deepseek_v3": {**LATENT, "q_lora_rank": 8, "num_experts": 8, "num_experts_per_tok": 3, "first_k_dense_replace": 1,
                    "shared_intermediate_dim": 8, "track_expert_load": True, "router_bias_update_rate": 0.01},
}
CUT = {"numerics.leaves": {"kv_heads": 2, "mlp": 2, "vocab": 3, "pos": 2}}
TIED = {"model.tie_word_embeddings": True}
LORA = {"adapter.type": "lora", "adapter.rank": 4}
CHAT = {"data.components": {"chats": {"train_urls": ["chats.jsonl"], "validation_fraction": 0.1, "format": {
    "type": "chat", "chat_template": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
                                     "{% else %}{{ m.content }} > {% endif %}{% endfor %}"}}},
        "data.train_weights": {"chats": 1}, "data.cache_dir": "chat-store", "data.train_urls": ABSENT, "data.validation_fraction": ABSENT}
PAIRS = {"data.components": {"pairs": {"train_urls": ["pairs.jsonl"], "validation_fraction": 0.1, "format": {"type": "preference"}}},
         "data.train_weights": {"pairs": 1}, "data.cache_dir": "pair-store", "data.train_urls": ABSENT,
         "data.validation_fraction": ABSENT, "objective.type": "dpo", "trainer.initialize_from": "runs/origin"}
OTHERS = {
    "f32": F32,
    "f32, tied, cut at leaves": {**F32, **TIED, **CUT},
    "f32, sequences of 1, one leaf": {**F32, "model.seq_len": 1, "numerics.leaf_examples": 6},
    "f32, experts, cut at leaves": {**F32, "model.type": "mixtral", "model.num_experts": 4, "numerics.leaves": {"mlp": 2, "experts": 3}},
    "bf16, tied": {**BF16, **TIED},
    "bf16, cut at leaves": {**BF16, **CUT},
    "bf16, experts, cut at leaves": {**BF16, "model.type": "qwen3_moe", "model.num_experts": 5, "numerics.leaves": {"mlp": 2, "pos": 2}},
    "bf16, documents, sequences of 37": {**BF16, "data.block_cross_document_attention": True, "model.seq_len": 37},
    "bf16, packed conversations": {**BF16, **CHAT},
    "bf16, LoRA": {**BF16, **LORA},
    "bf16, LoRA, cut at leaves": {**BF16, **LORA, **CUT},
    "bf16, DPO": {**BF16, **PAIRS},
    "bf16, muon": {**BF16, "optimizer.type": "muon"},
    "bf16_tc16, tied, cut at leaves": {**TC16, **TIED, **CUT},
    "bf16_tc16, LoRA": {**TC16, **LORA},
    "bf16_tc16, experts, cut at leaves": {**TC16, "model.type": "qwen2_moe", "model.num_experts": 4, "model.shared_intermediate_dim": 12,
                                          "numerics.leaves": {"mlp": 2, "pos": 2}},
    "int8, tied": {**INT8, **TIED},
    "int8, cut at leaves": {**INT8, **CUT},
    "int8, tied, qk norm, cut at leaves": {**INT8, **TIED, **CUT, "model.type": "qwen3"},
    "int8, LoRA, cut at leaves": {**INT8, **LORA, **CUT},
    "int8, two blocks of every kind": {**INT8, "model.intermediate_dim": 300, "model.seq_len": 44, "numerics.leaf_examples": 6},
    "int8, sequences of 1, one leaf": {**INT8, "model.seq_len": 1, "numerics.leaf_examples": 6},
    "int8, experts, cut at leaves": {**INT8, "model.type": "mixtral", "model.num_experts": 4,
                                     "numerics.leaves": {"mlp": 2, "experts": 3, "pos": 2, "kv_heads": 2}},
    "int8, experts with rows of two blocks": {**INT8, "model.type": "mixtral", "model.num_experts": 3,
                                              "model.num_experts_per_tok": 2, "model.seq_len": 72, "model.intermediate_dim": 260, "numerics.leaf_examples": 6},
    "int8, experts, LoRA": {**INT8, **LORA, "model.type": "qwen3_moe", "model.num_experts": 4},
    "int8, experts frozen": {**INT8, "model.type": "mixtral", "model.num_experts": 4, "trainer.freeze": ["model/layers/moe/*"]},
    "int8, documents": {**INT8, "data.block_cross_document_attention": True},
    "int8, packed conversations": {**INT8, **CHAT},
    "int8, LoRA": {**INT8, **LORA},
    "int8, LoRA, packed conversations": {**INT8, **LORA, **CHAT},
    "int8, DPO": {**INT8, **PAIRS},
    "int8, DPO of adapters": {**INT8, **PAIRS, **LORA},
    "int8, frozen embedding": {**INT8, "trainer.freeze": ["model/embedding/*"]},
    "int8, z-loss, muP": {**INT8, "model.z_loss_weight": 1e-3, "model.mup_base_dim": 8},
    "int8 with attention": ALL_INT8,
    "int8 with attention, cut at leaves": {**ALL_INT8, **CUT},
    "int8 with attention, documents, sequences of 150": {**ALL_INT8, "data.block_cross_document_attention": True, "model.seq_len": 150},
    "int8 with attention, LoRA, packed conversations": {**ALL_INT8, **LORA, **CHAT},
    "bf16 with attention in int8, tied": {"trainer.mp": "p=f32,c=bfloat16,a=int8", **TIED},
    "f32 with attention in int8, DPO": {"trainer.mp": "p=f32,c=f32,a=int8", **PAIRS},
    "int8, sgd": {**INT8, "optimizer.type": "sgd"},
    "int8, lion": {**INT8, "optimizer.type": "lion"},
    "int8, muon": {**INT8, "optimizer.type": "muon"},
}


def model(family, options):
    return {"model.type": family, **{f"model.{key}": value for key, value in options.items()}}


def table():
    """Name -> changes, in the order of the table."""
    rows = {}
    for family, options in (DENSE | MIXTURES).items():
        rows[f"{family} bf16"] = {**BF16, **model(family, options)}
        rows[f"{family} int8"] = {**INT8, **model(family, options)}
    # Sinks, windows, soft caps, grouped heads and values narrower than keys.
    for family in ("decoder", "gemma2", "deepseek_v3"):
        rows[f"{family} int8 with attention"] = {**ALL_INT8, **model(family, (DENSE | MIXTURES)[family])}
    rows.update({f"llama {name}" if "experts" not in name else name: changes for name, changes in OTHERS.items()})
    return rows
