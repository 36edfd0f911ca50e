#include "ostro/fleet/check/check_draw.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "ostro/numerics/threefry.h"

namespace ostro::fleet {
namespace {

uint32_t check_bits(const CheckDraw& draw, std::string_view what, int64_t step, int64_t index) {
  numerics::Key key = numerics::key_from_seed(static_cast<uint64_t>(draw.seed));
  key = numerics::fold_in(numerics::fold_in(key, "cross check"), what);
  key = numerics::fold_in(numerics::fold_in(key, static_cast<uint32_t>(step)),
                          static_cast<uint32_t>(static_cast<uint64_t>(step) >> 32));
  return numerics::random_bits(key, static_cast<uint64_t>(index));
}

bool check_is_drawn(const CheckDraw& draw, std::string_view what, int64_t step, int64_t index) {
  return draw.on() && static_cast<double>(check_bits(draw, what, step, index)) < draw.rate * 0x1p32;
}

}  // namespace

bool CheckDraw::leaf(int64_t step, int64_t leaf) const { return check_is_drawn(*this, "leaf", step, leaf); }
bool CheckDraw::array(int64_t step, int64_t k) const { return check_is_drawn(*this, "array", step, k); }

std::vector<int64_t> machines_of(const std::vector<std::string>& hosts, const std::vector<int64_t>& workers) {
  std::vector<int64_t> out;
  std::map<std::string, int64_t> numbers;
  for (const int64_t rank : workers) {
    if (hosts.empty()) break;
    const auto next = static_cast<int64_t>(numbers.size());
    out.push_back(numbers.emplace(hosts[static_cast<size_t>(rank)], next).first->second);
  }
  return out;
}

Checkers checkers_of(const CheckDraw& draw, int64_t step, int64_t leaf, int64_t owner, int64_t workers) {
  if (workers == 1) return {owner, {owner}};
  const auto pick = [&](std::string_view what, int64_t of) {
    return static_cast<int64_t>(check_bits(draw, what, step, leaf) % static_cast<uint64_t>(of));
  };
  const auto machine = [&](int64_t place) {
    return draw.machines.empty() ? place : draw.machines[static_cast<size_t>(place)];
  };
  // One of the places that are not in `taken`, counted from behind the owner; of those on other machines, if
  // there are any.
  const auto other = [&](std::string_view what, const std::vector<int64_t>& taken) {
    std::vector<int64_t> free, far;
    for (int64_t ahead = 1; ahead < workers; ++ahead) {
      const int64_t place = (owner + ahead) % workers;
      if (std::find(taken.begin(), taken.end(), place) != taken.end()) continue;
      free.push_back(place);
      if (std::none_of(taken.begin(), taken.end(), [&](int64_t t) { return machine(t) == machine(place); }))
        far.push_back(place);
    }
    const std::vector<int64_t>& of = far.empty() ? free : far;
    return of[static_cast<size_t>(pick(what, static_cast<int64_t>(of.size())))];
  };
  const int64_t second = other("second", {owner});
  if (workers == 2) return {second, {owner, second}};
  return {second, {other("third", {owner, second})}};
}

}  // namespace ostro::fleet
