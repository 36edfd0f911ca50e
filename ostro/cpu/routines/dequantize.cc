// dequantize where something else than a product reads its result (docs/spec/numerics.md N1). Operands and
// results are dense.
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/bf16.h"

namespace ostro::cpu {
namespace {

// w is [before, rows, after], scales [before, groups, after].
struct StoredExtents {
  int64_t before = 1, rows = 1, after = 1, groups = 1;
};

float wide(float x) { return x; }
float wide(numerics::Bf16 x) { return numerics::to_f32(x); }
void put_rounded(float x, float* to) { *to = x; }
void put_rounded(float x, numerics::Bf16* to) { *to = numerics::to_bf16(x); }

template <typename T>
void dequantize(const StoredExtents& e, const int8_t* w, const T* scales, T* y, machine::ThreadPool& pool) {
  pool.parallel_for(e.before * e.rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t group = row / e.rows * e.groups + row % e.rows / (e.rows / e.groups);
      for (int64_t i = 0; i < e.after; ++i)
        put_rounded(static_cast<float>(w[row * e.after + i]) * wide(scales[group * e.after + i]),
                    y + row * e.after + i);
    }
  });
}

}  // namespace

Status run_dequantize(const OpCall& call) {
  const Array &w = call.in[0], &scales = call.in[1], &out = call.out[0];
  if (out.count() == 0) return Status();
  const auto& over = call.attrs.strs("over");
  StoredExtents e;
  e.groups = scales.shape().size_of(call.attrs.str("groups"));
  const int64_t first = w.shape().find(over[0]), end = first + static_cast<int64_t>(over.size());
  for (int64_t i = 0; i < w.shape().rank(); ++i)
    (i < first ? e.before : i < end ? e.rows : e.after) *= w.shape().axes[static_cast<size_t>(i)].size;
  if (out.dtype() == ir::DType::bf16)
    dequantize(e, w.as<int8_t>(), scales.as<numerics::Bf16>(), out.as<numerics::Bf16>(), call.pool);
  else
    dequantize(e, w.as<int8_t>(), scales.as<float>(), out.as<float>(), call.pool);
  return Status();
}

}  // namespace ostro::cpu
