// ResidentWeights, as_read, narrowed: the weights of a model that are all in memory, as a runner that goes
// layer by layer reads them.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "ostro/infer/cut_weights.h"
#include "ostro/models/layer_functions.h"

namespace ostro::infer {

// Parameter k of a model as its programs read it: a f32 one that they read in bf16 is in bf16, unless
// integers are cut from it.
Result<runtime::Buffer> as_read(const models::LayerFunctions& layers, size_t k, runtime::Buffer value);

// A f32 array rounded to bf16, in memory of the host; another is given as it is.
Result<runtime::Buffer> narrowed(runtime::Buffer value);

// A layer's weights are views of parameters that have all layers. A parameter is held in the dtype in which
// it is read: f32 that products read in bf16 is rounded once here, not for every token (the same bits,
// numerics.md N1). Integers are cut once, too, and a parameter that is read for nothing else is held as
// integers alone. Thread-safe.
class ResidentWeights {
 public:
  // `parameters` in the order of the model's paths; they are moved to the engine's memory.
  static Result<ResidentWeights> create(const models::LayerFunctions& layers,
                                        std::vector<runtime::Buffer> parameters, runtime::Engine& engine);

  const runtime::Buffer& parameter(size_t k) const { return parameters_[k]; }
  // The weights of `reads`, in this order, those that are by_expert with all experts. In place of one that is
  // held as integers alone: these integers.
  std::vector<runtime::Buffer> whole(std::span<const models::WeightRead> reads) const;
  // The shape of a weight before integers were cut from it.
  ir::Shape shape(const models::WeightRead& read) const;
  bool is_cut(const models::WeightRead& read) const { return cut_.contains(read); }
  const CutWeight& cut(const models::WeightRead& read) const { return cut_.at(read); }

 private:
  Status cut_integers(const models::LayerFunctions& layers, runtime::Engine& engine);
  runtime::Buffer part(const models::WeightRead& read) const;

  std::vector<runtime::Buffer> parameters_;  // empty: held as integers alone
  std::vector<ir::Shape> shapes_;
  std::map<models::WeightRead, CutWeight> cut_;
};

}  // namespace ostro::infer
