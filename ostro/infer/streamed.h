// StreamedGenerator: text generation with a model that may be larger than memory. All sequences go through a
// layer together, so that each weight is read once for all of them; of a mixture only the experts that some
// token goes to are read. The other weights of the next layer are read while the experts of this one run. The
// results have the same bits as Generator's (numerics.md N16).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/infer/generator.h"
#include "ostro/infer/weight_store.h"
#include "ostro/models/layer_functions.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

// Tokens, the number of them that went through the model, and the keys and values of these, per layer.
struct Sequence {
  std::vector<int32_t> tokens;
  size_t fed = 0;
  std::vector<std::pair<runtime::Buffer, runtime::Buffer>> cache;
};

// Not thread-safe. Store and engine must outlive it.
class StreamedGenerator {
 public:
  // `max_length`: positions of a sequence at most; an error when it is below 2.
  static Result<std::unique_ptr<StreamedGenerator>> create(models::LayerFunctions layers,
                                                           WeightStore& weights, runtime::Engine& engine,
                                                           int64_t max_length);

  // Runs the tokens of some sequences that are not fed yet. Returns f32 logits [pos, vocab]: a row for the
  // last token of each sequence.
  Result<runtime::Buffer> sweep(const std::vector<Sequence*>& sequences);

  // New tokens of each prompt, as Generator::generate makes them of it alone. `on_token` is called with the
  // number of the prompt; it returns false to stop all. `on_layer` is called when a layer of a sweep is done.
  Result<std::vector<std::vector<int32_t>>> generate(
      const std::vector<std::vector<int32_t>>& prompts, const SampleOptions& options,
      const std::function<bool(size_t prompt, int32_t token)>& on_token = {},
      const std::function<void(int64_t layer)>& on_layer = {});

 private:
  StreamedGenerator(models::LayerFunctions layers, WeightStore& weights, runtime::Engine& engine,
                    int64_t max_length);

  using Buffers = std::vector<runtime::Buffer>;
  // The weights of one layer that every token reads; the places of experts in `chosen` are empty.
  struct LayerWeights {
    Buffers attention, chosen;
  };

  // Runs the program of that name, which `traced` makes for inputs of these shapes.
  Result<Buffers> run(const std::string& name, Buffers inputs, const std::vector<int64_t>& donate,
                      const std::function<Arrays(const Arrays&)>& traced);
  // Reads the weights of a layer. The number after the last layer is the head; its weights are `chosen`.
  Result<LayerWeights> read_layer(int64_t layer);
  Result<runtime::Buffer> embed(const Sequence& sequence);
  // Runs the attention of one layer. Returns h and mlp_in, and for a mixture also expert and gate.
  Result<Buffers> attend(int64_t layer, Buffers weights, Sequence& sequence, runtime::Buffer x);
  // Reads the experts that `expert` [batch, pos, slot] names, in its first `rows` rows, into the places of
  // `weights` that are empty; then `expert` has their places.
  Status read_experts(int64_t layer, int64_t rows, runtime::Buffer& expert, Buffers& weights);

  models::LayerFunctions layers_;
  WeightStore& weights_;
  runtime::Engine& engine_;
  int64_t max_length_;
  ir::Shape cache_shape_;
  std::function<void(int64_t)> on_layer_;
  std::vector<std::pair<std::string, std::unique_ptr<runtime::Executable>>> programs_;
};

}  // namespace ostro::infer
