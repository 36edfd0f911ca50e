// The `optimizer:` section.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::optim {

enum class LrSchedule { kConstant, kCosine, kLinear, kInvSqrt };
std::vector<std::string> option_names(LrSchedule);  // constant, cosine, linear, inv_sqrt

// Parameters with values of their own.
struct GroupOptions {
  std::vector<std::string> parameters;
  double lr_multiplier = 1;
  std::optional<double> weight_decay;
  std::optional<double> max_grad_norm;

  void visit_options(config::OptionTable& table);
};

// What every optimizer has: the learning rate, weight decay, clipping.
//
// Learning rate: `warmup` steps up from 0, then `lr_schedule` over the rest of the run. With `decay` set the
// rate stays constant until the last `decay` steps and only these follow lr_schedule (warmup-stable-decay).
// With cycles this happens in each of them, from the second on with `rewarmup` steps up from where the last
// one ended.
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
  std::map<std::string, GroupOptions> groups;
  std::optional<double> ema_beta;
  bool skip_bad_steps = false;
  int64_t skip_window = 128;
  double skip_sigma = 6;

  // Checks these values, and that warm-up and decay fit into a run of that many steps.
  Status validate_common(int64_t num_train_steps) const;

 protected:
  void visit_rate(config::OptionTable& table);      // before an optimizer's own options
  void visit_schedule(config::OptionTable& table);  // behind them
};

struct AdamOptions : CommonOptions {
  static constexpr const char* kType = "adam";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  bool cautious = false;

  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

struct LionOptions : CommonOptions {
  static constexpr const char* kType = "lion";
  double beta1 = 0.9;
  double beta2 = 0.95;
  bool cautious = false;

  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

struct SgdOptions : CommonOptions {
  static constexpr const char* kType = "sgd";
  double momentum = 0.9;
  bool nesterov = false;

  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

struct AdafactorOptions : CommonOptions {
  static constexpr const char* kType = "adafactor";
  double decay_rate = 0.8;
  double epsilon = 1e-30;
  std::optional<double> clipping_threshold = 1.0;
  bool multiply_by_parameter_scale = true;
  int64_t min_dim_size_to_factor = 128;

  AdafactorOptions() { learning_rate = 1e-2, weight_decay = 0; }
  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

// Newton-Schulz's products: f32, or operands rounded to bf16.
enum class NewtonSchulzDtype { kF32, kBf16 };
std::vector<std::string> option_names(NewtonSchulzDtype);  // f32, bf16

struct MuonOptions : CommonOptions {
  static constexpr const char* kType = "muon";
  double momentum = 0.95;
  bool nesterov = true;
  int64_t backend_steps = 5;
  NewtonSchulzDtype newton_schulz_dtype = NewtonSchulzDtype::kF32;
  double muon_epsilon = 1e-8;
  bool use_kimi_scaling = false;
  // AdamW of what is no matrix
  double adam_lr = 6e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  MuonOptions() { learning_rate = 0.02; }
  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

struct ScheduleFreeOptions : CommonOptions {
  static constexpr const char* kType = "schedule_free";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  ScheduleFreeOptions() { learning_rate = 2e-3, lr_schedule = LrSchedule::kConstant; }
  void visit_options(config::OptionTable& table);
  Status validate(int64_t num_train_steps) const;
};

using OptimizerOptions =
    std::variant<AdamOptions, LionOptions, SgdOptions, AdafactorOptions, MuonOptions, ScheduleFreeOptions>;

inline const CommonOptions& common(const OptimizerOptions& options) {
  return std::visit([](const auto& o) -> const CommonOptions& { return o; }, options);
}

// The first steps of the cycles of a run, and its length at the end: {0, n} without cycles.
std::vector<int64_t> cycle_bounds(const CommonOptions& options, int64_t num_train_steps);

// The number of steps that an option means. A value > 1 is a number of steps. A value <= 1 is a fraction of
// the run, rounded down to whole steps: 0.29 of 100 steps are 29.
int64_t steps_of(double fraction_or_steps, int64_t num_train_steps);

}  // namespace ostro::optim
