// expert_dot and expert_outer (docs/spec/numerics.md N10) as one product per expert: a counting sort finds
// the rows of each, and the packers gather them. Operands may be views; results are dense.
#include <algorithm>
#include <cstring>

#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/rows_by_expert.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/products/gemm.h"

namespace ostro::cpu {

Status run_expert_dot(const OpCall& call) {
  const Array &x = call.in[0], &w = call.in[1], &expert = call.in[2], &out = call.out[0];
  if (out.count() == 0) return Status();
  const std::string& axis = call.attrs.str("axis");
  const int64_t experts = w.shape().size_of(axis);
  const int64_t w_stride = w.view->strides[static_cast<size_t>(w.shape().find(axis))];
  const RowsByExpert rows = sort_by_expert(expert, experts, integer_of(call.in[3]), {});
  std::vector<ir::Axis> k;
  for (const std::string& name : call.attrs.strs("over")) k.push_back({name, x.shape().size_of(name)});
  const Contraction contraction = contraction_of(k, call.leaves);
  const std::vector<ir::Axis> n(out.shape().axes.begin() + expert.shape().rank(), out.shape().axes.end());
  const int64_t width = count_of(n), size = ir::dtype_size(out.dtype());
  const std::vector<int64_t> x_row = offsets_over(expert.shape().axes, *x.view);

  kernels::GemmSpec common;
  common.in = gemm_type(x.dtype());
  common.out = gemm_type(out.dtype());
  common.tc16 = ir::is_tc16(call.attrs);
  common.a_col = in_order(offsets_over(k, *x.view), contraction);
  common.b_row = in_order(offsets_over(k, *w.view), contraction);
  common.b_col = offsets_over(n, *w.view);
  common.c_col = offsets_over(n, compile::View::whole(0, {out.dtype(), n}));
  if (contraction.segment_ends.size() > 1) {
    common.segment_ends = contraction.segment_ends;
    common.tree_counts = contraction.tree_counts;
  }
  const char* scales = nullptr;
  int64_t scale_stride = 0;  // bytes from one expert's to the next
  if (w.dtype() == ir::DType::i8) {
    const Array& s = call.in[4];
    const auto& scaled = call.attrs.strs("scaled");
    const std::string& groups = call.attrs.str("groups");
    common.int8_b = true;
    common.s_row = in_order(scale_offsets(k, scaled, groups, *w.view, *s.view), contraction);
    common.s_col = scale_offsets(n, scaled, groups, *w.view, *s.view);
    scales = s.data;
    scale_stride = s.view->strides[static_cast<size_t>(s.shape().find(axis))] * ir::dtype_size(s.dtype());
  }
  std::vector<kernels::Gemm> products;
  std::vector<kernels::GemmCall> calls;
  products.reserve(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e) {
    const std::span<const int64_t> mine = rows.of(e);
    if (mine.empty()) continue;
    kernels::GemmSpec spec = common;
    spec.a_row = picked(x_row, mine);
    for (int64_t r : mine) spec.c_row.push_back(r * width);
    products.emplace_back(std::move(spec), call.isa);
    const char* weights = w.data + e * w_stride * ir::dtype_size(w.dtype());
    calls.push_back(
        {&products.back(), x.data,
         scales == nullptr ? kernels::GemmB(weights) : kernels::GemmB(weights, scales + e * scale_stride),
         out.data});
  }
  kernels::Gemm::run_all(call.pool, calls);
  for (int64_t r : rows.of_none())
    std::memset(out.data + r * width * size, 0, static_cast<size_t>(width * size));
  return Status();
}

Status run_expert_outer(const OpCall& call) {
  const Array &a = call.in[0], &b = call.in[1], &expert = call.in[2], &out = call.out[0];
  if (out.count() == 0) return Status();
  const std::vector<ir::Axis> row_axes = expert.shape().axes;
  const std::vector<ir::Axis> m = axes_without(a.shape(), expert.shape().names()),
                              n = axes_without(b.shape(), expert.shape().names());
  const int64_t experts = call.attrs.i64("size"), width = count_of(n), each = count_of(m) * width;
  const Contraction contraction = contraction_of(row_axes, call.leaves);
  const RowsByExpert rows = sort_by_expert(expert, experts, integer_of(call.in[3]), contraction.order);
  const std::vector<int64_t> a_row = offsets_over(row_axes, *a.view), b_row = offsets_over(row_axes, *b.view);

  kernels::GemmSpec common;
  common.in = gemm_type(a.dtype());
  common.tc16 = ir::is_tc16(call.attrs);
  common.a_row = offsets_over(m, *a.view);
  common.b_col = offsets_over(n, *b.view);
  for (int64_t i = 0; i < count_of(m); ++i) common.c_row.push_back(i * width);
  for (int64_t i = 0; i < width; ++i) common.c_col.push_back(i);
  // The leaf of each row, to find where an expert's leaves end.
  const size_t leaves = contraction.segment_ends.size();
  std::vector<size_t> leaf_of;
  if (leaves > 1) {
    leaf_of.resize(a_row.size());
    size_t leaf = 0;
    for (size_t i = 0; i < contraction.order.size(); ++i) {
      while (static_cast<int64_t>(i) >= contraction.segment_ends[leaf]) ++leaf;
      leaf_of[static_cast<size_t>(contraction.order[i])] = leaf;
    }
  }
  std::vector<kernels::Gemm> products;
  std::vector<kernels::GemmCall> calls;
  products.reserve(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e) {
    const std::span<const int64_t> mine = rows.of(e);
    char* to = out.data + e * each * ir::dtype_size(out.dtype());
    if (mine.empty()) {
      std::memset(to, 0, static_cast<size_t>(each * ir::dtype_size(out.dtype())));
      continue;
    }
    kernels::GemmSpec spec = common;
    spec.a_col = picked(a_row, mine);
    spec.b_row = picked(b_row, mine);
    if (leaves > 1) {
      spec.segment_ends.assign(leaves, 0);
      for (int64_t r : mine) ++spec.segment_ends[leaf_of[static_cast<size_t>(r)]];
      for (size_t i = 1; i < leaves; ++i) spec.segment_ends[i] += spec.segment_ends[i - 1];
      spec.tree_counts = contraction.tree_counts;
    }
    products.emplace_back(std::move(spec), call.isa);
    calls.push_back({&products.back(), a.data, b.data, to});
  }
  kernels::Gemm::run_all(call.pool, calls);
  return Status();
}

}  // namespace ostro::cpu
