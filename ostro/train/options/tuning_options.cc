#include "ostro/train/options/tuning_options.h"

#include <fmt/format.h>

#include <cmath>

namespace ostro::train {

using config::Effect;
using config::option_error;

void LoraOptions::visit_options(config::OptionTable& t) {
  const char* shapes = "the trained parameters have it as an axis";
  t.add(&rank, "rank", Effect::kBits, "", "rank of the adapters").fixed(shapes);
  t.add(&alpha, "alpha", Effect::kBits, "", "adapters are multiplied by alpha / rank");
  t.add(&use_rslora, "use_rslora", Effect::kBits, "", "multiply by alpha / sqrt(rank) instead");
  t.add(&target_modules, "target_modules", Effect::kBits, "globs",
        "which matrices get adapters: names (q_proj) or paths (* matches any text); null: all but the head")
      .other("[q_proj, v_proj]")
      .fixed("the trained parameters are those of its adapters");
}

Status LoraOptions::validate() const {
  config::Mistakes mistakes;
  if (rank < 1) mistakes.add(option_error("adapter.rank", fmt::format("{} is not positive", rank)));
  if (!(alpha > 0) || !std::isfinite(alpha))
    mistakes.add(
        option_error("adapter.alpha", fmt::format("{} is not allowed; use a positive number", alpha)));
  if (target_modules && target_modules->empty())
    mistakes.add(option_error("adapter.target_modules", "is empty; name matrices, or leave it out for all"));
  return mistakes.status();
}

double LoraOptions::scale() const {
  const auto r = static_cast<double>(rank);
  return use_rslora ? alpha / std::sqrt(r) : alpha / r;
}

std::optional<nn::LoraSpec> lora_spec(const AdapterOptions& options) {
  const auto* lora = std::get_if<LoraOptions>(&options);
  if (lora == nullptr) return std::nullopt;
  return nn::LoraSpec{lora->rank, lora->scale(), lora->target_modules};
}

}  // namespace ostro::train
