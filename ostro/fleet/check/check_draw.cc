#include "ostro/fleet/check/check_draw.h"

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

Checkers checkers_of(const CheckDraw& draw, int64_t step, int64_t leaf, int64_t owner, int64_t workers) {
  if (workers == 1) return {owner, {owner}};
  const auto pick = [&](std::string_view what, int64_t of) {
    return static_cast<int64_t>(check_bits(draw, what, step, leaf) % static_cast<uint64_t>(of));
  };
  const int64_t second = (owner + 1 + pick("second", workers - 1)) % workers;
  if (workers == 2) return {second, {owner, second}};
  // One of those that are neither: counted from behind the owner, without the second.
  int64_t ahead = 1 + pick("third", workers - 2);
  if (ahead >= (second - owner + workers) % workers) ++ahead;
  return {second, {(owner + ahead) % workers}};
}

}  // namespace ostro::fleet
