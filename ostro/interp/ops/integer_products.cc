// Integer products (numerics.md N20): blocks of integers with one scale each, and their dot.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/int8_blocks.h"

namespace ostro::interp {
namespace {

// The index of each element of x, row-major in the whole array, of which x is a part.
std::vector<int64_t> whole_indices(const Call& call) {
  Shape whole = call.shape(0);
  const auto& sizes = call.op.attrs.ints("global_sizes");
  for (size_t i = 0; i < whole.axes.size(); ++i) whole.axes[i].size = sizes[i];
  int64_t first = 0;
  for (size_t i = 0; i < whole.axes.size(); ++i) first += integers(call.in[i + 2])[0] * whole.strides()[i];
  std::vector<int64_t> out = offsets(call.shape(0).axes, whole);
  for (int64_t& index : out) index += first;
  return out;
}

}  // namespace

// Rows are the points of x's other axes, in x's order; k counts along the axes of `over`.
Result<Buffers> run_quantize(const Call& call) {
  const Shape& x_shape = call.shape(0);
  const bool dithered = call.op.attrs.str("rounding") == "dithered";
  const int64_t block = call.op.attrs.i64("block");
  const std::vector<float> x = elements<float>(call.in[0]);
  const auto& names = call.op.attrs.strs("over");
  const std::vector<int64_t> row_at = offsets(axes_not_in(x_shape, names), x_shape);
  const std::vector<int64_t> k_at = offsets(axes_named(x_shape, names), x_shape);
  const std::vector<int64_t> index = dithered ? whole_indices(call) : std::vector<int64_t>();
  numerics::Key key;
  if (dithered) key = {call.in[1].as<uint32_t>()[0], call.in[1].as<uint32_t>()[1]};
  const auto size = static_cast<int64_t>(k_at.size());
  std::vector<int8_t> q;
  std::vector<float> scales;
  for (const int64_t row : row_at)
    for (int64_t begin = 0; begin < size; begin += block) {
      const int64_t count = std::min(block, size - begin);
      const auto at = [&](int64_t k) {
        return static_cast<size_t>(row + k_at[static_cast<size_t>(begin + k)]);
      };
      const numerics::BlockScale s = numerics::block_scale(count, [&](int64_t k) { return x[at(k)]; });
      scales.push_back(s.scale);
      for (int64_t k = 0; k < count; ++k)
        q.push_back(dithered
                        ? numerics::quantize_dithered(
                              x[at(k)], s, numerics::dither_bits(key, static_cast<uint64_t>(index[at(k)])))
                        : numerics::quantize_nearest(x[at(k)], s));
    }
  return Buffers{make_buffer(call.out[0], q), make_buffer(call.out[1], scales)};
}

// Both operands are [rows, K] with scales [rows, blocks] in memory: `over` and the blocks are the last axes.
Result<Buffers> run_dot_int8(const Call& call) {
  const auto& over = call.op.attrs.strs("over");
  const int64_t block = call.op.attrs.i64("block");
  const std::vector<int8_t> a = elements<int8_t>(call.in[0]), b = elements<int8_t>(call.in[2]);
  const std::vector<float> sa = elements<float>(call.in[1]), sb = elements<float>(call.in[3]);
  const int64_t size = count(axes_named(call.shape(0), over)), blocks = (size + block - 1) / block;
  const int64_t rows = count(axes_not_in(call.shape(0), over)),
                columns = count(axes_not_in(call.shape(2), over));
  const auto row_of = [](const auto& values, int64_t row, int64_t length) {
    return [&values, row, length](int64_t i) { return values[static_cast<size_t>(row * length + i)]; };
  };
  std::vector<float> result;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n)
      result.push_back(numerics::dot_int8(size, block, row_of(a, m, size), row_of(sa, m, blocks),
                                          row_of(b, n, size), row_of(sb, n, blocks)));
  return Buffers{make_buffer(call.out[0], result)};
}

}  // namespace ostro::interp
