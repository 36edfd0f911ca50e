// The `optimizer:` section.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::optim {

enum class LrSchedule { kConstant, kCosine, kLinear, kInvSqrt };
std::vector<std::string> option_names(LrSchedule);  // constant, cosine, linear, inv_sqrt

// Learning rate: `warmup` steps up from 0, then `lr_schedule` over the rest of the run. With `decay` set the
// rate stays constant until the last `decay` steps and only these follow lr_schedule (warmup-stable-decay).
struct AdamOptions {
  static constexpr const char* kType = "adam";

  double learning_rate = 6e-4;
  double weight_decay = 0.1;
  std::optional<std::vector<std::string>> weight_decay_modules;  // null: all but norms, embeddings, biases
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  std::optional<double> max_grad_norm = 1.0;
  LrSchedule lr_schedule = LrSchedule::kCosine;
  double warmup = 0.01;         // <= 1: fraction of the run, > 1: steps
  std::optional<double> decay;  // likewise
  double min_lr_ratio = 0.1;

  void visit_options(config::OptionTable& table);
  // Checks all values, and that warm-up and decay fit into a run of that many steps.
  Status validate(int64_t num_train_steps) const;
};

using OptimizerOptions = std::variant<AdamOptions>;

// The number of steps that an option means. A value > 1 is a number of steps. A value <= 1 is a fraction of
// the run, rounded down to whole steps: 0.29 of 100 steps are 29.
int64_t steps_of(double fraction_or_steps, int64_t num_train_steps);

}  // namespace ostro::optim
