// Boxes of dense row-major arrays: the arithmetic under chunks, cells and slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

using Extents = std::vector<int64_t>;

// The product; 1 for no extents. Must not overflow (validate first what comes from a file).
int64_t product(std::span<const int64_t> extents);

// How many chunks cover each extent: ceil(shape / chunk).
Extents grid_of(std::span<const int64_t> shape, std::span<const int64_t> chunk);

// Copies the box of `shape` elements of `item` bytes from `source` (a dense array of `source_shape`, the box
// beginning at `source_start`) into `target` (likewise). Boxes must lie inside their arrays.
void copy_box(std::span<const std::byte> source, std::span<const int64_t> source_shape,
              std::span<const int64_t> source_start, std::span<std::byte> target,
              std::span<const int64_t> target_shape, std::span<const int64_t> target_start,
              std::span<const int64_t> shape, int64_t item);

// Calls f with every index of a grid in lexicographic order (once, with an empty index, for rank 0; never
// when an extent is 0) and stops at the first error.
Status for_each_index(std::span<const int64_t> grid, const std::function<Status(const Extents& index)>& f);

}  // namespace ostro::io
