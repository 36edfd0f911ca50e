#include "ostro/cuda/attention/tile_shapes.h"

namespace ostro::cuda {

const TileShapes* tile_shapes(int64_t head_dim) {
  static constexpr TileShapes kShapes[] = {
      {64, {64, 128, 64, 64, 64, 64}, {64, 128, 64, 64, 64, 64}, {64, 128, 64, 64, 64, 64}},
      {128, {64, 128, 64, 128, 64, 32}, {64, 128, 64, 128, 64, 32}, {32, 128, 128, 128, 32, 32}},
      {256, {64, 256, 128, 256, 32, 32}, {64, 256, 128, 256, 32, 32}, {32, 256, 256, 256, 32, 32}},
  };
  if (head_dim % 4 != 0) return nullptr;
  for (const TileShapes& s : kShapes)
    if (head_dim <= s.wide) return &s;
  return nullptr;
}

bool takes_tiles(const DeviceArray& a, const std::string& head_dim) {
  const int64_t quad = 4 * (a.dtype() == ir::DType::bf16 ? 2 : 4);
  if (a.at.at % static_cast<uint64_t>(quad) != 0) return false;
  for (size_t i = 0; i < a.shape().axes.size(); ++i) {
    const bool inner = a.shape().axes[i].name == head_dim;
    if (inner ? a.view->strides[i] != 1 : a.view->strides[i] % 4 != 0) return false;
  }
  return true;
}

}  // namespace ostro::cuda
