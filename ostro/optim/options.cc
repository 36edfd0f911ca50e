#include "ostro/optim/options.h"

#include <fmt/core.h>

#include <cmath>

#include "ostro/optim/option_checks.h"

namespace ostro::optim {

using config::Effect;
using config::option_error;

std::vector<std::string> option_names(LrSchedule) { return {"constant", "cosine", "linear", "inv_sqrt"}; }

Status allowed(bool good, const char* key, double value, const char* rule) {
  if (good) return {};
  return option_error(fmt::format("optimizer.{}", key), fmt::format("{} is not allowed; {}", value, rule));
}

Status allowed_decay(const char* key, double value) {
  return allowed(value >= 0 && value < 1, key, value, "use 0 or more and less than 1");
}

void CommonOptions::visit_rate(config::OptionTable& t) {
  t.add(&learning_rate, "learning_rate", Effect::kBits, "", "highest learning rate");
  t.add(&weight_decay, "weight_decay", Effect::kBits, "",
        "decoupled weight decay (AdamW); it is multiplied by the learning rate");
  t.add(&weight_decay_modules, "weight_decay_modules", Effect::kBits, "globs",
        "parameter paths that decay (* matches any text); null: all but norms, embeddings and biases")
      .other("[\"*mlp*\"]");
}

void CommonOptions::visit_schedule(config::OptionTable& t) {
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
        "after "
        "warm-up")
      .other("0.2");
  t.add(&min_lr_ratio, "min_lr_ratio", Effect::kBits, "", "lowest learning rate as a share of learning_rate");
  t.refuse("warmup_ratio", "use optimizer.warmup, which is a fraction up to 1");
  t.refuse("cooldown", "use optimizer.decay, the length of the final fall");
}

Status CommonOptions::validate_common(int64_t num_train_steps) const {
  RETURN_IF_ERROR(allowed(learning_rate > 0, "learning_rate", learning_rate, "use a positive number"));
  RETURN_IF_ERROR(allowed(weight_decay >= 0, "weight_decay", weight_decay, "use 0 or more"));
  if (max_grad_norm)
    RETURN_IF_ERROR(
        allowed(*max_grad_norm > 0, "max_grad_norm", *max_grad_norm, "use a positive number or null"));
  RETURN_IF_ERROR(
      allowed(min_lr_ratio >= 0 && min_lr_ratio <= 1, "min_lr_ratio", min_lr_ratio, "use 0 to 1"));
  auto is_length = [](double v) { return v >= 0 && (v <= 1 || (v == std::floor(v) && v < 9e15)); };
  RETURN_IF_ERROR(
      allowed(is_length(warmup), "warmup", warmup, "use a fraction from 0 to 1 or a whole number of steps"));
  if (decay)
    RETURN_IF_ERROR(allowed(is_length(*decay), "decay", *decay,
                            "use a fraction from 0 to 1, a whole number of steps, or null"));
  const int64_t up = steps_of(warmup, num_train_steps), down = decay ? steps_of(*decay, num_train_steps) : 0;
  if (up > num_train_steps - down)
    return option_error(
        "optimizer.warmup",
        fmt::format("{} steps of warm-up and {} of decay do not fit into trainer.num_train_steps, "
                    "which is {}",
                    up, down, num_train_steps));
  return {};
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
