#include "ostro/fleet/slices/found_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

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

void sort_rates(std::vector<LinkRate>& rates) {
  std::sort(rates.begin(), rates.end(), [](const LinkRate& x, const LinkRate& y) {
    return std::tie(x.rate, x.a, x.b) < std::tie(y.rate, y.a, y.b);
  });
}

// Machines without a name: which of them fast links connect, and the slice that each such set comes to.
struct Fresh {
  Connected sets;
  std::vector<std::string> name_of;  // by set; "": a slice of its own
};

// From the fastest link to the slowest, so that a machine comes to the slice to which it has the fastest.
// `rates` ascend.
Fresh fresh_sets(const std::vector<std::string>& known, const std::vector<LinkRate>& rates, double limit) {
  Fresh out{Connected(known.size()), std::vector<std::string>(known.size())};
  auto& [sets, name_of] = out;
  for (size_t i = rates.size(); i-- > 0;) {
    const auto [a, b, rate] = rates[i];
    if (rate <= limit) break;
    if (known[a].empty() == known[b].empty()) {
      if (!known[a].empty()) continue;
      const std::string one = name_of[sets.of(a)], other = name_of[sets.of(b)];
      if (!one.empty() && !other.empty() && one != other) continue;  // each is in another slice already
      sets.connect(a, b);
      name_of[sets.of(a)] = one.empty() ? other : one;
      continue;
    }
    const auto& [named, other] = known[a].empty() ? std::pair(b, a) : std::pair(a, b);
    std::string& name = name_of[sets.of(other)];
    if (name.empty()) name = known[named];
  }
  return out;
}

// 0: no step is large enough. `rates` ascend.
double limit_by_gap(size_t machines, const std::vector<LinkRate>& rates) {
  const auto sets_without = [&](size_t slower) {
    Connected sets(machines);
    for (size_t i = slower; i < rates.size(); ++i) sets.connect(rates[i].a, rates[i].b);
    return sets.sets();
  };
  const size_t all = sets_without(0);
  for (size_t i = 1; i < rates.size(); ++i)
    if (rates[i].rate >= kApart * rates[i - 1].rate && sets_without(i) > all) return rates[i].rate / kApart;
  return 0;
}

}  // namespace

double slice_limit(size_t machines, std::vector<LinkRate> rates) {
  sort_rates(rates);
  std::vector<LinkRate> between = rates;
  std::erase_if(between, [](const LinkRate& link) { return link.a == link.b; });
  if (const double limit = limit_by_gap(machines, between); limit > 0) return limit;
  if (const double limit = limit_by_gap(machines, rates); limit > 0) return limit;
  Connected sets(machines);
  double slowest = 0;  // of those that connect all
  for (size_t i = between.size(); i-- > 0;)
    if (sets.connect(between[i].a, between[i].b)) slowest = between[i].rate;
  return slowest / kApart;
}

std::vector<std::string> join_slices(std::vector<std::string> known, std::vector<LinkRate> rates,
                                     double limit) {
  sort_rates(rates);
  const Fresh fresh = fresh_sets(known, rates, limit);
  for (size_t machine = 0; machine < known.size(); ++machine)
    if (known[machine].empty()) known[machine] = fresh.name_of[fresh.sets.of(machine)];
  return known;
}

FoundSlices find_slices(std::vector<std::string> known, const std::vector<LinkRate>& rates, double limit,
                        const std::string& prefix) {
  FoundSlices out;
  out.limit = limit > 0 ? limit : slice_limit(known.size(), rates);
  std::vector<LinkRate> sorted = rates;
  sort_rates(sorted);
  Fresh fresh = fresh_sets(known, sorted, out.limit);
  out.names = std::move(known);
  size_t number = 0;
  const auto new_name = [&] {
    for (;;) {
      std::string name = fmt::format("{}{}", prefix, ++number);
      if (std::find(out.names.begin(), out.names.end(), name) == out.names.end()) return name;
    }
  };
  for (size_t machine = 0; machine < out.names.size(); ++machine) {
    if (!out.names[machine].empty()) continue;
    std::string& name = fresh.name_of[fresh.sets.of(machine)];
    if (name.empty()) name = new_name();
    out.names[machine] = name;
  }
  return out;
}

}  // namespace ostro::fleet
