// Decoder: a decoder-only transformer, described by DecoderOptions: every family of families.h is this model.
//
// Casts: those of block.h. The embedding has the compute dtype; with a multiplier or learned positions the
// sum is made in f32 and cast once. The head gives f32 logits; bias, scaling and cap are in f32.
//
// Errors: TraceError for arrays whose axes or types do not fit.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ostro/models/decoder/block.h"
#include "ostro/models/layer_functions.h"
#include "ostro/models/loss.h"

namespace ostro::models {

// A learned vector for each position.
struct PositionTable {
  Array weight;  // [position, embed], or empty
  OSTRO_FIELDS(weight)
};

// Keys and values of past positions of all layers, in the same blocks as the layers of Decoder.
struct DecoderCache {
  std::vector<KeyValues> lead, layers, tail;
  OSTRO_FIELDS(lead, layers, tail)
};

// The layers of a model: one block when all are alike, else the blocks of one period. Every leaf has a
// leading axis "layers".
struct DecoderLayers {
  std::optional<DecoderBlock> alike;  // its paths have no number
  std::vector<DecoderBlock> period;
  static constexpr std::string_view ostro_field_names() { return ","; }  // neither adds to the path
  auto ostro_fields() { return std::tie(alike, period); }
  auto ostro_fields() const { return std::tie(alike, period); }

  std::vector<DecoderBlock> blocks() const { return alike ? std::vector{*alike} : period; }
};

// The model. Its functions are called while tracing.
struct Decoder {
  nn::Embedding embedding;
  PositionTable position_embedding;
  std::vector<DecoderBlock>
      lead;  // the first layers, where they are of another kind; their axis "layers" is 1
  DecoderLayers layers;
  std::vector<DecoderBlock> tail;  // the last layers, which fill no period; their axis "layers" is 1
  nn::Norm norm;
  nn::Linear head;  // [embed, vocab]; an empty weight when tied
  DecoderOptions options;
  OSTRO_FIELDS(embedding, position_embedding, lead, layers, tail, norm, head)
  auto ostro_statics() const { return std::tuple(options.signature()); }

  static constexpr const char* kLayersAxis = nn::kLayersAxis;

  // Returns random parameters, f32, a function of (options, vocab, key). `vocab`: the number of tokens of the
  // tokenizer; options.vocab_size may say more rows.
  static Decoder init(const DecoderOptions& options, int64_t vocab, const Array& key);

  // Returns f32 logits [batch, pos, vocab]. tokens and segments: i32 [batch, pos]; without segments a token
  // attends to the whole row before it.
  Array logits(const Array& tokens, const Array& segments = {}) const;
  // Returns the cross-entropy of each token, in nats, with z-loss and a mixture's losses added, and weights.
  Loss loss(const Batch& batch) const;
  // The block of layer i.
  const DecoderBlock& block(int64_t i) const;

  // Returns an empty cache for `batch` rows and `length` positions. `dtype` is that of attention.
  DecoderCache cache(int64_t batch, int64_t length, DType dtype) const;
  // One step of generation with the cache: tokens i32 [batch, pos] at positions start, start + 1, ... (start:
  // i32 scalar). Returns f32 logits [batch, pos, vocab] and the cache with the new keys and values added.
  // Each row has the same bits as in logits().
  std::pair<Array, DecoderCache> decode(const Array& tokens, const DecoderCache& cache,
                                        const Array& start) const;

  // The parts of decode(), for a model larger than memory (by_layer.cc), with parameters in the order of
  // `paths` that are read in `compute`.
  LayerFunctions by_layer(const nn::Precision& compute, const std::vector<std::string>& paths) const;

 private:
  // With `router_loss`: sets it to a mixture's part of each token's loss, f32 [batch, pos].
  Array logits(const Array& tokens, const Array& segments, Array* router_loss) const;
  LayerInputs inputs(const Array& positions) const;
  Array embed(const Array& tokens, const Array& positions) const;
  Array head_logits(const Array& x) const;
};

}  // namespace ostro::models
