#include "ostro/cuda/integers/integers.h"

namespace ostro::cuda {
namespace {

constexpr int64_t kLeastTiledInt8 = 32;   // of rows and columns: smaller products leave most of a tile empty
constexpr int64_t kMostTileRows = 65535;  // blocks in the second dimension
constexpr int64_t kTile = 128, kWarpThreads = 32;  // as in the device text

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

bool has_neighbours(const std::vector<ir::Axis>& axes, const compile::View& view) {
  const args::Axes loops = axes_over(axes, view);
  return loops.rank > 0 && loops.stride[loops.rank - 1] == 1;
}

}  // namespace

Status run_quantize(const StepCall& call) {
  constexpr const char* kQuantize = "integers/quantize.cu";
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
  if (has_neighbours(over, *x.view) || !has_neighbours(rows, *x.view))
    return call.launch(kQuantize, "quantize_along", a.rows * a.blocks * kWarpThreads, a);
  return call.launch(kQuantize, "quantize_across",
                     LaunchShape{.x = (a.rows + kWarpThreads - 1) / kWarpThreads * a.blocks, .threads = 256},
                     a);
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
  const int64_t tiles_m = (a.m + kTile - 1) / kTile, tiles_n = (a.n + kTile - 1) / kTile;
  if (a.m < kLeastTiledInt8 || a.n < kLeastTiledInt8 || tiles_m > kMostTileRows)
    return call.launch(kDot, "dot_int8", out.count(), a);
  return call.launch(kDot, "dot_int8_tiles", LaunchShape{.x = tiles_n, .y = tiles_m, .threads = 256}, a);
}

}  // namespace ostro::cuda
