// by_layer: a decoder in parts that run one after the other.
#include "ostro/models/decoder/by_layer.h"

#include <map>

#include "ostro/models/decoder/decoder.h"
#include "ostro/models/parameter_forms.h"
#include "ostro/trace/frame.h"

namespace ostro::models {
namespace {

void clear(nn::Norm& norm) { norm.weight = norm.bias = Array(); }

// The block with the weights of its first half alone.
DecoderBlock first_half(DecoderBlock b) {
  b.mlp = {};
  b.moe.gate_up = b.moe.gate_up_scales = b.moe.down = b.moe.down_scales = Array();
  b.moe.shared_gate = b.moe.load = Array();
  b.moe.shared = {};
  clear(b.mlp_post_norm);
  return b;
}

// The block with the weights of its second half alone.
DecoderBlock second_half(DecoderBlock b) {
  for (nn::Norm* n : {&b.attention_norm, &b.attention_post_norm, &b.mlp_norm}) clear(*n);
  b.attention = {};
  b.moe.router.weight = b.moe.router.bias = b.moe.load = Array();
  return b;
}

using Places = std::map<std::string, size_t>;  // of a model's parameters, by path

// The reads of a part's leaves, in order. `by_expert`: of leaves with a leading axis of experts the part
// reads only some experts.
template <typename T>
std::vector<WeightRead> reads_of(const T& part, const std::string& path, int64_t layer, const Places& places,
                                 bool by_expert = false) {
  std::vector<WeightRead> out;
  for_each_leaf(
      part,
      [&](const std::string& leaf, const Array& a) {
        const size_t axis = layer >= 0 ? 1 : 0;
        const auto& axes = a.shape().axes;
        out.push_back(
            {places.at(leaf), layer, by_expert && axes.size() > axis && axes[axis].name == "experts"});
      },
      path);
  return out;
}

}  // namespace

// Splits the model's tree: `top` has the parameters outside of layers, first and second the halves of every
// layer. The leaves of each tree are listed as reads; a function puts the weights that it gets into a copy of
// the tree and runs it.
LayerFunctions Decoder::by_layer(const nn::Precision& compute, const std::vector<std::string>& paths) const {
  Places places;
  for (size_t i = 0; i < paths.size(); ++i) places.emplace(paths[i], i);
  LayerFunctions f;
  f.experts = options.num_experts;
  f.experts_per_token = options.num_experts > 0 ? options.num_experts_per_tok : 0;
  f.dtype = compute.dtype;
  const std::string table = "model/embedding/weight";
  add_parameter_forms(*this, compute, options.tie_word_embeddings ? table : "", places, f);
  f.embedding = places.at(table);
  f.embed_reads = reads_of(position_embedding, "model/position_embedding", -1, places);

  Decoder top = *this;  // the parameters outside of layers
  top.layers = {};
  top.lead = top.tail = {};
  Decoder top_head = top;
  top_head.position_embedding = {};
  if (!options.tie_word_embeddings) top_head.embedding = {};
  f.head_reads = reads_of(top_head, "model", -1, places);
  f.norm_reads = reads_of(norm, "model/norm", -1, places);

  std::vector<DecoderBlock> first, second;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const DecoderBlock& b = block(i);
    first.push_back(first_half(b));
    second.push_back(second_half(b));
    const LayerPlace place = options.layer_place(i);
    f.attention_reads.push_back(reads_of(first.back(), place.path, place.index, places));
    f.chosen_reads.push_back(reads_of(second.back(), place.path, place.index, places, true));
    int64_t kind = 0;
    while (options.layer(kind) != options.layer(i)) ++kind;
    f.kind.push_back(kind);
  }

  f.cache = [o = options, compute](int64_t batch, int64_t length) {
    return zeros(
        {{"batch", batch}, {"key_pos", length}, {"kv_heads", o.num_kv_heads}, {"head_dim", o.cache_dim()}},
        compute.dtype);
  };
  f.embed = [top, compute](const Array& rows, const Arrays& weights, const Array& tokens,
                           const Array& positions) {
    Decoder m = top;
    m.embedding.weight = rows;
    m.position_embedding = tree_with_leaves(m.position_embedding, weights);
    return nn::compute(m, compute).embed(tokens, positions);
  };
  const auto first_of = [first, compute](int64_t layer, const Arrays& weights) {
    return nn::compute(tree_with_leaves(first[static_cast<size_t>(layer)], weights), compute);
  };
  f.project = [o = options, top, first_of](int64_t layer, const Arrays& weights, const Array& tokens,
                                           const Array& x, const Array& positions) {
    LayerInputs in = top.inputs(positions);
    in.tokens = tokens;
    const Projected out = run_projections(o, o.layer(layer), first_of(layer, weights), x, in);
    return Arrays{out.q, out.k, out.v};
  };
  f.attend = [o = options, first_of](int64_t layer, const Arrays& weights, const Array& q, const Array& keys,
                                     const Array& values, const Array& start) {
    LayerInputs in;
    in.start = start;
    return run_attention(o, o.layer(layer), first_of(layer, weights), q, keys, values, in);
  };
  if (!options.released())
    f.attend_pages = [o = options, first_of](int64_t layer, const Arrays& weights, const Arrays& qkv,
                                             const LayerFunctions::Paged& cache) {
      return run_paged_attention(o, o.layer(layer), first_of(layer, weights), qkv, cache);
    };
  f.after_attention = [o = options, first_of](int64_t layer, const Arrays& weights, const Array& x,
                                              const Array& attended) {
    const DecoderBlock b = first_of(layer, weights);
    const AfterAttention after = run_after_attention(o, b, x, attended);
    Arrays out{after.h, after.mlp_in};
    if (b.moe.router.weight.valid()) {
      const nn::Routed routed = run_router(b, after.mlp_in);
      out.insert(out.end(), {routed.expert, routed.gate});
    }
    return out;
  };
  f.chosen = [o = options, second, compute](int64_t layer, const Arrays& weights, const Arrays& in) {
    const DecoderBlock b =
        nn::compute(tree_with_leaves(second[static_cast<size_t>(layer)], weights), compute);
    nn::Routed routed;
    if (in.size() > 2) {
      routed.expert = in[2];
      routed.gate = in[3];
    }
    return run_chosen(o, b, {in[0], in[1]}, routed, compute.dtype);
  };
  f.normed = [n = norm, compute](const Arrays& weights, const Array& x) {
    const Array h = nn::compute(tree_with_leaves(n, weights), compute)(x);
    return cast(cast(h, compute.dtype), DType::f32);
  };
  f.head = [top_head, compute](const Arrays& weights, const Array& x) {
    return nn::compute(tree_with_leaves(top_head, weights), compute).head_logits(x);
  };
  return f;
}

LayerFunctions decoder_by_layer(const DecoderOptions& options, int64_t vocab, const nn::Precision& compute,
                                const std::optional<nn::LoraSpec>& lora,
                                const std::vector<std::string>& paths) {
  Decoder like;  // the structure: its values are never used
  std::vector<nn::AdaptedMatrix> matrices;
  trace_program("structure", {Shape{DType::u32, {{"word", 2}}}}, [&](const Arrays& in) {
    like = Decoder::init(options, vocab, in[0]);
    if (lora) like = nn::with_lora(std::move(like), *lora, in[0], matrices);
    return tree_leaves(like);
  });
  return like.by_layer(compute, paths);
}

}  // namespace ostro::models
