// NextTokenObjective, DpoObjective: the `objective:` section of a configuration, which chooses the loss that
// training minimises.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::train {

// The loss is minus the log-probability of every token that counts.
struct NextTokenObjective {
  static constexpr const char* kType = "next_token";
  void visit_options(config::OptionTable&) {}
  Status validate() const { return {}; }
};

// The function that makes a pair's loss from its margin, with TRL's names (docs/spec/numerics.md, N17).
enum class PairLossType { kSigmoid, kSigmoidNorm, kIpo, kHinge, kRobust };
std::vector<std::string> option_names(PairLossType);

// Direct preference optimisation (arXiv 2305.18290). Of two answers to a prompt, one is preferred. The loss
// falls when its log-probability rises above that of the other one, each compared with its log-probability
// under the weights that the run began with.
struct DpoObjective {
  static constexpr const char* kType = "dpo";
  PairLossType loss_type = PairLossType::kSigmoid;
  double beta = 0.1;           // factor of the difference of log-probabilities; above 0
  double label_smoothing = 0;  // the share of pairs that may have the wrong order; at least 0, below 0.5
  void visit_options(config::OptionTable& table);
  // Error: kInvalidArgument with every value that is not allowed, or not with this loss_type.
  Status validate() const;
};

using ObjectiveOptions = std::variant<NextTokenObjective, DpoObjective>;

// The options of DPO; null when the objective is another one.
inline const DpoObjective* dpo_objective(const ObjectiveOptions& options) {
  return std::get_if<DpoObjective>(&options);
}

}  // namespace ostro::train
