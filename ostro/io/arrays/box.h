// copy_box: index arithmetic on boxes of dense row-major arrays, for chunks, shards and slices. Pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

using Extents = std::vector<int64_t>;

// The product of all extents; 1 if there are none. It must not overflow, so validate extents from a file
// first.
int64_t product(std::span<const int64_t> extents);

// The number of chunks that cover each extent: ceil(shape / chunk).
Extents grid_of(std::span<const int64_t> shape, std::span<const int64_t> chunk);

// Copies a box of extents `shape`, with elements of `item` bytes, from `source` to `target`. `source` is a
// dense array of extents `source_shape`, and the box begins there at index `source_start`; the same for
// `target`. The box must lie inside both arrays.
void copy_box(std::span<const std::byte> source, std::span<const int64_t> source_shape,
              std::span<const int64_t> source_start, std::span<std::byte> target,
              std::span<const int64_t> target_shape, std::span<const int64_t> target_start,
              std::span<const int64_t> shape, int64_t item);

// Where a box of a dense array lies if its elements follow each other there: the number of its first one.
std::optional<int64_t> contiguous_at(std::span<const int64_t> array_shape, std::span<const int64_t> start,
                                     std::span<const int64_t> shape);

// Calls f with every index of a grid, in lexicographic order. Stops at the first error. Rank 0 gives one call
// with an empty index; an extent of 0 gives none.
Status for_each_index(std::span<const int64_t> grid, const std::function<Status(const Extents& index)>& f);

}  // namespace ostro::io
