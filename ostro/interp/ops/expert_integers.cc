// Integer products of experts (numerics.md N20): each row with the matrix that it chose, and the sum of outer
// products over the rows of each expert, whose blocks begin at its first row. An expert outside the table
// gives +0 and adds nothing.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/int8_blocks.h"

namespace ostro::interp {
namespace {

// The integers of some numbers, and the scales of their blocks.
struct Integers {
  std::vector<int8_t> q;
  std::vector<float> scales;
};

// Cuts n numbers: x(k) is number k, and rounded(k, s) the integer that stands for it in a block with scale s.
template <typename X, typename Rounded>
Integers cut_numbers(int64_t n, int64_t block, X&& x, Rounded&& rounded) {
  Integers out;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t count = std::min(block, n - begin);
    const numerics::BlockScale s = numerics::block_scale(count, [&](int64_t k) { return x(begin + k); });
    out.scales.push_back(s.scale);
    for (int64_t k = begin; k < begin + count; ++k) out.q.push_back(rounded(k, s));
  }
  return out;
}

// A shape with the sizes of the whole array.
Shape whole_of(Shape part, const std::vector<int64_t>& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) part.axes[i].size = sizes[i];
  return part;
}

}  // namespace

// Operands as quantize leaves them: `over` and the blocks are the last axes.
Result<Buffers> run_expert_dot_int8(const Call& call) {
  const Shape &a_shape = call.shape(0), &b_shape = call.shape(2), &expert = call.shape(4), &out = call.out[0];
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t block = call.op.attrs.i64("block");
  const int64_t size = count(axes_named(a_shape, call.op.attrs.strs("over")));
  const int64_t experts = b_shape.size_of(axis), origin = integers(call.in[5])[0];
  const std::vector<int8_t> a = elements<int8_t>(call.in[0]), b = elements<int8_t>(call.in[2]);
  const std::vector<float> sa = elements<float>(call.in[1]), sb = elements<float>(call.in[3]);
  const std::vector<int64_t> chosen = integers(call.in[4]);
  const std::vector<int64_t> expert_at = offsets(out.axes, expert);
  const std::vector<int64_t> a_at = offsets(out.axes, a_shape), sa_at = offsets(out.axes, call.shape(1));
  const std::vector<int64_t> b_at = offsets(out.axes, b_shape), sb_at = offsets(out.axes, call.shape(3));
  const int64_t b_stride = stride_of(b_shape, axis), sb_stride = stride_of(call.shape(3), axis);
  const auto from = [](const auto& values, int64_t first) {
    return [&values, first](int64_t i) { return values[static_cast<size_t>(first + i)]; };
  };
  std::vector<float> result(static_cast<size_t>(out.count()), 0.0f);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t e = chosen[static_cast<size_t>(expert_at[i])] - origin;
    if (e < 0 || e >= experts) continue;
    result[i] = numerics::dot_int8(size, block, from(a, a_at[i]), from(sa, sa_at[i]),
                                   from(b, b_at[i] + e * b_stride), from(sb, sb_at[i] + e * sb_stride));
  }
  return Buffers{make_buffer(out, result)};
}

Result<Buffers> run_expert_outer_int8(const Call& call) {
  const Shape &a_shape = call.shape(0), &b_shape = call.shape(1), &expert = call.shape(2), &out = call.out[0];
  const int64_t block = call.op.attrs.i64("block"), origin = integers(call.in[3])[0];
  const numerics::Key key{call.in[4].as<uint32_t>()[0], call.in[4].as<uint32_t>()[1]};
  const std::vector<int64_t> chosen = integers(call.in[2]);
  const std::vector<float> a = elements<float>(call.in[0]), b = elements<float>(call.in[1]);
  const std::vector<Axis> left = axes_not_in(a_shape, expert.names()),
                          right = axes_not_in(b_shape, expert.names());
  const std::vector<int64_t> a_row = offsets(expert.axes, a_shape), a_each = offsets(left, a_shape);
  const std::vector<int64_t> b_row = offsets(expert.axes, b_shape), b_each = offsets(right, b_shape);
  // The index of each element of b in the whole array.
  const Shape whole = whole_of(b_shape, call.op.attrs.ints("global_sizes"));
  int64_t first = 0;
  for (size_t i = 0; i < whole.axes.size(); ++i) first += integers(call.in[i + 5])[0] * whole.strides()[i];
  const std::vector<int64_t> draw_row = offsets(expert.axes, whole), draw_each = offsets(right, whole);

  std::vector<float> result;
  for (int64_t e = 0; e < call.op.attrs.i64("size"); ++e) {
    std::vector<size_t> rows;  // the expert's, ascending
    for (size_t r = 0; r < chosen.size(); ++r)
      if (chosen[r] - origin == e) rows.push_back(r);
    const auto n = static_cast<int64_t>(rows.size());
    const auto row = [&](int64_t k) { return rows[static_cast<size_t>(k)]; };
    std::vector<Integers> columns;
    for (size_t j = 0; j < b_each.size(); ++j) {
      const auto right_of = [&](int64_t k) { return b[static_cast<size_t>(b_row[row(k)] + b_each[j])]; };
      columns.push_back(cut_numbers(n, block, right_of, [&](int64_t k, const numerics::BlockScale& s) {
        const auto index = static_cast<uint64_t>(first + draw_row[row(k)] + draw_each[j]);
        return numerics::quantize_dithered(right_of(k), s, numerics::dither_bits(key, index));
      }));
    }
    for (const int64_t each : a_each) {
      const auto left_of = [&](int64_t k) { return a[static_cast<size_t>(a_row[row(k)] + each)]; };
      const Integers x = cut_numbers(n, block, left_of, [&](int64_t k, const numerics::BlockScale& s) {
        return numerics::quantize_nearest(left_of(k), s);
      });
      for (const Integers& y : columns)
        result.push_back(numerics::dot_int8(
            n, block, [&](int64_t k) { return x.q[static_cast<size_t>(k)]; },
            [&](int64_t g) { return x.scales[static_cast<size_t>(g)]; },
            [&](int64_t k) { return y.q[static_cast<size_t>(k)]; },
            [&](int64_t g) { return y.scales[static_cast<size_t>(g)]; }));
    }
  }
  return Buffers{make_buffer(out, result)};
}

}  // namespace ostro::interp
