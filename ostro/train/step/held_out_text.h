// HeldOutText: the held-out text of a configuration in batches, and the mean of their losses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/batches/loader/eval_loader.h"
#include "ostro/runtime/buffer.h"
#include "ostro/train/options/config.h"
#include "ostro/train/programs/leaf_io.h"

namespace ostro::train {

// Figures of preference pairs, over those that count.
struct PairFigures {
  double accuracy = 0;  // share of pairs whose chosen answer gained more than the other
  double margin = 0;    // mean reward margin (numerics.md N17)
};

// The loss of one data component.
struct HeldOutPart {
  std::string component;
  double loss = 0;                      // nats per token, without z-loss
  std::optional<double> bits_per_byte;  // only if every token of its text counts in the loss
  double tokens = 0;                    // sum of the loss weights: the tokens that count, or the pairs
  std::optional<PairFigures> pairs = {};
};
struct HeldOutLoss {
  double loss = 0;                      // nats per token, over all components
  std::optional<double> bits_per_byte;  // over the components that have a value
  double tokens = 0;                    // tokens that counted; 0: `loss` has no meaning
  // One entry per component with tokens that count. Empty for a configuration without components.
  std::vector<HeldOutPart> parts;
  std::optional<PairFigures> pairs = {};
  std::vector<std::string> uncounted;  // components whose held-out text has no token that counts
};

// "the held-out text of component web has no token that counts; ...". `loss.uncounted` must not be empty.
std::string uncounted_text(const HeldOutLoss& loss);

// The results of the evaluation program for a batch.
struct BatchLoss {
  double loss_sum = 0, weight = 0;
  double correct = 0, margin = 0;  // for pairs: sums (measure_names)
};
Result<BatchLoss> batch_loss(const LossSums<runtime::Buffer>& sums);

// A value; copies share the store's files.
class HeldOutText {
 public:
  // Errors: there is no held-out text (as batches::EvalLoader::create).
  static Result<HeldOutText> create(const TrainConfig& config, const batches::DataSet& stores);

  // Batches of all components, one component after another.
  int64_t batches() const { return batches_; }
  Result<batches::Batch> batch(int64_t i) const;
  // The mean over all batches, in their order, with sums in f64. Text without a token that counts is not an
  // error here: see HeldOutLoss::uncounted.
  HeldOutLoss loss(const std::vector<BatchLoss>& batches) const;

 private:
  std::vector<batches::EvalLoader> loaders_;  // at least one
  int64_t batches_ = 0;
  bool is_pairs_ = false;
};

}  // namespace ostro::train
