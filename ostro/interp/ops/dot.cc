// dot (numerics.md N6 for f32, N7 or N23 for bf16): one chain per output and leaf, then the tree, then the
// cast.
#include "ostro/interp/core/chains.h"
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"

namespace ostro::interp {

Result<Buffers> run_dot(const Call& call) {
  const Shape &a_shape = call.shape(0), &b_shape = call.shape(1), &out = call.out[0];
  const Chain chain = chain_of(call.op, a_shape.dtype);
  const std::vector<Axis> over = axes_named(a_shape, call.op.attrs.strs("over"));
  const std::vector<float> a = elements<float>(call.in[0]), b = elements<float>(call.in[1]);
  const std::vector<int64_t> a_row = offsets(out.axes, a_shape), a_k = offsets(over, a_shape);
  const std::vector<int64_t> b_row = offsets(out.axes, b_shape), b_k = offsets(over, b_shape);
  const ContractionLeaves leaves = cut(over, call.leaves);
  std::vector<float> result(static_cast<size_t>(out.count()));
  for (size_t i = 0; i < result.size(); ++i) {
    std::vector<float> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices) {
      const auto n = static_cast<int64_t>(leaf.size());
      auto left = [&](int64_t k) { return a[a_row[i] + a_k[leaf[k]]]; };
      auto right = [&](int64_t k) { return b[b_row[i] + b_k[leaf[k]]]; };
      partials.push_back(sum_chain(chain, n, left, right));
    }
    result[i] = join(partials, leaves.counts);
  }
  return Buffers{make_buffer(out, result)};
}

}  // namespace ostro::interp
