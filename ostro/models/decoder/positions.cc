#include "ostro/models/decoder/positions.h"

#include "ostro/numerics/functions.h"

namespace ostro::models {
namespace {

struct Turns {
  std::vector<float> frequencies;
  double scale = 1;
};

Turns turns(const RopeDefaultOptions& r, int64_t dim, int64_t) {
  return {nn::rope_frequencies(dim, r.theta)};
}

Turns turns(const RopeLinearOptions& r, int64_t dim, int64_t) {
  return {nn::linear_rope_frequencies(dim, r.theta, r.factor)};
}

Turns turns(const RopeLlama3Options& r, int64_t dim, int64_t) {
  return {nn::rope_frequencies(dim, r.theta,
                               {r.factor, r.low_freq_factor, r.high_freq_factor,
                                static_cast<double>(r.original_max_position_embeddings)})};
}

Turns turns(const RopeYarnOptions& r, int64_t dim, int64_t) {
  return {nn::yarn_rope_frequencies(dim, r.theta,
                                    {r.factor, static_cast<double>(r.original_max_position_embeddings),
                                     r.beta_fast, r.beta_slow, r.truncate}),
          r.attention_factor.value_or(0.1 * numerics::log_f64(r.factor) + 1)};
}

Turns turns(const RopeDynamicOptions& r, int64_t dim, int64_t length) {
  const auto original = static_cast<double>(r.original_max_position_embeddings);
  if (static_cast<double>(length) <= original) return {nn::rope_frequencies(dim, r.theta)};
  const double stretch = r.factor * static_cast<double>(length) / original - (r.factor - 1),
               power = static_cast<double>(dim) / static_cast<double>(dim - 2);
  return {nn::rope_frequencies(dim, r.theta * numerics::pow_f64(stretch, power))};
}

Turns turns(const RopeLongOptions& r, int64_t dim, int64_t length) {
  const auto& factors = length > r.original_max_position_embeddings ? r.long_factor : r.short_factor;
  return {nn::divided_rope_frequencies(dim, r.theta, factors), r.attention_factor};
}

}  // namespace

nn::Rope rope_at(const DecoderOptions& o, const Array& positions, bool local) {
  const RopeOptions rope = local ? RopeDefaultOptions{*o.rope_local_theta} : o.rope;
  const Turns t = std::visit([&](const auto& r) { return turns(r, o.rotary_dim(), o.seq_len); }, rope);
  nn::Rope out = nn::Rope::at(positions, t.frequencies, t.scale);
  out.interleaved = o.rope_interleaved;
  return out;
}

}  // namespace ostro::models
