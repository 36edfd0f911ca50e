// ResidentWeights, as_read, narrowed: the weights of a model that are all in memory, as a runner that goes
// layer by layer reads them.
#pragma once

#include <map>
#include <span>
#include <stop_token>
#include <vector>

#include "ostro/infer/weights/cut_weights.h"
#include "ostro/infer/weights/weight_panels.h"
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
// integers alone. Those that only products read, and that no other handle holds, are put into the panels
// that the engine reads fastest (weight_panels.h): at once; or, where some are mapped files, which are there
// without a copy, when moved() and take() are called. Thread-safe but for take().
class ResidentWeights {
 public:
  // `parameters` in the order of the model's paths; they are moved to the engine's memory.
  static Result<ResidentWeights> create(const models::LayerFunctions& layers,
                                        std::vector<runtime::Buffer> parameters, runtime::Engine& engine);

  const runtime::Buffer& parameter(size_t k) const { return parameters_[k]; }
  // The weights of `reads`, in this order, those that are by_expert with all experts. In place of one that is
  // held as integers alone: these integers. Those in panels have their shape.
  std::vector<runtime::Buffer> whole(std::span<const models::WeightRead> reads) const;
  // The shape of a weight before integers were cut from it, and before it was put into panels.
  ir::Shape shape(const models::WeightRead& read) const;
  bool is_cut(const models::WeightRead& read) const { return cut_.contains(read); }
  // The panels in which this weight is, or will be; nothing: it stays in order.
  const std::optional<WeightPanels>& panels(const models::WeightRead& read) const {
    return panels_[read.parameter];
  }
  bool may_move() const;  // weights that are still in order
  int64_t bytes_to_move() const;
  bool is_in_panels() const { return is_in_panels_; }
  // Copies of the parameters in panels, the others invalid; for take(). Empty: it was told to stop.
  std::vector<runtime::Buffer> moved(const std::stop_token& stop) const;
  void take(std::vector<runtime::Buffer> moved);
  const CutWeight& cut(const models::WeightRead& read) const { return cut_.at(read); }

 private:
  Status cut_integers(const models::LayerFunctions& layers, runtime::Engine& engine);
  Status plan_panels(const models::LayerFunctions& layers, runtime::Engine& engine);
  runtime::Buffer part(const models::WeightRead& read) const;

  std::vector<runtime::Buffer> parameters_;  // empty: held as integers alone
  std::vector<ir::Shape> shapes_;
  std::vector<std::optional<WeightPanels>> panels_;
  bool is_in_panels_ = false;
  std::map<models::WeightRead, CutWeight> cut_;
};

}  // namespace ostro::infer
