#include "ostro/numerics/leaves.h"

#include <algorithm>

namespace ostro::numerics {
namespace {

int64_t leaf_granule(std::string_view axis) {
  if (axis == "mlp" || axis == "vocab") return 8;
  if (axis == "pos") return 128;  // the key block of attention and a multiple of the bf16 dot's group
  return 1;
}

}  // namespace

int64_t LeafTable::position(std::string_view axis) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].first == axis) return static_cast<int64_t>(i);
  }
  return -1;
}

int64_t LeafTable::count(std::string_view axis) const {
  const int64_t i = position(axis);
  return i < 0 ? 1 : axes[static_cast<size_t>(i)].second;
}

Status LeafTable::validate() const {
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto& [axis, count] = axes[i];
    if (axis.empty()) return invalid_argument(fmt::format("leaf table: entry {} has no axis name", i));
    if (count < 1) {
      return invalid_argument(
          fmt::format("leaf table: axis \"{}\" has {} leaves; at least 1 is needed", axis, count));
    }
    if (position(axis) != static_cast<int64_t>(i)) {
      return invalid_argument(fmt::format("leaf table: axis \"{}\" is listed twice", axis));
    }
  }
  return Status();
}

int64_t leaf_size(std::string_view axis, int64_t n, int64_t count) {
  OSTRO_CHECK(n >= 0 && count >= 1, "axis \"{}\" of size {} cut into {} leaves", axis, n, count);
  const int64_t granule = leaf_granule(axis);
  const int64_t size = n / count + (n % count != 0 ? 1 : 0);
  return std::max<int64_t>(granule, (size + granule - 1) / granule * granule);
}

LeafBounds leaf_bounds(std::string_view axis, int64_t n, int64_t count, int64_t i) {
  OSTRO_CHECK(i >= 0 && i < count, "leaf {} of axis \"{}\", which has {}", i, axis, count);
  const int64_t size = leaf_size(axis, n, count);
  const int64_t full = n / size;  // this many leaves have all their indices
  const int64_t begin = i <= full ? i * size : n;
  const int64_t end = i < full ? begin + size : n;
  return {std::min(begin, n), end};
}

std::vector<LeafBounds> leaf_bounds(std::string_view axis, int64_t n, int64_t count) {
  std::vector<LeafBounds> leaves;
  leaves.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) leaves.push_back(leaf_bounds(axis, n, count, i));
  return leaves;
}

std::vector<int64_t> leaf_ends(std::string_view axis, int64_t n, int64_t count) {
  std::vector<int64_t> ends;
  for (const LeafBounds& leaf : leaf_bounds(axis, n, count)) ends.push_back(leaf.end);
  return ends;
}

}  // namespace ostro::numerics
