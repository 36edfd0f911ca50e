// LayerFunctions: a model as parts that run one after the other, for programs that do not have all weights in
// memory: the embedding, each layer in two halves with the choice of experts between them, the head. The
// results have the bits of ModelFunctions::decode.
#pragma once

#include <functional>
#include <vector>

#include "ostro/trace/control.h"

namespace ostro::models {

// A parameter, or the part of it that is read; in the order of ModelFunctions::paths.
struct WeightRead {
  size_t parameter = 0;
  int64_t layer = -1;  // only this index of its leading axis "layers", which the part does not see; -1: all
  // True: the leading axis of the read array is "experts", and only those that some token goes to are needed.
  bool by_expert = false;
  auto operator<=>(const WeightRead&) const = default;
};

// The functions are called while tracing; `weights` are the arrays of the reads, in their order. x, h and
// mlp_in are [batch, pos, embed], tokens i32 [batch, pos], caches [batch, key_pos, kv_heads, head_dim], start
// is an i32 scalar.
struct LayerFunctions {
  int64_t experts = 0, experts_per_token = 0;  // 0: no mixture
  std::vector<int64_t> kind;                   // of each layer: those of one kind have the same two functions

  size_t embedding = 0;  // the parameter [vocab, embed] of which `embed` reads the tokens' rows
  std::vector<WeightRead> embed_reads;  // its other parameters
  std::vector<WeightRead> head_reads;
  std::vector<std::vector<WeightRead>> attention_reads, chosen_reads;  // of each layer

  // An empty cache of keys, or of values, of one layer.
  std::function<Array(int64_t batch, int64_t length)> cache;
  // `rows` [vocab, embed] are some rows of the embedding, `tokens` i32 [batch, pos] are indices of them.
  // Returns x.
  std::function<Array(const Array& rows, const Arrays& weights, const Array& tokens, const Array& start)>
      embed;
  // Returns the cache of keys, that of values, h, mlp_in, and of a mixture expert i32 and gate f32 [batch,
  // pos, slot].
  std::function<Arrays(int64_t layer, const Arrays& weights, const Array& tokens, const Array& x,
                       const Array& keys, const Array& values, const Array& start)>
      attention;
  // `in`: h, mlp_in, and of a mixture expert and gate; `expert` has indices of the experts in `weights`.
  // Returns x of the next layer.
  std::function<Array(int64_t layer, const Arrays& weights, const Arrays& in)> chosen;
  // f32 logits [batch, pos, vocab].
  std::function<Array(const Arrays& weights, const Array& x)> head;
};

}  // namespace ostro::models
