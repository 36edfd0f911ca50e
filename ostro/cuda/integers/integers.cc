#include "ostro/cuda/steps/fast_routines.h"

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"

namespace ostro::cuda {
namespace {

constexpr int64_t kLeastTiledInt8 = 32;   // of rows and columns: smaller products leave most of a tile empty
constexpr int64_t kMostTileRows = 65535;  // blocks in the second dimension
constexpr int64_t kWarpThreads = 32;
// As in the device text.
constexpr int64_t kTile = 128, kPiece = 64, kStages = 3;
constexpr int64_t kWarpgroupPiece = 256, kWarpgroupStages = 3, kTileAlignment = 1024;
constexpr int64_t kWholeBlock = 256, kTurnedRows = 64, kBlockWarps = 8, kBlocksAtATime = 8;

// The largest of 16, 4 and 1 of which all of these are multiples.
template <typename... Numbers>
int64_t alignment_of(Numbers... numbers) {
  const uint64_t all = (static_cast<uint64_t>(numbers) | ...);
  return all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1;
}

// Where a view has the points of the row-major space over `axes`; a table only where their places do not lie
// at even distances.
Result<args::Line> line_over(const StepCall& call, size_t table, const std::vector<ir::Axis>& axes,
                             const compile::View& view) {
  const args::Axes loops = axes_over(axes, view);
  args::Line line = {};
  if (loops.rank == 1) line.step = loops.stride[0];
  if (loops.rank <= 1) return line;
  ASSIGN_OR_RETURN(line.table, call.table(table, [&] { return compile::offsets_over(axes, view); }));
  return line;
}

// The draws of a dithered value are numbered row-major in the whole array, of which it is a part.
Status set_draws(const StepCall& call, const std::vector<ir::Axis>& rows, const std::vector<ir::Axis>& over,
                 args::QuantizeArgs& a) {
  compile::View whole = *call.in[0].view;
  const std::vector<int64_t>& sizes = call.attrs().ints("global_sizes");
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) whole.strides[i] = stride;
  a.key = call.in[1].at.at;
  a.key_step = compile::offsets_over(call.in[1].shape().axes, *call.in[1].view)[1];
  a.rank = static_cast<int64_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    a.origin[i] = scalar_of(call.in[i + 2]);
    a.origin_stride[i] = whole.strides[i];
  }
  ASSIGN_OR_RETURN(a.row_draw, line_over(call, 2, rows, whole));
  ASSIGN_OR_RETURN(a.k_draw, line_over(call, 3, over, whole));
  return Status();
}

// Whether a kernel of quantize_whole.cu takes it: in memory numbers lie next to each other along the rows'
// axis (`turned`) or along k, lines of them begin at multiples of 16 bytes, and so do blocks of integers.
bool is_whole(const args::QuantizeArgs& a, bool turned) {
  const int64_t bytes = a.type == args::TYPE_BF16 ? 2 : 4;
  const args::Line &near = turned ? a.row : a.k, &far = turned ? a.k : a.row;
  return near.table == 0 && far.table == 0 && a.row_draw.table == 0 && a.k_draw.table == 0 &&
         near.step == 1 && (a.key == 0 || (turned ? a.row_draw : a.k_draw).step == 1) &&
         alignment_of(a.from, far.step * bytes, a.q, a.size, a.block) == 16 && a.block <= kWholeBlock &&
         (!turned || a.rows * bytes % 16 == 0) && a.rows * a.blocks < int64_t{1} << 31;
}

// Whether dot_int8_warpgroups takes it: whole tiles, rows that lie at multiples of 16 bytes, blocks of whole
// pieces.
bool is_for_warpgroups(const StepCall& call, const args::DotInt8Args& a) {
  return call.device().limits().warpgroups && call.kernels.fast(Fast::kWarpgroups) && a.m >= kTile &&
         a.n >= kTile && a.block % kWarpgroupPiece == 0 && alignment_of(a.a, a.b, a.size, a.to) == 16 &&
         a.size > 0 && std::max({a.size, a.m, a.n}) < int64_t{1} << 30;
}

Status run_warpgroups(const StepCall& call, const args::DotInt8Args& a) {
  args::DotInt8TilesArgs tiles = {};
  tiles.dot = a;
  ASSIGN_OR_RETURN(const gpu::TileMap a_map, call.device().tile_map({a.a}, a.m, a.size, kTile));
  ASSIGN_OR_RETURN(const gpu::TileMap b_map, call.device().tile_map({a.b}, a.n, a.size, kTile));
  static_assert(sizeof tiles.a_map == sizeof a_map);
  std::memcpy(&tiles.a_map, &a_map, sizeof a_map);
  std::memcpy(&tiles.b_map, &b_map, sizeof b_map);
  const int64_t stage = 2 * kTile * (kWarpgroupPiece + static_cast<int64_t>(sizeof(float))) +
                        2 * static_cast<int64_t>(sizeof(uint64_t));
  gpu::LaunchShape shape{.x = (a.m + kTile - 1) / kTile * ((a.n + kTile - 1) / kTile), .threads = 384};
  shape.shared_bytes = kTileAlignment + kWarpgroupStages * stage;
  return call.launch("integers/dot_int8_warpgroups.cu", "dot_int8_warpgroups", shape, tiles);
}

bool has_neighbours(const std::vector<ir::Axis>& axes, const compile::View& view) {
  const args::Axes loops = axes_over(axes, view);
  return loops.rank > 0 && loops.stride[loops.rank - 1] == 1;
}

}  // namespace

Status run_quantize(const StepCall& call) {
  constexpr const char *kQuantize = "integers/quantize.cu", *kWhole = "integers/quantize_whole.cu";
  const DeviceArray& x = call.in[0];
  const auto& names = call.attrs().strs("over");
  const std::vector<ir::Axis> rows = axes_without(x.shape(), names);
  const std::vector<ir::Axis> over = axes_named(x.shape(), names);
  args::QuantizeArgs a = {};
  a.from = x.at.at;
  a.q = call.out[0].at.at;
  a.scales = call.out[1].at.at;
  a.type = type_number(x.dtype());
  a.rows = count_of(rows);
  a.size = count_of(over);
  a.block = call.attrs().i64("block");
  a.blocks = (a.size + a.block - 1) / a.block;
  a.aligned = alignment_of(a.q, a.size, a.block) >= 4 ? 1 : 0;
  ASSIGN_OR_RETURN(a.row, line_over(call, 0, rows, *x.view));
  ASSIGN_OR_RETURN(a.k, line_over(call, 1, over, *x.view));
  if (call.attrs().str("rounding") == "dithered") RETURN_IF_ERROR(set_draws(call, rows, over, a));
  const bool narrow = x.dtype() == ir::DType::bf16, fast = call.kernels.fast(Fast::kIntegers);
  if (fast && is_whole(a, false)) {
    const int64_t needed = (a.rows * a.blocks + kBlockWarps - 1) / kBlockWarps;
    const int64_t blocks = std::min<int64_t>(needed, kBlocksAtATime * call.device().limits().multiprocessors);
    a.warps = blocks * kBlockWarps;
    return call.launch(kWhole, narrow ? "quantize_whole_bf16" : "quantize_whole_f32",
                       gpu::LaunchShape{.x = blocks, .threads = 256}, a);
  }
  if (fast && is_whole(a, true)) {
    const int64_t at_a_time = narrow ? kTurnedRows : kTurnedRows / 2;
    return call.launch(kWhole, narrow ? "quantize_turned_bf16" : "quantize_turned_f32",
                       gpu::LaunchShape{.x = (a.rows + at_a_time - 1) / at_a_time * a.blocks, .threads = 256},
                       a);
  }
  if (has_neighbours(over, *x.view) || !has_neighbours(rows, *x.view))
    return call.launch(kQuantize, "quantize_along", a.rows * a.blocks * kWarpThreads, a);
  return call.launch(
      kQuantize, "quantize_across",
      gpu::LaunchShape{.x = (a.rows + kWarpThreads - 1) / kWarpThreads * a.blocks, .threads = 256}, a);
}

Status run_dot_int8(const StepCall& call) {
  constexpr const char* kDot = "integers/dot_int8.cu";
  const DeviceArray &x = call.in[0], &y = call.in[2], &out = call.out[0];
  const auto& names = call.attrs().strs("over");
  args::DotInt8Args a = {};
  a.a = x.at.at;
  a.a_scales = call.in[1].at.at;
  a.b = y.at.at;
  a.b_scales = call.in[3].at.at;
  a.to = out.at.at;
  a.to_type = type_number(out.dtype());
  a.m = count_of(axes_without(x.shape(), names));
  a.n = count_of(axes_without(y.shape(), names));
  a.size = count_of(axes_named(x.shape(), names));
  a.block = call.attrs().i64("block");
  a.blocks = (a.size + a.block - 1) / a.block;
  a.aligned = alignment_of(a.a, a.b, a.size, a.block);
  a.goes_on = call.step.goes_on && call.go_on ? 1 : 0;
  OSTRO_CHECK(a.goes_on == 0 || out.dtype() == ir::DType::f32, "a product that goes on from {}",
              out.shape().str());
  if (is_for_warpgroups(call, a)) return run_warpgroups(call, a);
  const int64_t tiles_m = (a.m + kTile - 1) / kTile, tiles_n = (a.n + kTile - 1) / kTile;
  if (a.m < kLeastTiledInt8 || a.n < kLeastTiledInt8 || tiles_m > kMostTileRows)
    return call.launch(kDot, "dot_int8", out.count(), a);
  gpu::LaunchShape shape{.x = tiles_n, .y = tiles_m, .threads = 256};
  if (!call.kernels.fast(Fast::kIntegers) || alignment_of(a.aligned, a.to) != 16 || a.block < kPiece ||
      a.size >= int64_t{1} << 30)
    return call.launch(kDot, "dot_int8_tiles", shape, a);
  shape.shared_bytes = kStages * 2 * kTile * kPiece;
  return call.launch("integers/dot_int8_staged.cu", "dot_int8_staged", shape, a);
}

}  // namespace ostro::cuda
