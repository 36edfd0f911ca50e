// The `objective:` section of a configuration: the loss that training minimises.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::train {

// Minus the log-probability of every token that counts.
struct NextTokenObjective {
  static constexpr const char* kType = "next_token";
  void visit_options(config::OptionTable&) {}
  Status validate() const { return {}; }
};

// How a pair's loss follows from its margin, with TRL's names (docs/spec/numerics.md, N17).
enum class PairLossType { kSigmoid, kSigmoidNorm, kIpo, kHinge, kRobust };
std::vector<std::string> option_names(PairLossType);

// Direct preference optimisation (arXiv 2305.18290): of two answers, the log-probability of the chosen one is
// to rise above that of the other, both measured from the weights that the run began with.
struct DpoObjective {
  static constexpr const char* kType = "dpo";
  PairLossType loss_type = PairLossType::kSigmoid;
  double beta = 0.1;
  double label_smoothing = 0;
  void visit_options(config::OptionTable& table);
  Status validate() const;
};

using ObjectiveOptions = std::variant<NextTokenObjective, DpoObjective>;

// Null: the objective is another one.
inline const DpoObjective* dpo_objective(const ObjectiveOptions& options) {
  return std::get_if<DpoObjective>(&options);
}

}  // namespace ostro::train
