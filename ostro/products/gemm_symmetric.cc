// Products of a matrix with its own transpose: C is symmetric, and only half of it is computed.
#include <algorithm>

#include "ostro/products/gemm.h"
#include "ostro/products/gemm_block.h"

namespace ostro::kernels {
namespace {

// Below this the time goes into other things than the product.
constexpr int64_t kLeastSide = 64;
constexpr int64_t kMirrorTile = 32;  // rows and columns that are copied together

template <typename T>
void mirror_tile(T* c, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns, int64_t row,
                 int64_t column) {
  const auto size = static_cast<int64_t>(rows.size());
  const int64_t row_end = std::min(size, row + kMirrorTile);
  for (int64_t i = row; i < row_end; ++i) {
    const int64_t end = std::min(i, column + kMirrorTile);
    for (int64_t j = column; j < end; ++j) c[rows[i] + columns[j]] = c[rows[j] + columns[i]];
  }
}

}  // namespace

bool Gemm::plan_symmetry() const {
  return m() >= kLeastSide && spec_.a_row == spec_.b_col && spec_.a_col == spec_.b_row &&
         std::all_of(spec_.batch.begin(), spec_.batch.end(),
                     [](const GemmBatch& one) { return one.a == one.b; });
}

// Copies tiles of kMirrorTile x kMirrorTile, one task per row of tiles: a tile's reads, down the columns,
// then stay in the caches.
void Gemm::mirror(machine::ThreadPool& pool, void* c) const {
  const int64_t tiles = ceil_div(m(), kMirrorTile);
  pool.run_tiles(static_cast<int64_t>(spec_.batch.size()) * tiles, [&](int64_t task) {
    const int64_t offset = spec_.batch[task / tiles].c, row = task % tiles * kMirrorTile;
    for (int64_t column = 0; column <= row; column += kMirrorTile)
      if (spec_.out == GemmType::kF32)
        mirror_tile(static_cast<float*>(c) + offset, spec_.c_row, spec_.c_col, row, column);
      else
        mirror_tile(static_cast<uint16_t*>(c) + offset, spec_.c_row, spec_.c_col, row, column);
  });
}

}  // namespace ostro::kernels
