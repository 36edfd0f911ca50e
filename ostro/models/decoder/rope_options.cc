#include "ostro/models/decoder/rope_options.h"

#include <fmt/format.h>

#include "ostro/models/decoder/checks.h"

namespace ostro::models {

using config::Effect;
using config::option_error;

namespace {

constexpr const char* kThetaHelp = "base of the rotary frequencies";
constexpr const char* kOriginalHelp = "context length before stretching";

Status check_factor(double factor) {
  if (factor >= 1) return {};
  return option_error("model.rope.factor", fmt::format("{} is below 1; it stretches wavelengths", factor));
}

Status check_kind(const RopeDefaultOptions&, int64_t) { return {}; }

Status check_kind(const RopeLinearOptions& r, int64_t) { return check_factor(r.factor); }

Status check_kind(const RopeLlama3Options& r, int64_t) {
  RETURN_IF_ERROR(check_factor(r.factor));
  if (!(r.low_freq_factor > 0 && r.low_freq_factor < r.high_freq_factor))
    return option_error("model.rope.low_freq_factor",
                        fmt::format("{} must be above 0 and below high_freq_factor, which is {}",
                                    r.low_freq_factor, r.high_freq_factor));
  return check_positive("model.rope.original_max_position_embeddings", r.original_max_position_embeddings);
}

Status check_kind(const RopeYarnOptions& r, int64_t) {
  RETURN_IF_ERROR(check_factor(r.factor));
  if (!(r.theta > 1))
    return option_error("model.rope.theta", fmt::format("{} is not above 1, which YaRN needs", r.theta));
  if (!(r.beta_slow > 0 && r.beta_slow < r.beta_fast))
    return option_error(
        "model.rope.beta_slow",
        fmt::format("{} must be above 0 and below beta_fast, which is {}", r.beta_slow, r.beta_fast));
  if (r.attention_factor && !(*r.attention_factor > 0))
    return option_error("model.rope.attention_factor",
                        fmt::format("{} is not positive", *r.attention_factor));
  if (r.mscale_all_dim && !(*r.mscale_all_dim > 0))
    return option_error("model.rope.mscale_all_dim",
                        fmt::format("{} is not positive; leave it out", *r.mscale_all_dim));
  return check_positive("model.rope.original_max_position_embeddings", r.original_max_position_embeddings);
}

Status check_kind(const RopeDynamicOptions& r, int64_t rotary_dim) {
  RETURN_IF_ERROR(check_factor(r.factor));
  if (rotary_dim < 4)
    return option_error("model.rope.type",
                        fmt::format("dynamic needs 4 elements of a head that turn, here are {}", rotary_dim));
  return check_positive("model.rope.original_max_position_embeddings", r.original_max_position_embeddings);
}

Status check_factors(const char* key, const std::vector<double>& factors, int64_t rotary_dim) {
  const auto count = static_cast<int64_t>(factors.size());
  if (count != 1 && count != rotary_dim / 2)
    return option_error(key, fmt::format("{} factors, but a head has {} frequencies; give one for each, or "
                                         "one for all",
                                         count, rotary_dim / 2));
  for (const double factor : factors)
    if (!(factor > 0)) return option_error(key, fmt::format("{} is not positive", factor));
  return {};
}

Status check_kind(const RopeLongOptions& r, int64_t rotary_dim) {
  RETURN_IF_ERROR(check_factors("model.rope.short_factor", r.short_factor, rotary_dim));
  RETURN_IF_ERROR(check_factors("model.rope.long_factor", r.long_factor, rotary_dim));
  if (!(r.attention_factor > 0))
    return option_error("model.rope.attention_factor", fmt::format("{} is not positive", r.attention_factor));
  return check_positive("model.rope.original_max_position_embeddings", r.original_max_position_embeddings);
}

}  // namespace

void RopeDefaultOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
}

void RopeLinearOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
  t.add(&factor, "factor", Effect::kBits, "", "by how much all wavelengths are stretched");
}

void RopeLlama3Options::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
  t.add(&factor, "factor", Effect::kBits, "", "by how much the longest wavelengths are stretched");
  t.add(&low_freq_factor, "low_freq_factor", Effect::kBits, "",
        "wavelengths above original_max_position_embeddings / this are stretched fully");
  t.add(&high_freq_factor, "high_freq_factor", Effect::kBits, "",
        "wavelengths below original_max_position_embeddings / this are left alone");
  t.add(&original_max_position_embeddings, "original_max_position_embeddings", Effect::kBits, "tokens",
        kOriginalHelp)
      .other("64");
}

void RopeYarnOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
  t.add(&factor, "factor", Effect::kBits, "", "by how much the longest wavelengths are stretched");
  t.add(&original_max_position_embeddings, "original_max_position_embeddings", Effect::kBits, "tokens",
        kOriginalHelp)
      .other("64");
  t.add(&beta_fast, "beta_fast", Effect::kBits, "turns",
        "frequencies that turn more often within the original context are left alone")
      .other("8")
      .beside({{"model.rope.original_max_position_embeddings", "1024"}});
  t.add(&beta_slow, "beta_slow", Effect::kBits, "turns",
        "frequencies that turn less often within the original context are stretched fully")
      .other("8")
      .beside({{"model.rope.original_max_position_embeddings", "1024"}});
  t.add(&attention_factor, "attention_factor", Effect::kBits, "",
        "cos and sin are multiplied by it; null: 0.1 ln(factor) + 1")
      .other("1.0");
  t.add(&truncate, "truncate", Effect::kBits, "",
        "the ramp between both kinds of frequencies begins and ends at whole indices");
  t.add(&mscale_all_dim, "mscale_all_dim", Effect::kBits, "",
        "attention's scores are multiplied by (0.1 mscale_all_dim ln(factor) + 1)^2; null: they are not")
      .other("0.7")
      .since_default("null");
}

void RopeDynamicOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
  t.add(&factor, "factor", Effect::kBits, "",
        "the base becomes theta (factor seq_len / original_max_position_embeddings - factor + 1)^(n / (n - "
        "2)), n of a head turning, where model.seq_len is above the original length")
      .beside({{"model.rope.original_max_position_embeddings", "16"}});
  t.add(&original_max_position_embeddings, "original_max_position_embeddings", Effect::kBits, "tokens",
        kOriginalHelp)
      .other("16");
}

void RopeLongOptions::visit_options(config::OptionTable& t) {
  t.add(&theta, "theta", Effect::kBits, "", kThetaHelp);
  t.add(&short_factor, "short_factor", Effect::kBits, "",
        "what each frequency is divided by where model.seq_len is at most original_max_position_embeddings; "
        "one number is for all")
      .other("[2.0]");
  t.add(&long_factor, "long_factor", Effect::kBits, "", "the same where model.seq_len is above it")
      .other("[2.0]")
      .beside({{"model.rope.original_max_position_embeddings", "16"}});
  t.add(&original_max_position_embeddings, "original_max_position_embeddings", Effect::kBits, "tokens",
        kOriginalHelp)
      .other("16")
      .beside({{"model.rope.long_factor", "[2.0]"}});
  t.add(&attention_factor, "attention_factor", Effect::kBits, "", "cos and sin are multiplied by it");
}

double rope_theta(const RopeOptions& rope) {
  return std::visit([](const auto& r) { return r.theta; }, rope);
}

Status check_rope(const RopeOptions& rope, int64_t rotary_dim) {
  if (const double theta = rope_theta(rope); !(theta > 0))
    return option_error("model.rope.theta", fmt::format("{} is not positive", theta));
  return std::visit([rotary_dim](const auto& r) { return check_kind(r, rotary_dim); }, rope);
}

}  // namespace ostro::models
