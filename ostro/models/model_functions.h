// ModelFunctions: the trainer's view of a model: functions on lists of arrays. They are made from the model's
// struct. So a new model needs only two structs: its options, and one with `init(options, vocab, key)` and
// `loss(batch)` (examples/my_model).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/models/loss.h"
#include "ostro/nn/adapters.h"
#include "ostro/nn/matrix.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"

namespace ostro::models {

// Generation with a cache, one step at a time. Empty functions for models that cannot generate.
struct DecodeFunctions {
  // Cache arrays for `batch` rows of `length` positions.
  std::function<Arrays(int64_t batch, int64_t length)> cache;
  // (parameters, tokens i32 [batch, pos], cache, start i32) -> (f32 logits [batch, pos, vocab], cache).
  std::function<std::pair<Array, Arrays>(const Arrays&, const Array&, const Arrays&, const Array&)> step;
};

// All functions are called while tracing. Parameters are lists of leaves in the order of `paths`.
struct ModelFunctions {
  std::vector<std::string> paths;  // "model/layers/attention/qkv/weight"
  std::vector<Shape> shapes;
  std::vector<nn::Matrix> matrix_of;  // each parameter as a matrix, if it is one
  double width = 1;  // the model's width divided by that of the model whose learning rates are given (muP)
  // The number of trained parameters, which are the first ones (frozen.h). Nothing: all.
  std::optional<size_t> only_first;
  std::function<Arrays(const Array& key)> init;
  std::function<Loss(const Arrays&, const Batch&)> loss;  // parameters are read in the compute dtype
  DecodeFunctions decode;
  // The matrices that can have adapters. `merged` returns the parameters, f32, of a model without adapters
  // that has the same results, up to rounding, in the order of a model that never had any.
  std::vector<nn::AdaptedMatrix> matrices;
  std::function<Arrays(const Arrays&)> merged;

  size_t trained() const { return only_first.value_or(paths.size()); }
};

// Returns the functions of model `M`, which has init(options, vocab, key), loss(batch) and, if it can
// generate, cache() and decode(). `vocab` is the number of tokens of the tokenizer. `compute` has the dtype
// in which parameters are read. With `lora` the model has adapters. Call it outside any trace; it throws the
// TraceError of M::init.
template <typename M, typename Options>
ModelFunctions model_functions(const Options& options, int64_t vocab, const nn::Precision& compute,
                               const std::optional<nn::LoraSpec>& lora = {}) {
  // The structure of the model: traced once, its values are never used.
  auto like = std::make_shared<M>();
  auto matrices = std::make_shared<std::vector<nn::AdaptedMatrix>>();
  ModelFunctions f;
  const auto make = [options, vocab, lora, matrices](const Array& key) {
    M model = M::init(options, vocab, key);
    return lora ? nn::with_lora(std::move(model), *lora, key, *matrices) : model;
  };
  f.init = [make](const Array& key) { return tree_leaves(make(key)); };
  trace_program("structure", {Shape{DType::u32, {{"word", 2}}}}, [&](const Arrays& in) {
    *like = make(in[0]);
    return tree_leaves(*like);
  });
  f.matrices = *matrices;
  f.merged = [like](const Arrays& leaves) {
    const M model = tree_map(tree_with_leaves(*like, leaves),
                             [](const std::string&, const Array& a) { return cast(a, DType::f32); });
    return tree_leaves(nn::without_lora(model));
  };
  for_each_leaf(*like, [&](const std::string& path, const Array& a) {
    f.paths.push_back("model/" + path);
    f.shapes.push_back(a.shape());
  });
  nn::add_matrices(*like, f.matrix_of);
  // Adapters begin at another scale, and have rates of their own.
  if constexpr (requires { options.width_ratio(); }) f.width = lora ? 1 : options.width_ratio();
  f.loss = [like, compute](const Arrays& leaves, const Batch& batch) {
    return nn::compute(tree_with_leaves(*like, leaves), compute, batch.draws).loss(batch);
  };
  if constexpr (requires(const M& m, const Array& a) { m.decode(a, m.cache(1, 1, DType::f32), a); }) {
    f.decode.cache = [like, compute](int64_t batch, int64_t length) {
      return tree_leaves(like->cache(batch, length, compute.dtype));
    };
    f.decode.step = [like, compute](const Arrays& leaves, const Array& tokens, const Arrays& cache,
                                    const Array& start) {
      using Cache = decltype(like->cache(1, 1, compute.dtype));
      Cache structure;
      trace_program("cache", {}, [&](const Arrays&) {
        structure = like->cache(1, 1, compute.dtype);
        return Arrays{};
      });
      auto [logits, filled] = nn::compute(tree_with_leaves(*like, leaves), compute)
                                  .decode(tokens, tree_with_leaves(structure, cache), start);
      return std::pair<Array, Arrays>(logits, tree_leaves(filled));
    };
  }
  return f;
}

}  // namespace ostro::models
