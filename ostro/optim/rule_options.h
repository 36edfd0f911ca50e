// AdamRule, MuonRule, ...: the options of each optimizer rule that other rules do not have
// (docs/reference/optimizers.md). Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::optim {

struct CommonOptions;

// Functions of these structs: set_defaults() changes the defaults of the common options for this rule.
// validate_rule() checks the values; errors name the key in `section`, which is "optimizer" or the section of
// a group.
struct AdamRule {
  static constexpr const char* kType = "adam";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  bool cautious = false;

  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

struct LionRule {
  static constexpr const char* kType = "lion";
  double beta1 = 0.9;
  double beta2 = 0.95;
  bool cautious = false;

  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

struct SgdRule {
  static constexpr const char* kType = "sgd";
  double momentum = 0.9;
  bool nesterov = false;

  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

struct AdafactorRule {
  static constexpr const char* kType = "adafactor";
  double decay_rate = 0.8;
  double epsilon = 1e-30;
  std::optional<double> clipping_threshold = 1.0;
  bool multiply_by_parameter_scale = true;
  int64_t min_dim_size_to_factor = 128;

  static void set_defaults(CommonOptions& common);
  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

// Newton-Schulz's products: f32, or operands rounded to bf16.
enum class NewtonSchulzDtype { kF32, kBf16 };
std::vector<std::string> option_names(NewtonSchulzDtype);  // f32, bf16

struct MuonRule {
  static constexpr const char* kType = "muon";
  double momentum = 0.95;
  bool nesterov = true;
  int64_t backend_steps = 5;
  NewtonSchulzDtype newton_schulz_dtype = NewtonSchulzDtype::kF32;
  double muon_epsilon = 1e-8;
  bool use_kimi_scaling = false;
  // options of AdamW, which updates the parameters that are no hidden matrix
  double adam_lr = 6e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  static void set_defaults(CommonOptions& common);
  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

// The options of the rules that keep Shampoo's factors (factors.h).
struct FactorOptions {
  double shampoo_beta = 0.95;
  int64_t precondition_frequency = 10;
  int64_t max_precond_dim = 1024;

 protected:
  void visit_factors(config::OptionTable& table);
  Status validate_factors(const std::string& section) const;
};

struct SoapRule : FactorOptions {
  static constexpr const char* kType = "soap";
  double beta1 = 0.95;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  static void set_defaults(CommonOptions& common);
  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

struct ShampooRule : FactorOptions {
  static constexpr const char* kType = "shampoo";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double ridge = 1e-3;

  static void set_defaults(CommonOptions& common);
  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

struct ScheduleFreeRule {
  static constexpr const char* kType = "schedule_free";
  static constexpr bool kAverages = true;  // the rule keeps means of the weights (optim::kAverage)
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;

  static void set_defaults(CommonOptions& common);
  void visit_options(config::OptionTable& table);
  Status validate_rule(const std::string& section) const;
};

// The rule of a group that uses the optimizer's own rule.
struct SameRule {
  static constexpr const char* kType = "same";

  void visit_options(config::OptionTable&) {}
  Status validate_rule(const std::string&) const { return {}; }
};

using AnyRule = std::variant<SameRule, AdamRule, LionRule, SgdRule, AdafactorRule, MuonRule, ScheduleFreeRule,
                             SoapRule, ShampooRule>;

}  // namespace ostro::optim
