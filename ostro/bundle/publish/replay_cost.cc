#include "ostro/bundle/publish/replay_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/chain/clock_text.h"

namespace ostro::bundle {

std::string replay_text(const chain::Chain& chain, const BundleManifest& manifest,
                        const std::optional<chain::RunRecord>& record) {
  const int64_t first = chain::entry_step(chain.links.front().entry), last = chain.last_step();
  std::vector<int64_t> starts;
  if (manifest.has_moments || !chain.genesis().initial) starts.push_back(first);
  if (manifest.has_moments)
    starts.insert(starts.end(), manifest.checkpoints.begin(), manifest.checkpoints.end());
  if (starts.empty() || starts.front() == last)
    return "no step can be replayed with its states: take more along (--checkpoints)";
  int64_t longest = 0;
  for (size_t i = 0; i < starts.size(); ++i)
    longest = std::max(longest, (i + 1 < starts.size() ? starts[i + 1] : last) - starts[i]);
  const double each = record ? chain::seconds_a_step(*record) : 0;
  const auto cost = [&](int64_t steps) {
    return each > 0 ? fmt::format(" ({} on the machine that trained)",
                                  chain::duration_text(each * static_cast<double>(steps)))
                    : std::string();
  };
  return fmt::format(
      "steps {} to {} can be replayed with the token store: all of them are {} steps{}, the dearest single "
      "one is {}{}",
      starts.front() + 1, last, last - starts.front(), cost(last - starts.front()), longest, cost(longest));
}

}  // namespace ostro::bundle
