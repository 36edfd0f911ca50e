#include "products/operand.cuh"
#include "products/outputs.cuh"
#include "products/tensor_rule.cuh"
// Products by the rule of tensor cores (N23) on any GPU: one thread an output, one step after the other.

DEVICE float tensor_dot_of(const DotArgs& a, i64 a_at, i64 b_at, i64 s_at, float first) {
  const i64 *a_col = AT(const i64, a.a_col), *b_row = AT(const i64, a.b_row), *s_row = AT(const i64, a.s_row);
  const bool stored = a.b_type == TYPE_I8;
  float leaf[MOST_LEAVES];
  i64 begin = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    const i64 end = AT(const i64, a.segment_ends)[s];
    float c = first;
    for (; begin < end; begin += TENSOR_STEP) {
      u32 x[TENSOR_STEP], y[TENSOR_STEP];
#pragma unroll
      for (int i = 0; i < TENSOR_STEP; ++i) {
        const i64 k = begin + i;
        x[i] = k < end ? bits32(load_float(a.a, a.a_type, a_at + a_col[k])) : 0;
        y[i] = k < end ? bits32(operand_b(a, true, b_at + b_row[k], stored ? s_at + s_row[k] : 0)) : 0;
      }
      c = tensor_step(x, y, c);
    }
    begin = end;
    leaf[s] = c;
  }
  return a.segments == 1 ? leaf[0] : join_leaves(leaf, a.segments, a.levels, a.counts);
}

KERNEL(tensor_dot, DotArgs) { dot_output<tensor_dot_of>(a); }
KERNEL(tensor_expert_dot, ExpertDotArgs) { expert_dot_output<tensor_dot_of>(a); }

// Groups count the rows of the expert in the leaf alone.
KERNEL(tensor_expert_outer, ExpertOuterArgs) {
  const i64 t = global_thread();
  if (t >= a.experts * a.m * a.n) return;
  const i64 j = t % a.n, i = t / a.n % a.m, e = t / a.n / a.m + integer_of(a.origin);
  const i64 a_at = AT(const i64, a.a_row)[i], b_at = AT(const i64, a.b_col)[j];
  float leaf[MOST_LEAVES];
  i64 r = 0;
  for (i64 s = 0; s < a.segments; ++s) {
    const i64 end = AT(const i64, a.segment_ends)[s];
    float c = 0;
    while (r < end) {
      u32 x[TENSOR_STEP], y[TENSOR_STEP];
#pragma unroll
      for (int n = 0; n < TENSOR_STEP; ++n) {
        while (r < end && AT(const i32, a.expert)[AT(const i64, a.expert_row)[r]] != e) ++r;
        x[n] = r < end ? bits32(load_float(a.a, a.type, a_at + AT(const i64, a.a_col)[r])) : 0;
        y[n] = r < end ? bits32(load_float(a.b, a.type, b_at + AT(const i64, a.b_row)[r])) : 0;
        if (r < end) ++r;
      }
      c = tensor_step(x, y, c);
    }
    leaf[s] = c;
  }
  store_float(a.to, a.to_type, t, a.segments == 1 ? leaf[0] : join_leaves(leaf, a.segments, a.levels, a.counts));
}
