"""Planted errors for check_import.py: what each field of a decoder's description means, said wrongly on purpose.

Every option of model.type decoder that changes bits (docs/reference/config.md) has errors in one of four tables, or a reason in
NOT_IN_LOGITS why logits do not depend on it. CONFIG: the model with another value of the option. MODEL: for options
whose other value needs other parameters, the model of transformers without what the option says. SIZES: a size of
another value, which is refused. GRADIENTS: what only the loss has. A key of a rope is named with its type:
"rope.factor (yarn)".
"""
import copy
import pathlib
import re

import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LENGTH = 96  # of a text
DOC = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/config.md"


def exchanged(pattern):
    """Every layer of the other kind: the layers are stacked in the same way."""
    other = {"full": "sliding", "sliding": "full", "rope": "none", "none": "rope"}
    return [other[kind] for kind in pattern]


def other_rope(model):
    """Other values of the keys of model.rope, each with its type."""
    rope, out = model["rope"], {}
    kind = rope["type"]
    other = {"theta": rope["theta"] * 3}
    if "factor" in rope:
        other["factor"] = rope["factor"] * 2
    if kind == "llama3":
        other |= {"low_freq_factor": 2.5, "high_freq_factor": 8.0}
    if kind == "yarn":
        other |= {"beta_fast": 2.0, "beta_slow": 0.3, "attention_factor": 1.3, "truncate": not rope.get("truncate", True)}
        if rope.get("mscale_all_dim"):
            other["mscale_all_dim"] = None
    if kind == "longrope":
        used = "short_factor" if rope["original_max_position_embeddings"] >= LENGTH else "long_factor"
        other |= {"attention_factor": 1.5, used: [1.0]}
    if kind in ("llama3", "yarn", "dynamic"):
        other["original_max_position_embeddings"] = rope["original_max_position_embeddings"] // 2
    if kind == "longrope":  # the other list
        other["original_max_position_embeddings"] = 16 if rope["original_max_position_embeddings"] >= LENGTH else 128
    for key, value in other.items():
        out[f"rope.{key} ({kind})"] = {"rope": rope | {key: value}}
    plain = {"type": "default", "theta": rope["theta"]}
    out["rope.type"] = {"rope": {"type": "linear", "theta": rope["theta"], "factor": 2.0} if kind == "default" else plain}
    return out


def rotation(config, rope):
    """The frequencies of a model of transformers, and the factor of its attention, with our rope in place of its own."""
    changed = copy.deepcopy(config)
    names = {"type": "rope_type", "theta": "rope_theta"}
    changed.rope_parameters = {names.get(key, key): value for key, value in rope.items() if value is not None}
    frequencies, factor = ROPE_INIT_FUNCTIONS[rope["type"]](changed, device=None)
    return frequencies, factor


# Keys that only say between which frequencies yarn and llama3 do what.
LIMITS = ("beta_fast", "beta_slow", "truncate", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor")


def hides(config, field, model, other):
    """Whether another value of such a key gives this shape the same frequencies: a narrow head has few of them."""
    found = re.fullmatch(r"rope\.(\w+) \((yarn|llama3)\)", field)
    if not found or found[1] not in LIMITS:
        return False
    (a, x), (b, y) = rotation(config, model["rope"]), rotation(config, other["rope"])
    return x == y and torch.allclose(a, b, rtol=1e-6, atol=0)


def in_config(model):
    """Other values of the options that the model has, of those that keep all shapes: field -> what changes."""
    one = lambda key, value: {key: {key: value}}
    out = one("layer_norm_epsilon", max(0.03, model["layer_norm_epsilon"] * 100))
    out |= one("activation_function", "relu" if model["activation_function"] == "silu" else "silu")
    if model["positions"] == "rope":
        out |= other_rope(model) | one("rope_interleaved", not model["rope_interleaved"])
        if model["partial_rotary_factor"] != 1:
            out |= one("partial_rotary_factor", 1.0)
        if "none" in model["rope_pattern"]:
            out |= one("rope_pattern", exchanged(model["rope_pattern"]))
    out |= one("norm_scale", "weight" if model["norm_scale"] == "one_plus_weight" else "one_plus_weight")
    if model["norm"] == "rms":
        out |= one("norm", "layer")
    if model["norm_place"] != "post":
        out |= one("parallel", not model["parallel"])
    if model["sliding_window"] is not None and "sliding" in model["layer_pattern"]:
        out |= one("sliding_window", model["sliding_window"] + 1)
        out |= one("layer_pattern", exchanged(model["layer_pattern"]))
        if model["rope_local_theta"] is not None and model["rope_local_theta"] != model["rope"]["theta"]:
            out |= one("rope_local_theta", None)
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if model[key] is not None:
            out |= one(key, None)
    if model["attention_multiplier"] is not None:
        out |= one("attention_multiplier", None)
    elif model["query_pre_attn_scalar"] not in (None, model["head_dim"]):
        out |= one("query_pre_attn_scalar", None)
    else:
        out |= one("query_pre_attn_scalar", 2.0 * model["head_dim"])
    out |= one("scale_embedding", not model["scale_embedding"])
    for key in ("embedding_multiplier", "residual_multiplier", "logits_scaling"):
        if model[key] != 1:
            out |= one(key, 1.0)
    if model["num_experts"]:
        out |= one("norm_topk_prob", not model["norm_topk_prob"])
        out |= one("router_scores", "softmax" if model["router_scores"] == "sigmoid" else "sigmoid")
        out |= one("num_experts_per_tok", model["num_experts_per_tok"] - 1)
        out |= one("routed_scaling_factor", 1.5 * model["routed_scaling_factor"])
        if model["n_group"] > 1:
            out |= one("topk_group", model["topk_group"] + 1) | {"n_group": {"n_group": 1, "topk_group": 1}}
            out |= one("group_score", "best" if model["group_score"] != "best" else "best_two")
    return out


def named(model, pattern):
    """Modules by the ends of their names; there must be some."""
    found = [m for name, m in model.named_modules() if re.search(rf"(^|\.)({pattern})$", name)]
    assert found, f"no module of {type(model).__name__} is called {pattern}"
    return found


def no_biases(pattern):
    def plant(model):
        biased = [module for module in named(model, pattern) if module.bias is not None]
        assert biased, f"no bias of {type(model).__name__} in {pattern}"
        for module in biased:
            module.bias.data.zero_()
    return plant


def replaced(pattern, forward):
    """Modules that compute something else of their input."""
    def plant(model):
        for module in named(model, pattern):
            module.forward = forward(module)
    return plant


def identity(_):
    return lambda x: x


def not_centred(norm):
    return lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.eps) * norm.weight + norm.bias


def over_each_head(norm):
    """A norm of all heads together as if it were one of each."""
    def forward(x):
        of_head = x.unflatten(-1, (-1, norm.head_dim))
        return (of_head * torch.rsqrt(of_head.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)).flatten(-2) * norm.weight
    return forward


def heads_apart(model):
    for attention in named(model, "self_attn"):
        for norm in (attention.q_norm, attention.k_norm):
            norm.head_dim = attention.head_dim
            norm.forward = over_each_head(norm)


def without_gate(mlp):
    if hasattr(mlp, "gate_up_proj"):  # of Phi-3: both in one
        return lambda x: mlp.down_proj(mlp.activation_fn(mlp.gate_up_proj(x).chunk(2, -1)[1]))
    return lambda x: mlp.down_proj(mlp.act_fn(mlp.up_proj(x)))


def norms_behind(model):
    """Norms before attention and MLP, as if they were behind."""
    for layer in named(model, r"layers\.\d+"):
        for part, norm in (("self_attn", layer.input_layernorm), ("mlp", layer.post_attention_layernorm)):
            behind = copy.deepcopy(norm)
            norm.forward = lambda x: x
            getattr(layer, part).register_forward_hook(
                lambda _, __, out, behind=behind: (behind(out[0]), *out[1:]) if isinstance(out, tuple) else behind(out))


def other_head(tied):
    """The head of a model with tied weights has some of its own; that of another has the embedding's."""
    def plant(model):
        head, weight = model.get_output_embeddings(), model.get_input_embeddings().weight.detach()
        apart = copy.deepcopy(head)
        apart.weight = torch.nn.Parameter(weight.roll(1, 0) if tied else weight.clone())
        name = next(n for n, m in model.named_children() if m is head)
        setattr(model, name, apart)
    return plant


def no_positions(model):
    named(model, "wpe")[0].weight.data.zero_()


def no_router_biases(model):
    for router in [m for m in model.modules() if hasattr(m, "e_score_correction_bias")]:
        router.e_score_correction_bias.zero_()


def gates_half_open(model):
    for gate in named(model, "shared_expert_gate"):
        gate.weight.data.zero_()


def in_model(options, model):
    """What takes from transformers' model what an option says: field -> function of a copy of it."""
    out = {"tie_word_embeddings": other_head(options["tie_word_embeddings"])}
    if options.get("norm_bias"):
        norms = r"ln_1|ln_2|ln_f|\w*norm"
        out |= {"norm_bias": no_biases(norms), "norm": replaced(norms, not_centred)}
    if options.get("qkv_bias"):
        out["qkv_bias"] = no_biases("[qkv]_proj|q_a_proj|kv_a_proj_with_mqa|c_attn|query_key_value")
    if options.get("out_bias"):
        out["out_bias"] = no_biases(r"o_proj|attn\.c_proj|dense")
    if options.get("mlp_bias"):
        out["mlp_bias"] = no_biases(r"mlp\.\w*(proj|c_fc|dense_\w+)")
    if options.get("qk_norm", "none") == "whole":
        out["qk_norm"] = heads_apart
    elif options.get("qk_norm", "none") == "head":
        out["qk_norm"] = replaced("[qk]_norm", identity)
    if options["positions"] == "learned":
        out["positions"] = no_positions
    if options.get("router_bias"):
        out["router_bias"] = no_router_biases
    if options.get("shared_expert_gate"):
        out["shared_expert_gate"] = gates_half_open
    if options.get("gated_mlp", True) and not options["num_experts"]:
        out["gated_mlp"] = replaced("mlp", without_gate)
    if options["norm_place"] != "pre":
        glm = any(name.endswith("post_mlp_layernorm") for name, _ in model.named_modules())
        behind = "post_self_attn_layernorm|post_mlp_layernorm" if glm else "post_attention_layernorm|post_feedforward_layernorm"
        out["norm_place"] = replaced(behind, identity)
    elif not options["parallel"] and hasattr(model, "model") and hasattr(model.model, "layers"):
        out["norm_place"] = norms_behind
    return out


def sizes(options):
    """Other sizes, each possible by itself."""
    out = {key: options[key] + more for key, more in (("hidden_dim", 12), ("intermediate_dim", 8), ("num_layers", 1))}
    out |= {"num_heads": 2 * options["num_heads"], "vocab_size": (options.get("vocab_size") or 400) + 8}
    if options.get("kv_lora_rank"):
        out |= {key: options[key] + 8 for key in
                ("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim") if options.get(key)}
    else:
        out |= {"head_dim": 2 * options["head_dim"], "num_kv_heads": 1}
    if options["positions"] == "learned":
        out["max_position_embeddings"] = options["max_position_embeddings"] + 8
    if options["num_experts"]:
        out["num_experts"] = 2 * options["num_experts"]
        out |= {key: options[key] + 8 for key in ("shared_intermediate_dim",) if options.get(key)}
        if options.get("first_k_dense_replace"):
            out |= {"first_k_dense_replace": options["first_k_dense_replace"] - 1,
                    "dense_intermediate_dim": options["dense_intermediate_dim"] + 8}
    return out


def in_gradients(options):
    return {"z_loss_weight": 0.01} | ({"router_z_loss_coef": 0.01} if options.get("num_experts") else {})


# Options that change bits, but none of the imported model's logits.
NOT_IN_LOGITS = {
    "type": "the name of a set of values of the others",
    "seq_len": "how texts are cut",
    "initializer_range": "initial weights, which an import replaces",
    "mup_base_dim": "initial weights and rates",
    "track_expert_load": "a figure of training (nn/moe_test.cc, fleet/workers/loads_test.cc)",
    "router_aux_loss_coef": "needs the loads of a step before (nn/moe_test.cc)",
    "router_bias_update_rate": "no family imports a router's bias; check_features.py has one",
    "attention_sink": "no family imports sinks; check_features.py has them",
    "head_bias": "no family imports a head with a bias; check_features.py has one",
}
SIZES = ["hidden_dim", "intermediate_dim", "num_layers", "num_heads", "num_kv_heads", "head_dim", "vocab_size",
         "max_position_embeddings", "num_experts", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
         "v_head_dim", "shared_intermediate_dim", "dense_intermediate_dim", "first_k_dense_replace"]
GRADIENTS = ["z_loss_weight", "router_z_loss_coef"]
MODEL = ["tie_word_embeddings", "norm_bias", "norm", "qkv_bias", "out_bias", "mlp_bias", "qk_norm", "positions", "gated_mlp",
         "norm_place", "router_bias", "shared_expert_gate"]
CONFIG = ["activation_function", "layer_norm_epsilon", "rope.type", "rope.theta (default)", "rope.theta (linear)",
          "rope.factor (linear)", "rope.theta (llama3)", "rope.factor (llama3)", "rope.low_freq_factor (llama3)",
          "rope.high_freq_factor (llama3)", "rope.original_max_position_embeddings (llama3)", "rope.theta (yarn)",
          "rope.factor (yarn)", "rope.original_max_position_embeddings (yarn)", "rope.beta_fast (yarn)",
          "rope.beta_slow (yarn)", "rope.attention_factor (yarn)", "rope.truncate (yarn)", "rope.mscale_all_dim (yarn)", "rope.theta (dynamic)",
          "rope.factor (dynamic)", "rope.original_max_position_embeddings (dynamic)", "rope.theta (longrope)",
          "rope.short_factor (longrope)", "rope.long_factor (longrope)",
          "rope.original_max_position_embeddings (longrope)", "rope.attention_factor (longrope)", "norm_scale", "parallel",
          "sliding_window", "layer_pattern", "attn_logit_softcapping", "query_pre_attn_scalar", "attention_multiplier",
          "partial_rotary_factor", "rope_interleaved", "rope_local_theta", "rope_pattern", "scale_embedding",
          "embedding_multiplier", "residual_multiplier", "logits_scaling", "final_logit_softcapping", "num_experts_per_tok",
          "router_scores", "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group", "group_score"]


def declared():
    """The options of model.type decoder that change bits, of docs/reference/config.md, which follows from the declarations."""
    found = set()
    for key, effect, meaning in re.findall(r"^\| `model\.([\w.]+)` \|(?:[^|\\]|\\.)*\|[^|]*\|[^|]*\| (\w+)[^|]*\|(.*)\|$",
                                           DOC.read_text(), re.M):
        only = re.search(r"only when model\.type is ([\w, ]+)", meaning)
        kind = re.search(r"model\.rope\.type is (\w+)", meaning)
        if effect == "bits" and (only is None or "decoder" in re.findall(r"\w+", only[1])):
            found.add(f"{key} ({kind[1]})" if kind else key)
    return found


def unplanted(fields, tables=(CONFIG, MODEL, SIZES, GRADIENTS, NOT_IN_LOGITS)):
    """Fields that no table has, and those of the tables that are no fields."""
    known = {field for table in tables for field in table}
    return sorted(fields - known), sorted(known - fields)
