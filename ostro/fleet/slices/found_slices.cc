#include "ostro/fleet/slices/found_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ostro::fleet {
namespace {

// Sets of machines that links connect.
class Connected {
 public:
  explicit Connected(size_t machines) : parent_(machines), sets_(machines) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t of(size_t machine) const {
    while (parent_[machine] != machine) machine = parent_[machine];
    return machine;
  }
  // True when they were not connected before.
  bool connect(size_t a, size_t b) {
    a = of(a), b = of(b);
    if (a == b) return false;
    parent_[std::max(a, b)] = std::min(a, b);
    --sets_;
    return true;
  }
  size_t sets() const { return sets_; }

 private:
  std::vector<size_t> parent_;
  size_t sets_;
};

// `rates` ascend.
double limit_of(size_t machines, const std::vector<LinkRate>& rates) {
  const auto connected = [&](size_t first) {
    Connected sets(machines);
    for (size_t i = first; i < rates.size(); ++i) sets.connect(rates[i].a, rates[i].b);
    return sets.sets();
  };
  for (size_t i = 1; i < rates.size(); ++i)
    if (rates[i].rate >= kApart * rates[i - 1].rate && connected(i) > 1) return rates[i].rate / kApart;
  Connected sets(machines);
  double slowest = 0;  // of those that connect all
  for (size_t i = rates.size(); i-- > 0;)
    if (sets.connect(rates[i].a, rates[i].b)) slowest = rates[i].rate;
  return slowest / kApart;
}

std::string new_name(const std::vector<std::string>& used) {
  for (size_t number = 1;; ++number) {
    std::string name = fmt::format("measured-{}", number);
    if (std::find(used.begin(), used.end(), name) == used.end()) return name;
  }
}

}  // namespace

FoundSlices find_slices(std::vector<std::string> known, std::vector<LinkRate> rates, double limit) {
  std::sort(rates.begin(), rates.end(), [](const LinkRate& x, const LinkRate& y) {
    return std::tie(x.rate, x.a, x.b) < std::tie(y.rate, y.a, y.b);
  });
  FoundSlices out;
  out.limit = limit > 0 ? limit : limit_of(known.size(), rates);
  out.names = std::move(known);
  // From the fastest link to the slowest, so that a machine comes to the slice to which it has the fastest.
  Connected fresh(out.names.size());
  std::vector<std::string> name_of(out.names.size());  // of each set of machines without a name
  for (size_t i = rates.size(); i-- > 0;) {
    const auto [a, b, rate] = rates[i];
    if (rate <= out.limit) break;
    if (out.names[a].empty() == out.names[b].empty()) {
      if (!out.names[a].empty()) continue;
      const std::string one = name_of[fresh.of(a)], other = name_of[fresh.of(b)];
      if (!one.empty() && !other.empty() && one != other) continue;  // each is in another slice already
      fresh.connect(a, b);
      name_of[fresh.of(a)] = one.empty() ? other : one;
      continue;
    }
    const auto& [named, other] = out.names[a].empty() ? std::pair(b, a) : std::pair(a, b);
    std::string& name = name_of[fresh.of(other)];
    if (name.empty()) name = out.names[named];
  }
  const std::vector<std::string> before = out.names;
  for (size_t machine = 0; machine < before.size(); ++machine) {
    if (!before[machine].empty()) continue;
    std::string& name = name_of[fresh.of(machine)];
    if (name.empty()) name = new_name(out.names);
    out.names[machine] = name;
  }
  return out;
}

}  // namespace ostro::fleet
