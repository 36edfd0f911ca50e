// OptimizerOptions: the `optimizer:` section of a configuration (docs/reference/optimizers.md). Values.
// Errors of the checks are kInvalidArgument, with the key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/optim/rule_options.h"

namespace ostro::optim {

enum class LrSchedule { kConstant, kCosine, kLinear, kInvSqrt };
std::vector<std::string> option_names(LrSchedule);  // constant, cosine, linear, inv_sqrt

// Parameters with values of their own.
struct GroupOptions {
  std::vector<std::string> parameters;
  double lr_multiplier = 1;
  std::optional<double> weight_decay;
  std::optional<double> max_grad_norm;
  std::optional<double> learning_rate;
  AnyRule optimizer;

  void visit_options(config::OptionTable& table);
};

// The options of every optimizer: the learning rate, weight decay, clipping.
//
// Learning rate: `warmup` steps up from `warmup_from`, then `lr_schedule` over the rest of the run. With
// `decay` set the rate stays constant until the last `decay` steps and only these follow lr_schedule
// (warmup-stable-decay). With cycles this happens in each of them; from the second on, `rewarmup` steps up
// begin at the last rate of the one before. All of it counts from step `schedule_from`, as in a run that
// begins there.
struct CommonOptions {
  double learning_rate = 6e-4;
  double weight_decay = 0.1;
  std::optional<std::vector<std::string>> weight_decay_modules;  // null: all but norms, embeddings, biases
  std::optional<double> max_grad_norm = 1.0;
  LrSchedule lr_schedule = LrSchedule::kCosine;
  double warmup = 0.01;         // <= 1: fraction of the run, > 1: steps
  std::optional<double> decay;  // likewise
  double min_lr_ratio = 0.1;
  std::optional<int64_t> cycles;
  std::optional<double> cycle_length;  // <= 1: fraction of the run, > 1: steps
  double rewarmup = 0;                 // <= 1: fraction of the cycle, > 1: steps
  int64_t schedule_from = 0;           // step, 0 <= schedule_from < num_train_steps
  double warmup_from = 0;              // learning rate
  std::map<std::string, GroupOptions> groups;
  std::optional<double> ema_beta;
  bool skip_bad_steps = false;
  int64_t skip_window = 128;
  double skip_sigma = 6;

  // Checks these values, and that warm-up and decay fit into the steps from `schedule_from` on of a run of
  // `num_train_steps`.
  Status validate_common(int64_t num_train_steps) const;

 protected:
  void visit_rate(config::OptionTable& table);                     // before an optimizer's own options
  void visit_schedule(config::OptionTable& table, bool averages);  // behind them
};

// A rule with the options of every optimizer.
template <typename Rule>
struct WithCommon : CommonOptions, Rule {
  WithCommon() {
    if constexpr (requires(CommonOptions& c) { Rule::set_defaults(c); }) Rule::set_defaults(*this);
  }
  void visit_options(config::OptionTable& table) {
    visit_rate(table);
    Rule::visit_options(table);
    visit_schedule(table, requires { Rule::kAverages; });
  }
  Status validate(int64_t num_train_steps) const {
    config::Mistakes mistakes;
    mistakes.add(Rule::validate_rule("optimizer"));
    mistakes.add(validate_common(num_train_steps));
    return mistakes.status();
  }
};
using AdamOptions = WithCommon<AdamRule>;
using LionOptions = WithCommon<LionRule>;
using SgdOptions = WithCommon<SgdRule>;
using AdafactorOptions = WithCommon<AdafactorRule>;
using MuonOptions = WithCommon<MuonRule>;
using ScheduleFreeOptions = WithCommon<ScheduleFreeRule>;
using SoapOptions = WithCommon<SoapRule>;
using ShampooOptions = WithCommon<ShampooRule>;

using OptimizerOptions = std::variant<AdamOptions, LionOptions, SgdOptions, AdafactorOptions, MuonOptions,
                                      ScheduleFreeOptions, SoapOptions, ShampooOptions>;

// The common options of any optimizer.
inline const CommonOptions& common(const OptimizerOptions& options) {
  return std::visit([](const auto& o) -> const CommonOptions& { return o; }, options);
}

// The first steps of the cycles of a schedule of `steps` steps, counted from its own first step, and its
// length at the end: {0, steps} without cycles.
std::vector<int64_t> cycle_bounds(const CommonOptions& options, int64_t steps);

// The number of steps that an option stands for. A value > 1 is a number of steps. A value <= 1 is a fraction
// of the run, rounded down to whole steps: 0.29 of 100 steps are 29.
int64_t steps_of(double fraction_or_steps, int64_t num_train_steps);

}  // namespace ostro::optim
