// ResidentWeights, as_read: the weights of a model that are all in memory, as a runner that goes layer by
// layer reads them.
#pragma once

#include <span>
#include <vector>

#include "ostro/models/layer_functions.h"
#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// Parameter k of a model as its programs read it: a f32 one that they read in bf16 is in bf16.
Result<runtime::Buffer> as_read(const models::LayerFunctions& layers, size_t k, runtime::Buffer value);

// A layer's weights are views of parameters that have all layers. A parameter is held in the dtype in which
// it is read: f32 that products read in bf16 is rounded once here, not for every token (the same bits,
// numerics.md N1). Thread-safe.
class ResidentWeights {
 public:
  // `parameters` in the order of the model's paths; they are moved to `memory`.
  static Result<ResidentWeights> create(const models::LayerFunctions& layers,
                                        std::vector<runtime::Buffer> parameters, runtime::Memory& memory);

  const runtime::Buffer& parameter(size_t k) const { return parameters_[k]; }
  // The weights of `reads`, in this order, those that are by_expert with all experts.
  std::vector<runtime::Buffer> whole(std::span<const models::WeightRead> reads) const;

 private:
  explicit ResidentWeights(std::vector<runtime::Buffer> parameters) : parameters_(std::move(parameters)) {}

  std::vector<runtime::Buffer> parameters_;
};

}  // namespace ostro::infer
