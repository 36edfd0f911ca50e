// LayerFunctions: a model as parts that run one after the other, for rows of many sequences and for weights
// that are not all in memory: the embedding, each layer up to its keys and values, attention to a cache, the
// rest of the layer with the choice of experts in it, the head. The results have the bits of
// ModelFunctions::decode.
#pragma once

#include <functional>
#include <optional>
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
// mlp_in are [batch, pos, embed], tokens i32 [batch, pos], positions i32 [pos]: rows may be of several
// sequences, each at a position of its own.
struct LayerFunctions {
  // A cache in pages (paged_write, paged_attention): pools of keys [page, kv_heads, head_dim, slot] and of
  // values [page, kv_heads, slot, head_dim]; of each row i32 the place that it is written to [pos], the pages
  // of its sequence [pos, entry], and its position [pos]. place and position are negative for padding.
  struct Paged {
    Array keys, values, place, table, position;
  };

  // How integers are cut from a parameter for products (numerics.md N20), without its axis of layers.
  struct Integers {
    Axes over;
    int64_t block = 0;
    bool alone = true;  // nothing else is read of it
  };

  int64_t experts = 0, experts_per_token = 0;  // 0: no mixture
  std::vector<int64_t> kind;                   // of each layer: those of one kind have the same functions
  std::vector<bool> read_in_f32;               // of each parameter: whatever dtype products are computed in
  std::vector<std::optional<Integers>> integers;  // of each parameter; they are cut from f32 if it is held so
  DType dtype = DType::f32;                       // in which the others are read, if they are held in f32

  size_t embedding = 0;  // the parameter [vocab, embed] of which `embed` reads the tokens' rows
  std::vector<WeightRead> embed_reads;  // its other parameters
  std::vector<WeightRead> head_reads, norm_reads;
  std::vector<std::vector<WeightRead>> attention_reads, chosen_reads;  // of each layer

  // An empty cache of keys, or of values, of one layer: [batch, key_pos, kv_heads, head_dim].
  std::function<Array(int64_t batch, int64_t length)> cache;
  // `rows` [vocab, embed] are some rows of the embedding, `tokens` i32 [batch, pos] are indices of them.
  // Returns x.
  std::function<Array(const Array& rows, const Arrays& weights, const Array& tokens, const Array& positions)>
      embed;
  // Returns q [batch, pos, kv_heads, group, head_dim], and k and v [batch, pos, kv_heads, head_dim], which
  // the cache keeps.
  std::function<Arrays(int64_t layer, const Arrays& weights, const Array& tokens, const Array& x,
                       const Array& positions)>
      project;
  // Each query of q attends to the keys of its batch index up to its own position; `start`, i32 [batch], is
  // that of the first. Returns its values.
  std::function<Array(int64_t layer, const Arrays& weights, const Array& q, const Array& keys,
                      const Array& values, const Array& start)>
      attend;
  // The same with the cache in pages: writes k and v of the rows, and each row attends to its sequence up to
  // itself. The batch axis is 1. Returns attended values and both pools. Empty: this attention is not that of
  // numerics.md N9, and needs keys that lie side by side.
  std::function<Arrays(int64_t layer, const Arrays& weights, const Arrays& qkv, const Paged& cache)>
      attend_pages;
  // Returns h, mlp_in, and of a mixture expert i32 and gate f32 [batch, pos, slot].
  std::function<Arrays(int64_t layer, const Arrays& weights, const Array& x, const Array& attended)>
      after_attention;
  // `in`: h, mlp_in, and of a mixture expert and gate; `expert` has indices of the experts in `weights`.
  // Returns x of the next layer.
  std::function<Array(int64_t layer, const Arrays& weights, const Arrays& in)> chosen;
  // x behind the final norm, which the product of the head reads: f32 [batch, pos, embed], exact.
  std::function<Array(const Arrays& weights, const Array& x)> normed;
  // f32 logits [batch, pos, vocab].
  std::function<Array(const Arrays& weights, const Array& x)> head;
};

}  // namespace ostro::models
