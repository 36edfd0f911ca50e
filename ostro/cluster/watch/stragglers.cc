#include "ostro/cluster/watch/stragglers.h"

#include <algorithm>
#include <vector>

namespace ostro::cluster {
namespace {

constexpr double kSlow = 1.5;
constexpr int64_t kSteps = 20, kReports = 3;

}  // namespace

// The lower median, so that of two workers the slow one can straggle.
double Stragglers::median() const {
  std::vector<double> all;
  for (const auto& [member, entry] : members_)
    if (entry.seconds > 0) all.push_back(entry.seconds);
  if (all.size() < 2) return 0;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

double Stragglers::ratio(int64_t member) const {
  const auto found = members_.find(member);
  const double middle = median();
  return found == members_.end() || middle <= 0 ? 0 : found->second.seconds / middle;
}

bool Stragglers::straggles(int64_t member) const {
  const auto found = members_.find(member);
  return found != members_.end() && found->second.straggles;
}

bool Stragglers::report(int64_t member, const Progress& progress) {
  if (progress.compute_microseconds == 0 || progress.work == 0) return false;
  Entry& entry = members_[member];
  if (progress.step == entry.step) return false;  // reported before
  entry.step = progress.step;
  entry.seconds =
      static_cast<double>(progress.compute_microseconds) * 1e-6 / static_cast<double>(progress.work);
  const double middle = median();
  if (middle <= 0 || entry.seconds <= kSlow * middle) {
    entry.count = 0;
    entry.straggles = false;
    return false;
  }
  if (entry.count++ == 0) entry.since = progress.step;
  if (entry.straggles || entry.count < kReports || progress.step - entry.since < kSteps) return false;
  entry.straggles = true;
  return true;
}

void Stragglers::restart() {
  for (auto& [member, entry] : members_) entry.seconds = 0, entry.step = 0, entry.count = 0;
}

}  // namespace ostro::cluster
