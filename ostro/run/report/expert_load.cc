#include "ostro/run/report/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace ostro::run {
namespace {

// f(layer's shares) for every layer of every block.
template <typename F>
void for_each_layer(const std::vector<runtime::Buffer>& loads, const F& f) {
  for (size_t block = 0; block < loads.size(); ++block) {
    const auto experts = static_cast<size_t>(loads[block].shape().axes.back().size);
    const auto all = loads[block].as<float>();
    for (size_t at = 0; at < all.size(); at += experts) f(block, at / experts, all.subspan(at, experts));
  }
}

// Of the shares, divided by its largest value: 1 is even, 0 one expert.
double entropy(std::span<const float> shares) {
  double sum = 0;
  for (const float share : shares)
    if (share > 0) sum -= share * std::log(static_cast<double>(share));
  return shares.size() > 1 ? sum / std::log(static_cast<double>(shares.size())) : 1;
}

}  // namespace

void add_load_metrics(const std::vector<runtime::Buffer>& loads, Metrics& metrics) {
  if (loads.empty()) return;
  double most = 0, least = 1e30, entropies = 0;
  std::vector<double> means;
  int64_t layers = 0;
  for_each_layer(loads, [&](size_t, size_t, std::span<const float> shares) {
    means.resize(shares.size(), 0.0);
    for (size_t e = 0; e < shares.size(); ++e) {
      const double load = static_cast<double>(shares[e]) * static_cast<double>(shares.size());
      most = std::max(most, load), least = std::min(least, load);
      means[e] += shares[e];
    }
    entropies += entropy(shares);
    ++layers;
  });
  metrics["moe/max_load"] = most;
  metrics["moe/min_load"] = least;
  metrics["moe/entropy"] = entropies / static_cast<double>(layers);
  metrics["moe/dropped_tokens"] = 0;
  for (size_t e = 0; e < means.size(); ++e)
    metrics[fmt::format("moe/load/{}", e)] = means[e] / static_cast<double>(layers);
}

std::string collapsed_layer(const std::vector<runtime::Buffer>& loads, double least) {
  std::string out;
  for_each_layer(loads, [&](size_t block, size_t layer, std::span<const float> shares) {
    if (!out.empty() || entropy(shares) >= least) return;
    const auto most = std::max_element(shares.begin(), shares.end());
    out = fmt::format(
        "layer {}{}: expert {} of {} gets {:.0f} % of the rows, the entropy of the loads is {:.2f} of 1",
        layer, loads.size() > 1 ? fmt::format(" of block {}", block) : "", most - shares.begin(),
        shares.size(), 100.0 * *most, entropy(shares));
  });
  return out;
}

}  // namespace ostro::run
