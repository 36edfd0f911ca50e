#include "ostro/fleet/shares/leaf_shares.h"

#include "ostro/base/check.h"

namespace ostro::fleet {

LeafShares::LeafShares(const std::vector<int64_t>& counts) {
  int64_t end = 0;
  for (const int64_t count : counts) {
    OSTRO_CHECK(count >= 0, "a share of {} leaves", count);
    ends_.push_back(end += count);
  }
}

train::LeafRange LeafShares::range(int64_t leaves, int64_t workers, int64_t place) const {
  if (!fits(leaves, workers)) return train::leaf_range(leaves, workers, place);
  const auto at = static_cast<size_t>(place);
  return {at == 0 ? 0 : ends_[at - 1], ends_[at]};
}

std::vector<int64_t> LeafShares::counts(int64_t leaves, int64_t workers) const {
  std::vector<int64_t> out;
  for (int64_t place = 0; place < workers; ++place) {
    const train::LeafRange own = range(leaves, workers, place);
    out.push_back(own.end - own.begin);
  }
  return out;
}

// The largest subtrees of a range grow and then shrink, so there are two of a size at most.
int64_t most_partials(int64_t leaves) { return 2 * train::live_partials(leaves) - 1; }

}  // namespace ostro::fleet
