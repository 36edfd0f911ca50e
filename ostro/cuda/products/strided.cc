#include "ostro/cuda/products/strided.h"

#include <algorithm>
#include <limits>
#include <span>

namespace ostro::cuda {
namespace {

constexpr int64_t kMostBatches = 65535;     // blocks in the third dimension
constexpr int64_t kMostTiles = 2147483647;  // blocks in the first

// A kernel of products/strided_<dtype>_<m>x<n>.cu, of which `blocks` run at a time on a multiprocessor.
// `cost`: its time for an output where nothing keeps it waiting, relative to the others of the dtype.
struct Tile {
  int64_t m, n;
  int threads, blocks;
  double cost;
};
constexpr Tile kTilesF32[] = {{128, 128, 128, 2, 1.0}, {64, 128, 128, 3, 1.1}, {16, 32, 32, 12, 2.5}};
constexpr Tile kTilesBf16[] = {{64, 128, 128, 2, 1.0}, {16, 32, 32, 12, 2.5}};

// The time in which the busiest of `width` multiprocessors is done. The fewer warps one of its four
// schedulers has, the longer they wait for memory and for each other.
double time_of(const Tile& tile, int64_t tiles, int64_t width) {
  const int64_t rounds = (tiles + width - 1) / width;
  const double warps = static_cast<double>(std::min<int64_t>(rounds, tile.blocks) * tile.threads) / 128;
  return static_cast<double>(rounds * tile.m * tile.n) * tile.cost * (1 + 0.5 / std::max(warps, 0.25));
}

// How an operand lies: its step along k, and whether its 16 bytes lie along k.
struct Lie {
  int64_t step = 0;
  bool along_k = false;
};

bool all_multiples(const args::Axes& loops, int64_t count, int64_t of) {
  return std::all_of(loops.stride, loops.stride + count, [&](int64_t stride) { return stride % of == 0; });
}

std::optional<Lie> lie_of(const DeviceArray& x, const DotAxes& axes, const std::vector<ir::Axis>& lines) {
  const int64_t together = 16 / ir::dtype_size(x.dtype());
  const args::Axes k = axes_over(axes.k, *x.view), line = axes_over(lines, *x.view),
                   batch = axes_over(axes.batch, *x.view);
  if (x.at.at % 16 != 0 || k.rank > 1 || !all_multiples(batch, batch.rank, together)) return {};
  const int64_t step = k.rank == 1 ? k.stride[0] : 0;
  if (step == 1 && k.size[0] % together == 0 && all_multiples(line, line.rank, together)) return Lie{1, true};
  const int64_t last = line.rank - 1;
  if (last < 0 || line.stride[last] != 1 || line.size[last] % together != 0) return {};
  if (step % together != 0 || !all_multiples(line, last, together)) return {};
  return Lie{step, false};
}

}  // namespace

std::optional<TileLaunch> strided_launch(const StepCall& call, const DotAxes& axes, args::DotArgs& args) {
  const DeviceArray &x = call.in[0], &w = call.in[1];
  if (args.segments > 1 || x.dtype() != w.dtype() || args.batches > kMostBatches) return {};
  if (args.k > std::numeric_limits<int32_t>::max() / 2) return {};
  const std::optional<Lie> a = lie_of(x, axes, axes.m), b = lie_of(w, axes, axes.n);
  if (!a || !b) return {};
  args.a_step = a->step;
  args.b_step = b->step;
  const bool narrow = x.dtype() == ir::DType::bf16;
  const int64_t width = call.kernels.width();
  const Tile* best = nullptr;
  int64_t best_count = 0;
  double least = 0;
  for (const Tile& tile : narrow ? std::span<const Tile>(kTilesBf16) : std::span<const Tile>(kTilesF32)) {
    const int64_t count = ((args.m + tile.m - 1) / tile.m) * ((args.n + tile.n - 1) / tile.n);
    const double time = time_of(tile, count * args.batches, width);
    if (count > kMostTiles || (best != nullptr && time >= least)) continue;
    best = &tile, best_count = count, least = time;
  }
  if (best == nullptr) return {};
  const std::string name = fmt::format("strided_{}_{}x{}", narrow ? "bf16" : "f32", best->m, best->n);
  return TileLaunch{.file = fmt::format("products/{}.cu", name),
                    .kernel = fmt::format("{}_{}{}", name, a->along_k ? 'k' : 'm', b->along_k ? 'k' : 'n'),
                    .shape = {.x = best_count, .z = args.batches, .threads = best->threads}};
}

}  // namespace ostro::cuda
