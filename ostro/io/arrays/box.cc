#include "ostro/io/arrays/box.h"

#include <algorithm>
#include <cstring>

namespace ostro::io {

int64_t product(std::span<const int64_t> extents) {
  int64_t n = 1;
  for (const int64_t extent : extents) n *= extent;
  return n;
}

Extents grid_of(std::span<const int64_t> shape, std::span<const int64_t> chunk) {
  OSTRO_CHECK(shape.size() == chunk.size(), "a chunk of rank {} for an array of rank {}", chunk.size(),
              shape.size());
  Extents grid(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) grid[d] = shape[d] / chunk[d] + (shape[d] % chunk[d] != 0);
  return grid;
}

void copy_box(std::span<const std::byte> source, std::span<const int64_t> source_shape,
              std::span<const int64_t> source_start, std::span<std::byte> target,
              std::span<const int64_t> target_shape, std::span<const int64_t> target_start,
              std::span<const int64_t> shape, int64_t item) {
  const size_t rank = shape.size();
  for (size_t d = 0; d < rank; ++d) {
    OSTRO_CHECK(shape[d] >= 0 && source_start[d] >= 0 && source_start[d] + shape[d] <= source_shape[d] &&
                    target_start[d] >= 0 && target_start[d] + shape[d] <= target_shape[d],
                "axis {}: a box of {} at {} of {} goes to {} of {}", d, shape[d], source_start[d],
                source_shape[d], target_start[d], target_shape[d]);
  }
  if (product(shape) == 0) return;
  // Trailing axes that the box covers completely in both arrays are copied as one run.
  size_t run_axis = rank == 0 ? 0 : rank - 1;
  while (run_axis > 0 && shape[run_axis] == source_shape[run_axis] &&
         shape[run_axis] == target_shape[run_axis]) {
    --run_axis;
  }
  const auto run = static_cast<size_t>(product(shape.subspan(std::min(run_axis, rank))) * item);
  const auto offset = [&](std::span<const int64_t> extents, std::span<const int64_t> start,
                          const Extents& index) {
    int64_t at = 0;
    for (size_t d = 0; d < rank; ++d) at = at * extents[d] + start[d] + (d < index.size() ? index[d] : 0);
    return static_cast<size_t>(at * item);
  };
  check_ok(for_each_index(shape.first(std::min(run_axis, rank)), [&](const Extents& index) -> Status {
    const size_t from = offset(source_shape, source_start, index),
                 to = offset(target_shape, target_start, index);
    OSTRO_CHECK(from + run <= source.size() && to + run <= target.size(), "a box leaves its array's bytes");
    std::memcpy(target.data() + to, source.data() + from, run);
    return {};
  }));
}

// They follow each other if, behind the first axis that has more than one index of the box, the box has all
// of every axis.
std::optional<int64_t> contiguous_at(std::span<const int64_t> array_shape, std::span<const int64_t> start,
                                     std::span<const int64_t> shape) {
  int64_t at = 0;
  bool wide = false;  // an axis before this one has more than one index
  for (size_t d = 0; d < shape.size(); ++d) {
    if (wide && shape[d] != array_shape[d]) return std::nullopt;
    wide = wide || shape[d] > 1;
    at = at * array_shape[d] + start[d];
  }
  return at;
}

Status for_each_index(std::span<const int64_t> grid, const std::function<Status(const Extents&)>& f) {
  for (const int64_t extent : grid) {
    if (extent == 0) return {};
  }
  Extents index(grid.size(), 0);
  for (;;) {
    RETURN_IF_ERROR(f(index));
    size_t d = grid.size();
    while (d > 0 && ++index[d - 1] == grid[d - 1]) index[--d] = 0;
    if (d == 0) return {};
  }
}

}  // namespace ostro::io
