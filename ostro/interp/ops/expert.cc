// Dots whose second operand is chosen row by row (numerics.md N10): expert_dot and the sum of outer products
// that is its derivative by the weights. An expert outside the table gives +0 and adds nothing.
#include "ostro/interp/core/chains.h"
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"

namespace ostro::interp {
namespace {

// One leaf's chain, over the listed points.
template <typename A, typename B>
float chain_over(Chain chain, const std::vector<int64_t>& points, A&& a, B&& b) {
  const auto n = static_cast<int64_t>(points.size());
  auto left = [&](int64_t k) { return a(points[static_cast<size_t>(k)]); };
  auto right = [&](int64_t k) { return b(points[static_cast<size_t>(k)]); };
  return sum_chain(chain, n, left, right);
}

}  // namespace

Result<Buffers> run_expert_dot(const Call& call) {
  const Shape &x_shape = call.shape(0), &w_shape = call.shape(1), &expert = call.shape(2), &out = call.out[0];
  const Chain chain = chain_of(call.op, x_shape.dtype);
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t experts = w_shape.size_of(axis), stride = stride_of(w_shape, axis);
  const int64_t origin = integers(call.in[3])[0];
  const std::vector<int64_t> chosen = integers(call.in[2]);
  const std::vector<float> x = elements<float>(call.in[0]), w = elements<float>(call.in[1]);
  const std::vector<Axis> over = axes_named(x_shape, call.op.attrs.strs("over"));
  const std::vector<int64_t> x_row = offsets(out.axes, x_shape), x_k = offsets(over, x_shape);
  const std::vector<int64_t> w_row = offsets(out.axes, w_shape), w_k = offsets(over, w_shape);
  const std::vector<int64_t> expert_at = offsets(out.axes, expert);
  const ContractionLeaves leaves = cut(over, call.leaves);
  std::vector<float> result(static_cast<size_t>(out.count()), 0.0f);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t e = chosen[expert_at[i]] - origin;
    if (e < 0 || e >= experts) continue;
    std::vector<float> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices)
      partials.push_back(chain_over(
          chain, leaf, [&](int64_t k) { return x[x_row[i] + x_k[k]]; },
          [&](int64_t k) { return w[w_row[i] + e * stride + w_k[k]]; }));
    result[i] = join(partials, leaves.counts);
  }
  return Buffers{make_buffer(out, result)};
}

Result<Buffers> run_expert_outer(const Call& call) {
  const Shape &a_shape = call.shape(0), &b_shape = call.shape(1), &expert = call.shape(2), &out = call.out[0];
  const Chain chain = chain_of(call.op, a_shape.dtype);
  const int64_t experts = call.op.attrs.i64("size"), origin = integers(call.in[3])[0];
  const std::vector<int64_t> chosen = integers(call.in[2]);
  const std::vector<float> a = elements<float>(call.in[0]), b = elements<float>(call.in[1]);
  const std::vector<Axis> each(out.axes.begin() + 1, out.axes.end());
  const std::vector<int64_t> a_row = offsets(expert.axes, a_shape), a_each = offsets(each, a_shape);
  const std::vector<int64_t> b_row = offsets(expert.axes, b_shape), b_each = offsets(each, b_shape);
  const ContractionLeaves leaves = cut(expert.axes, call.leaves);
  std::vector<float> result;
  for (int64_t e = 0; e < experts; ++e) {
    // The expert's rows, ascending, of each leaf.
    std::vector<std::vector<int64_t>> rows;
    for (const std::vector<int64_t>& leaf : leaves.indices) {
      rows.emplace_back();
      for (int64_t r : leaf)
        if (chosen[static_cast<size_t>(r)] - origin == e) rows.back().push_back(r);
    }
    for (size_t i = 0; i < a_each.size(); ++i) {
      std::vector<float> partials;
      for (const std::vector<int64_t>& leaf : rows)
        partials.push_back(chain_over(
            chain, leaf, [&](int64_t r) { return a[a_row[r] + a_each[i]]; },
            [&](int64_t r) { return b[b_row[r] + b_each[i]]; }));
      result.push_back(join(partials, leaves.counts));
    }
  }
  return Buffers{make_buffer(out, result)};
}

}  // namespace ostro::interp
