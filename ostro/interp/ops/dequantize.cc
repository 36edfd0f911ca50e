// dequantize (numerics.md N1): stored i8 values times their scales.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"

namespace ostro::interp {

Result<Buffers> run_dequantize(const Call& call) {
  const Shape &w_shape = call.shape(0), &scale_shape = call.shape(1);
  const auto& over = call.op.attrs.strs("over");
  const int64_t groups = scale_shape.size_of(call.op.attrs.str("groups"));
  // w is [before, rows, after], scales [before, groups, after].
  int64_t before = 1, rows = 1, after = 1;
  const int64_t first = w_shape.find(over[0]), end = first + static_cast<int64_t>(over.size());
  for (int64_t i = 0; i < w_shape.rank(); ++i)
    (i < first ? before : i < end ? rows : after) *= w_shape.axes[static_cast<size_t>(i)].size;
  const std::vector<int8_t> w = elements<int8_t>(call.in[0]);
  const std::vector<float> scales = elements<float>(call.in[1]);
  std::vector<float> y;
  y.reserve(w.size());
  for (int64_t b = 0; b < before; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t a = 0; a < after; ++a) {
        const int64_t group = r / (rows / groups);
        const float scale = scales[static_cast<size_t>((b * groups + group) * after + a)];
        y.push_back(static_cast<float>(w[y.size()]) * scale);
      }
  return Buffers{make_buffer(call.out[0], y)};
}

}  // namespace ostro::interp
