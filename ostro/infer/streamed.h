// Text generation with a model that may be larger than memory. All sequences go through a layer together, so
// that each weight is read once for all of them; of a mixture only the experts that some token goes to are
// read. The weights that every token reads of the next layer are read while this one's experts run. The same
// bits as Generator (numerics.md N16).
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

// Tokens, how many of them went through the model, and keys and values of these, per layer.
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

  // Runs what is not fed yet of some sequences. Gives f32 logits [pos, vocab]: a row for the last token of
  // each.
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
  // What every token reads of one layer; in `chosen` experts are empty.
  struct LayerWeights {
    Buffers attention, chosen;
  };

  // Runs the program of that name, which `traced` makes for inputs of these shapes.
  Result<Buffers> run(const std::string& name, Buffers inputs, const std::vector<int64_t>& donate,
                      const std::function<Arrays(const Arrays&)>& traced);
  // Behind the last layer comes the head, as `chosen`.
  Result<LayerWeights> read_layer(int64_t layer);
  Result<runtime::Buffer> embed(const Sequence& sequence);
  // h, mlp_in, and of a mixture expert and gate.
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
