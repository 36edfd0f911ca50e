#include "ostro/models/decoder/block.h"

#include "ostro/models/decoder/released.h"
#include "ostro/nn/moe_experts.h"
#include "ostro/trace/frame.h"

namespace ostro::models {
namespace {

Array activate(Activation activation, const Array& x) {
  switch (activation) {
    case Activation::kSilu: return silu(x);
    case Activation::kGelu: return gelu_erf(x);
    case Activation::kGeluTanh: return gelu_tanh(x);
    case Activation::kRelu: return relu(x);
  }
  return x;
}

// Projects, normalises, rotates and casts: q [batch, pos, kv_heads, group, head_dim], k and v [batch, pos,
// kv_heads, head_dim].
Projected project(const DecoderAttention& p, const Array& x, const nn::Rope* rope) {
  const Array qkv = checkpoint_name(p.qkv(x), "qkv");
  const int64_t group = qkv.size("qkv") - 2;
  const auto parts = split(qkv, "qkv", {group, 1, 1});
  const auto turn = [&](const Array& a) { return cast(rope != nullptr ? (*rope)(a) : a, p.qkv.dtype()); };
  Projected out;
  out.q = turn(p.q_norm(rename(parts[0], "qkv", "group")));
  out.k = turn(p.k_norm(unstack(parts[1], "qkv")[0]));
  out.v = unstack(parts[2], "qkv")[0];
  return out;
}

// project() for latent attention. q, k and v are padded with zeros to the width of the widest: these add
// exact zeros to scores, and give zeros behind the values, which run_attention() cuts off.
Projected project(const DecoderOptions& o, const LatentProjections& p, const Array& like, const Array& x,
                  const nn::Rope* rope) {
  const auto turn = [&](const Array& a) { return nn::cast_like(rope != nullptr ? (*rope)(a) : a, like); };
  const auto padded = [&](const Array& a) {
    const int64_t missing = o.cache_dim() - a.size("head_dim");
    return missing == 0 ? a : pad(a, "head_dim", 0, missing);
  };
  const Array q = checkpoint_name(p.q(p.q_a.weight.valid() ? p.q_norm(p.q_a(x)) : x), "qkv");
  const auto of_q = split(q, "head_dim", {o.qk_nope_head_dim, o.qk_rope_head_dim});
  const auto latent = split(p.kv_a(x), "kv_latent", {o.kv_lora_rank, o.qk_rope_head_dim});
  const Array kv = checkpoint_name(p.kv_b(p.kv_norm(rename(latent[0], "kv_latent", "kv_rank"))), "qkv");
  const auto of_kv = split(kv, "kv_dim", {o.qk_nope_head_dim, o.v_head_dim});
  const Array k_nope = rename(of_kv[0], "kv_dim", "head_dim");
  std::vector<Axis> of_heads = k_nope.shape().axes;
  of_heads.back().size = o.qk_rope_head_dim;
  const Array k_rope = broadcast_to(turn(rename(latent[1], "kv_latent", "head_dim")), of_heads);
  return {padded(concat({of_q[0], turn(of_q[1])}, "head_dim")), padded(concat({k_nope, k_rope}, "head_dim")),
          padded(rename(of_kv[1], "kv_dim", "head_dim"))};
}

bool is_latent(const DecoderAttention& p) { return p.latent.kv_b.weight.valid(); }

AttentionOptions attention_options(const DecoderOptions& o, const DecoderAttention& p) {
  AttentionOptions options;
  options.scale = o.attention_scale();
  options.soft_cap = o.attn_logit_softcapping.value_or(0);
  if (p.sink_bias.valid()) options.sink = cast(p.sink_bias, DType::f32);
  options.int8_slices = p.int8_slices;
  return options;
}

// Latent attention has values behind which zeros were put.
Array without_filling(const DecoderOptions& o, const DecoderAttention& p, const Array& y) {
  return is_latent(p) ? rename(slice(y, "head_dim", 0, o.v_head_dim), "head_dim", "value_dim") : y;
}

Array attend_to(const DecoderOptions& o, const LayerSpec& spec, const DecoderAttention& p, const Array& q,
                const Array& k, const Array& v, const LayerInputs& inputs, AttentionOptions options) {
  if (o.released()) return released::attention(o, q, k, v, inputs);
  AttentionMask mask = inputs.mask;
  mask.window = spec.window;
  options.query_origin = inputs.start;
  return without_filling(o, p, flash_attention(q, k, v, mask, options));
}

// Queries, keys and values of the input of attention.
Projected project(const DecoderOptions& o, const LayerSpec& spec, const DecoderAttention& p, const Array& x,
                  const LayerInputs& inputs) {
  const nn::Rope* rope = nullptr;
  if (spec.rope) rope = spec.local_rope ? &*inputs.local_rope : &*inputs.rope;
  return is_latent(p) ? project(o, p.latent, p.o.weight, x, rope) : project(p, x, rope);
}

// Projects and rotates, writes keys and values into the cache if there is one, and attends to all of them.
Array attend(const DecoderOptions& o, const LayerSpec& spec, const DecoderAttention& p, const Array& x,
             const LayerInputs& inputs, KeyValues* past) {
  const Projected a = project(o, spec, p, x, inputs);
  const AttentionOptions options = attention_options(o, p);
  Array k = rename(a.k, "pos", "key_pos"), v = rename(a.v, "pos", "key_pos");
  if (o.released()) k = released::without_padding(k, inputs.tokens);
  if (past != nullptr) {
    // Cache slots after the tokens fed so far hold zeros or padding. Their positions come after every query
    // that counts, so the causal mask excludes them.
    k = past->k = dynamic_update_slice(past->k, "key_pos", k, inputs.start);
    v = past->v = dynamic_update_slice(past->v, "key_pos", v, inputs.start);
  }
  return attend_to(o, spec, p, a.q, k, v, inputs, options);
}

Array run_mlp(const DecoderMlp& p, const Array& x, Activation activation) {
  Scope scope("mlp");
  if (!p.gate_up.weight.valid())
    return checkpoint_name(p.down(activate(activation, checkpoint_name(p.up(x), "gate_up"))), "mlp_out");
  const auto [gate, up] = unstack<2>(checkpoint_name(p.gate_up(x), "gate_up"), "gate_up");
  return checkpoint_name(p.down(activate(activation, gate) * up), "mlp_out");
}

// Adds the losses that balance the experts, and the zeros that count their rows (numerics.md N11).
Array loss_of_router(const DecoderOptions& o, const nn::Moe& p, const nn::Routed& routed, Array loss) {
  Scope scope("balance");
  if (o.router_z_loss_coef > 0) loss = loss + nn::router_z_loss(routed.logits, o.router_z_loss_coef);
  if (o.router_aux_loss_coef > 0)
    loss = loss + nn::balance_loss(routed.scores, p.load, o.router_aux_loss_coef);
  for (const Array* state : {&p.load, &p.router.bias})
    if (state->valid()) loss = loss + nn::counted(*state, routed.expert);
  return loss;
}

nn::Activate activation_of(const DecoderOptions& o) {
  return [&o](const Array& a) { return activate(o.activation_function, a); };
}

Array run_experts(const DecoderOptions& o, const nn::Moe& p, const Array& x, Array* router_loss) {
  Scope scope("moe");
  const nn::Moe::Result result = p(x, activation_of(o));
  if (router_loss != nullptr) *router_loss = loss_of_router(o, p, result.routed, *router_loss);
  return result.y;
}

// A rounding that only the released program has.
Array settled(const DecoderOptions& o, const Array& x) { return o.released() ? released::rounded(x) : x; }

// The output of attention or MLP, as it is added to the residual stream.
Array added(const DecoderOptions& o, const nn::Norm& post_norm, const Array& y) {
  const Array normed = settled(o, post_norm(y));
  return o.residual_multiplier == 1 ? normed : normed * o.residual_multiplier;
}

}  // namespace

Projected run_projections(const DecoderOptions& o, const LayerSpec& spec, const DecoderBlock& p,
                          const Array& x, const LayerInputs& inputs) {
  Scope scope("attention");
  Projected out = project(o, spec, p.attention, settled(o, p.attention_norm(x)), inputs);
  if (o.released()) out.k = released::without_padding(out.k, inputs.tokens);
  return out;
}

Array run_attention(const DecoderOptions& o, const LayerSpec& spec, const DecoderBlock& p, const Array& q,
                    const Array& k, const Array& v, const LayerInputs& inputs) {
  Scope scope("attention");
  return attend_to(o, spec, p.attention, q, k, v, inputs, attention_options(o, p.attention));
}

Arrays run_paged_attention(const DecoderOptions& o, const LayerSpec& spec, const DecoderBlock& p,
                           const Arrays& qkv, const LayerFunctions::Paged& cache) {
  Scope scope("attention");
  const PageAxes axes{.row = "pos"};
  const Array keys = paged_write(cache.keys, index(qkv[1], "batch", 0), cache.place, axes),
              values = paged_write(cache.values, index(qkv[2], "batch", 0), cache.place, axes);
  const AttentionOptions of = attention_options(o, p.attention);
  const Array y =
      paged_attention(index(qkv[0], "batch", 0), keys, values, cache.table, cache.position,
                      {axes, of.head_dim, of.scale, of.soft_cap, spec.window, of.sink, of.int8_slices});
  const Array batch = split_axis(y, "pos", {{"batch", 1}, {"pos", y.size("pos")}});
  return {without_filling(o, p.attention, batch), keys, values};
}

AfterAttention run_after_attention(const DecoderOptions& o, const DecoderBlock& p, const Array& x,
                                   const Array& attended) {
  AfterAttention out;
  {
    Scope scope("attention");
    const Array made = p.attention.o(checkpoint_name(attended, "attention"));
    out.h = settled(o, x + added(o, p.attention_post_norm, checkpoint_name(made, "attention_out")));
  }
  out.mlp_in = settled(o, p.mlp_norm(o.parallel ? x : out.h));
  return out;
}

Array run_block(const DecoderOptions& o, const LayerSpec& spec, const DecoderBlock& p, const Array& x,
                const LayerInputs& inputs, KeyValues* past, Array* router_loss) {
  Array attended;
  {
    Scope scope("attention");
    attended = attend(o, spec, p.attention, settled(o, p.attention_norm(x)), inputs, past);
  }
  const auto [h, in] = run_after_attention(o, p, x, attended);
  const Array mlp =
      p.moe.down.valid() ? run_experts(o, p.moe, in, router_loss) : run_mlp(p.mlp, in, o.activation_function);
  return cast(h + added(o, p.mlp_post_norm, mlp), p.attention.o.dtype());
}

nn::Routed run_router(const DecoderBlock& p, const Array& mlp_in) {
  Scope scope("moe");
  return p.moe.router(mlp_in);
}

Array run_chosen(const DecoderOptions& o, const DecoderBlock& p, const AfterAttention& x,
                 const nn::Routed& routed, DType dtype) {
  Array y;
  if (p.moe.down.valid()) {
    Scope scope("moe");
    y = nn::apply_experts(p.moe, x.mlp_in, routed, activation_of(o));
  } else {
    y = run_mlp(p.mlp, x.mlp_in, o.activation_function);
  }
  return cast(x.h + added(o, p.mlp_post_norm, y), dtype);
}

}  // namespace ostro::models
