#include "ostro/optim/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ostro/optim/option_checks.h"

namespace ostro::optim {

using config::Effect;
using config::option_error;

constexpr const char* kSection = "optimizer";

std::vector<std::string> option_names(LrSchedule) { return {"constant", "cosine", "linear", "inv_sqrt"}; }

Status allowed(bool good, const std::string& section, const char* key, double value, const char* rule) {
  if (good) return {};
  return option_error(fmt::format("{}.{}", section, key), fmt::format("{} is not allowed; {}", value, rule));
}

Status allowed_decay(const std::string& section, const char* key, double value) {
  return allowed(value >= 0 && value < 1, section, key, value, "use 0 or more and less than 1");
}

Status allowed_positive(const std::string& section, const char* key, double value) {
  return allowed(value > 0, section, key, value, "use a positive number");
}

Status allowed_adam(const std::string& section, double beta1, double beta2, double epsilon) {
  config::Mistakes mistakes;
  mistakes.add(allowed_decay(section, "beta1", beta1));
  mistakes.add(allowed_decay(section, "beta2", beta2));
  mistakes.add(allowed_positive(section, "epsilon", epsilon));
  return mistakes.status();
}

void CommonOptions::visit_rate(config::OptionTable& t) {
  t.add(&learning_rate, "learning_rate", Effect::kBits, "", "highest learning rate");
  t.add(&weight_decay, "weight_decay", Effect::kBits, "",
        "decoupled weight decay (AdamW); it is multiplied by the learning rate");
  t.add(&weight_decay_modules, "weight_decay_modules", Effect::kBits, "globs",
        "parameter paths that decay (* matches any text); null: all but norms, embeddings and biases")
      .other("[\"*mlp*\"]");
}

void CommonOptions::visit_schedule(config::OptionTable& t, bool averages) {
  t.add(&max_grad_norm, "max_grad_norm", Effect::kBits, "",
        "gradients of a larger global norm are scaled down to it; null: never")
      .other("0.1");
  t.add(&lr_schedule, "lr_schedule", Effect::kBits, "", "how the learning rate falls after warm-up")
      .other("linear");
  t.add(&warmup, "warmup", Effect::kBits, "fraction or steps",
        "length of the linear rise from 0; a value up to 1 is a fraction of the run, a larger one steps")
      .other("0.2");
  t.add(&decay, "decay", Effect::kBits, "fraction or steps",
        "length of the final decay; before it the rate is constant (warmup-stable-decay); null: all steps "
        "after warm-up")
      .other("0.2");
  t.add(&min_lr_ratio, "min_lr_ratio", Effect::kBits, "", "lowest learning rate as a share of learning_rate");
  t.add(&cycles, "cycles", Effect::kBits, "",
        "repeat warm-up, constant rate and decay so many times in the run; null: once")
      .other("2")
      .since_default("null");
  t.add(&cycle_length, "cycle_length", Effect::kBits, "fraction or steps",
        "or repeat them in cycles of this length; the last may be shorter")
      .other("0.5")
      .since_default("null");
  t.add(&rewarmup, "rewarmup", Effect::kBits, "fraction or steps",
        "length of the linear rise at the start of the second cycle and later ones, from the rate at the end "
        "of the last; a value up to 1 is a fraction of the cycle")
      .other("2")
      .beside({{"optimizer.cycles", "2"}})
      .since_default("0.0");
  t.add(&schedule_from, "schedule_from", Effect::kBits, "step",
        "the schedule counts from this step: warm-up, cycles and decay are those of a run that begins there; "
        "steps before it have its first rate")
      .other("2")
      .since_default("0");
  t.add(&warmup_from, "warmup_from", Effect::kBits, "",
        "learning rate at which the first warm-up begins, for a stage that goes on from the rate it finds")
      .other("0.0003")
      .beside({{"optimizer.warmup", "2"}})
      .since_default("0.0");
  t.add(&groups, "groups", Effect::kBits, "", "parameters with values of their own, by name of the group")
      .other("{mlp: {parameters: [\"*mlp*\"], lr_multiplier: 0.5}}")
      .since_default("{}");
  if (averages)
    t.refuse("ema_beta", "this optimizer keeps a mean of the weights by itself");
  else
    t.add(&ema_beta, "ema_beta", Effect::kBits, "",
          "keep a mean of the weights that decays by this in every step, for evaluation and export; null: "
          "none")
        .other("0.9")
        .since_default("null")
        .fixed("the kept arrays follow from it");
  t.add(&skip_bad_steps, "skip_bad_steps", Effect::kBits, "",
        "leave weights as they are in a step whose loss is far above the losses of the steps before")
      .beside({{"optimizer.skip_window", "2"}, {"optimizer.skip_sigma", "0.001"}})
      .since_default("false");
  t.add(
       &skip_window, "skip_window", Effect::kBits, "steps",
       "steps before this one that skip_bad_steps looks at; nothing is skipped before there are half as many")
      .other("4")
      .beside({{"optimizer.skip_bad_steps", "true"},
               {"optimizer.skip_window", "2"},
               {"optimizer.learning_rate", "1"},
               {"optimizer.skip_sigma", "0.001"}})
      .since_default("128");
  t.add(&skip_sigma, "skip_sigma", Effect::kBits, "",
        "how many standard deviations above the mean of these steps are far")
      .other("0.001")
      .beside({{"optimizer.skip_bad_steps", "true"},
               {"optimizer.skip_window", "2"},
               {"optimizer.learning_rate", "1"}})
      .since_default("6.0");
}

void GroupOptions::visit_options(config::OptionTable& t) {
  t.add(&parameters, "parameters", Effect::kBits, "globs",
        "paths of the group's parameters (* matches any text)")
      .other("[\"*mlp*\"]");
  t.add(&lr_multiplier, "lr_multiplier", Effect::kBits, "",
        "their learning rate is the optimizer's times this")
      .other("0.5");
  t.add(&weight_decay, "weight_decay", Effect::kBits, "",
        "their weight decay, whatever weight_decay_modules says; null: the optimizer's")
      .other("0.5");
  t.add(&max_grad_norm, "max_grad_norm", Effect::kBits, "",
        "they are clipped by the norm of their own gradients, and count no more for the others; null: with "
        "these")
      .other("0.1");
  t.add(&learning_rate, "learning_rate", Effect::kBits, "",
        "their highest learning rate; null: the optimizer's")
      .other("0.01");
  t.section(&optimizer, "optimizer", "the rule that updates them; same: the optimizer's");
}

namespace {

bool is_length(double v) { return v >= 0 && (v <= 1 || (v == std::floor(v) && v < 9e15)); }

Status check_groups(const CommonOptions& o) {
  config::Mistakes mistakes;
  size_t clipped = 0;
  for (const auto& [name, group] : o.groups) {
    const std::string key = "optimizer.groups." + name;
    if (name.empty() || name == "others")
      mistakes.add(option_error(key, fmt::format("\"{}\" cannot name a group; give it another name", name)));
    if (group.parameters.empty())
      mistakes.add(option_error(key + ".parameters", "is empty; list globs of parameter paths"));
    const auto check = [&](const char* name, std::optional<double> value, bool good, const char* rule) {
      if (value) mistakes.add(allowed(good, key, name, *value, rule));
    };
    check("lr_multiplier", group.lr_multiplier, group.lr_multiplier >= 0, "use 0 or more");
    check("weight_decay", group.weight_decay, group.weight_decay >= 0.0, "use 0 or more, or null");
    check("max_grad_norm", group.max_grad_norm, group.max_grad_norm > 0.0, "use a positive number or null");
    check("learning_rate", group.learning_rate, group.learning_rate > 0.0, "use a positive number or null");
    mistakes.add(std::visit([&](const auto& rule) { return rule.validate_rule(key + ".optimizer"); },
                            group.optimizer));
    if (o.ema_beta && std::holds_alternative<ScheduleFreeRule>(group.optimizer))
      mistakes.add(option_error(key + ".optimizer",
                                fmt::format("schedule_free keeps a mean of the weights by itself, and "
                                            "optimizer.ema_beta is {}: set one of them to another value",
                                            *o.ema_beta)));
    clipped += group.max_grad_norm.has_value();
  }
  if (clipped >= kMostClipSets)
    mistakes.add(option_error(
        "optimizer.groups",
        fmt::format("{} groups have a max_grad_norm; at most {} can", clipped, kMostClipSets - 1)));
  return mistakes.status();
}

// `steps`: of the schedule.
Status check_cycles(const CommonOptions& o, int64_t steps) {
  if (o.cycles && o.cycle_length)
    return option_error("optimizer.cycles",
                        fmt::format("is {}, and optimizer.cycle_length is {}: set one of them to null",
                                    *o.cycles, *o.cycle_length));
  if (o.cycles)
    RETURN_IF_ERROR(
        allowed(*o.cycles >= 1 && *o.cycles <= steps, kSection, "cycles", static_cast<double>(*o.cycles),
                o.schedule_from == 0 ? "use 1 to trainer.num_train_steps, or null"
                                     : "use 1 to the steps from optimizer.schedule_from on, or null"));
  if (o.cycle_length)
    RETURN_IF_ERROR(
        allowed(is_length(*o.cycle_length) && steps_of(*o.cycle_length, steps) >= 1, kSection, "cycle_length",
                *o.cycle_length,
                "use a fraction above 0 to 1 that is a step at least, a whole number of steps, or null"));
  return allowed(is_length(o.rewarmup), kSection, "rewarmup", o.rewarmup,
                 "use a fraction from 0 to 1 or a whole number of steps");
}

// Where the schedule begins, and at which rate.
Status check_stage(const CommonOptions& o, int64_t num_train_steps) {
  config::Mistakes mistakes;
  if (o.schedule_from < 0 || (num_train_steps > 0 && o.schedule_from >= num_train_steps))
    mistakes.add(option_error(
        "optimizer.schedule_from",
        fmt::format("{} is no step of a run of {} (trainer.num_train_steps); use 0 to {}", o.schedule_from,
                    num_train_steps, std::max<int64_t>(num_train_steps - 1, 0))));
  mistakes.add(allowed(o.warmup_from >= 0 && std::isfinite(o.warmup_from), kSection, "warmup_from",
                       o.warmup_from, "use a learning rate of 0 or more"));
  return mistakes.status();
}

// The steps of the first warm-up.
int64_t first_warmup(const CommonOptions& o, const std::vector<int64_t>& bounds) {
  return steps_of(o.warmup, bounds[1] - bounds[0]);
}

}  // namespace

std::vector<int64_t> cycle_bounds(const CommonOptions& o, int64_t n) {
  std::vector<int64_t> bounds;
  if (o.cycle_length)
    for (int64_t at = 0; at < n; at += steps_of(*o.cycle_length, n)) bounds.push_back(at);
  else
    for (int64_t i = 0, count = o.cycles.value_or(1); i < count; ++i) bounds.push_back(n * i / count);
  bounds.push_back(n);
  return bounds;
}

Status CommonOptions::validate_common(int64_t num_train_steps) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_positive(kSection, "learning_rate", learning_rate));
  mistakes.add(allowed(weight_decay >= 0, kSection, "weight_decay", weight_decay, "use 0 or more"));
  if (max_grad_norm)
    mistakes.add(allowed(*max_grad_norm > 0, kSection, "max_grad_norm", *max_grad_norm,
                         "use a positive number or null"));
  mistakes.add(
      allowed(min_lr_ratio >= 0 && min_lr_ratio <= 1, kSection, "min_lr_ratio", min_lr_ratio, "use 0 to 1"));
  mistakes.add(allowed(is_length(warmup), kSection, "warmup", warmup,
                       "use a fraction from 0 to 1 or a whole number of steps"));
  if (decay)
    mistakes.add(allowed(is_length(*decay), kSection, "decay", *decay,
                         "use a fraction from 0 to 1, a whole number of steps, or null"));
  const bool begins = mistakes.add(check_stage(*this, num_train_steps));
  const int64_t steps = num_train_steps - (begins ? schedule_from : 0);
  const bool cuts = mistakes.add(check_cycles(*this, steps)) && begins && num_train_steps > 0 &&
                    is_length(warmup) && (!decay || is_length(*decay));
  const std::vector<int64_t> bounds = cuts ? cycle_bounds(*this, steps) : std::vector<int64_t>{0};
  if (cuts && warmup_from > 0 && first_warmup(*this, bounds) == 0)
    mistakes.add(option_error(
        "optimizer.warmup_from",
        fmt::format("is {}, but no step warms up: optimizer.warmup {} of {} steps is 0 steps; raise it, or "
                    "leave warmup_from out",
                    warmup_from, warmup, bounds[1])));
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    // The last of cycles of a given length may be cut off.
    if (cycle_length && i > 0 && i + 2 == bounds.size()) break;
    const int64_t n = bounds[i + 1] - bounds[i], up = steps_of(i == 0 ? warmup : rewarmup, n),
                  down = decay ? steps_of(*decay, n) : 0;
    if (up > n - down)
      mistakes.add(option_error(
          i == 0 ? "optimizer.warmup" : "optimizer.rewarmup",
          fmt::format("{} steps of warm-up and {} of decay do not fit into {}, which is {}", up, down,
                      bounds.size() > 2    ? "a cycle"
                      : schedule_from == 0 ? "trainer.num_train_steps"
                                           : "the run from optimizer.schedule_from on",
                      n)));
  }
  mistakes.add(allowed(skip_window >= 2 && skip_window <= 100000, kSection, "skip_window",
                       static_cast<double>(skip_window), "use 2 to 100000"));
  mistakes.add(allowed_positive(kSection, "skip_sigma", skip_sigma));
  if (ema_beta) mistakes.add(allowed_decay(kSection, "ema_beta", *ema_beta));
  mistakes.add(check_groups(*this));
  return mistakes.status();
}

int64_t steps_of(double fraction_or_steps, int64_t num_train_steps) {
  if (fraction_or_steps > 1) return static_cast<int64_t>(fraction_or_steps);
  // Do not simply truncate the product: the double nearest to 0.29 is below 0.29, and would give 28 of 100
  // steps.
  const auto n = static_cast<double>(num_train_steps);
  auto steps = static_cast<int64_t>(fraction_or_steps * n) + 1;
  while (steps > 0 && static_cast<double>(steps) / n > fraction_or_steps) --steps;
  return steps;
}

}  // namespace ostro::optim
