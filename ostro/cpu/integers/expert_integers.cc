// expert_dot_int8 and expert_outer_int8 (docs/spec/numerics.md, N20) as one product of integers per expert,
// all of them one job. A counting sort finds the rows of each; the packers gather rows of integers, and the
// quantiser cuts the columns of all rows, sorted by expert, with blocks that begin at each expert. Operands
// and results are dense.
#include <cstring>

#include "ostro/cpu/integers/draws.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/rows_by_expert.h"
#include "ostro/products/few/scratch.h"
#include "ostro/products/int8_dot.h"
#include "ostro/products/int8_quantize.h"

namespace ostro::cpu {
namespace {

thread_local kernels::Scratch left_room, right_room;

std::vector<int64_t> divided(std::vector<int64_t> list, int64_t by) {
  for (int64_t& x : list) x /= by;
  return list;
}

// The columns of a matrix of all rows, as rows of integers.
struct Columns {
  int8_t* q;
  float* scales;
};

// Cuts the columns of x over the sorted rows: result [columns][rows], scales [columns][blocks].
template <typename T>
Columns cut_columns(const OpCall& call, const Array& x, const Draws& draws, const RowsByExpert& sorted,
                    const kernels::Int8Blocks& blocks, kernels::Scratch& room) {
  const ir::Shape& expert = call.in[2].shape();
  const std::vector<int64_t> columns = offsets_over(axes_without(x.shape(), expert.names()), *x.view);
  const std::span<const int64_t> rows = std::span(sorted.rows).first(static_cast<size_t>(blocks.k()));
  const std::vector<int64_t> row_at = picked(offsets_over(expert.axes, *x.view), rows);
  const auto n = static_cast<int64_t>(columns.size());
  const int64_t scale_bytes = n * blocks.count() * static_cast<int64_t>(sizeof(float));
  auto* const memory = room.get(scale_bytes + n * blocks.k());
  const Columns out{reinterpret_cast<int8_t*>(memory + scale_bytes), reinterpret_cast<float*>(memory)};
  std::vector<int64_t> first;
  if (draws.any) first = picked(draws.row_at, rows);
  if (is_contiguous(columns) && is_contiguous(draws.k_at)) {
    if (draws.any && !draws.k_at.empty())
      for (int64_t& f : first) f += draws.k_at[0];
    const kernels::Int8Dither dither{draws.key, 0, 0, first.data()};
    kernels::quantize_columns(
        call.pool, call.isa,
        {x.data, gemm_type(x.dtype()), blocks.k(), n, 0, draws.any ? &dither : nullptr, row_at.data()},
        blocks, {out.q, blocks.k(), out.scales, blocks.count()});
    return out;
  }
  call.pool.parallel_for(n, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      for (int64_t e = 0; e < blocks.leaves(); ++e) {
        const auto at = static_cast<size_t>(sorted.begin[static_cast<size_t>(e)]);
        const size_t count = sorted.of(e).size();
        const auto column = static_cast<size_t>(c);
        quantize_row(
            x.as<T>() + columns[column], std::span(row_at).subspan(at, count), blocks.block(), draws,
            draws.any ? draws.k_at[column] : 0,
            draws.any ? std::span<const int64_t>(first).subspan(at, count) : std::span<const int64_t>(),
            out.q + c * blocks.k() + static_cast<int64_t>(at),
            out.scales + c * blocks.count() + blocks.leaf_begin(e));
      }
  });
  return out;
}

Columns cut(const OpCall& call, const Array& x, const Draws& draws, const RowsByExpert& sorted,
            const kernels::Int8Blocks& blocks, kernels::Scratch& room) {
  return x.dtype() == ir::DType::bf16 ? cut_columns<numerics::Bf16>(call, x, draws, sorted, blocks, room)
                                      : cut_columns<float>(call, x, draws, sorted, blocks, room);
}

}  // namespace

Status run_expert_dot_int8(const OpCall& call) {
  const Array &a = call.in[0], &a_scales = call.in[1], &b = call.in[2], &b_scales = call.in[3],
              &expert = call.in[4], &out = call.out[0];
  if (out.count() == 0) return Status();
  const std::string& axis = call.attrs.str("axis");
  const int64_t experts = b.shape().size_of(axis);
  const int64_t size = count_of(axes_named(a.shape(), call.attrs.strs("over")));
  const kernels::Int8Blocks blocks(size, call.attrs.i64("block"));
  const RowsByExpert sorted = sort_by_expert(expert, experts, integer_of(call.in[5]), {});
  const std::vector<ir::Axis> n(out.shape().axes.begin() + expert.shape().rank(), out.shape().axes.end());
  const int64_t width = count_of(n), bytes = width * ir::dtype_size(out.dtype());
  for (const int64_t r : sorted.of_none()) std::memset(out.data + r * bytes, 0, static_cast<size_t>(bytes));
  // Rows of integers are counted in rows of a and b. One without elements has no place, but a product of +0.
  if (size == 0) {
    std::memset(out.data, 0, static_cast<size_t>(out.count() * ir::dtype_size(out.dtype())));
    return Status();
  }
  const std::vector<int64_t> a_row = divided(offsets_over(expert.shape().axes, *a.view), size);
  const std::vector<int64_t> b_row = divided(offsets_over(n, *b.view), size);
  const int64_t b_step = b.view->strides[static_cast<size_t>(b.shape().find(axis))] / size;
  std::vector<std::vector<int64_t>> rows_of;
  std::vector<kernels::Int8Dot> products;
  std::vector<kernels::Int8DotCall> calls;
  rows_of.reserve(static_cast<size_t>(experts)), products.reserve(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e) {
    const std::span<const int64_t> mine = sorted.of(e);
    if (mine.empty()) continue;
    kernels::Int8DotSpec spec{static_cast<int64_t>(mine.size()), width, blocks};
    spec.out = gemm_type(out.dtype());
    for (const int64_t r : mine) spec.c_row.push_back(r * width);
    rows_of.push_back(picked(a_row, mine));
    products.emplace_back(std::move(spec), call.isa);
    const int64_t first = e * b_step;
    calls.push_back({&products.back(),
                     kernels::Int8Operand{a.as<int8_t>(), size, a_scales.as<float>(), blocks.count(),
                                          rows_of.back().data()},
                     kernels::Int8Operand{b.as<int8_t>() + first * size, size,
                                          b_scales.as<float>() + first * blocks.count(), blocks.count(),
                                          is_contiguous(b_row) ? nullptr : b_row.data()},
                     out.data});
  }
  kernels::Int8Dot::run_all(call.pool, calls);
  return Status();
}

Status run_expert_outer_int8(const OpCall& call) {
  const Array &a = call.in[0], &b = call.in[1], &expert = call.in[2], &out = call.out[0];
  if (out.count() == 0) return Status();
  const std::vector<std::string> row_names = expert.shape().names();
  const std::vector<ir::Axis> m = axes_without(a.shape(), row_names), n = axes_without(b.shape(), row_names);
  const int64_t experts = call.attrs.i64("size"), block = call.attrs.i64("block");
  const int64_t height = count_of(m), width = count_of(n);
  const RowsByExpert sorted = sort_by_expert(expert, experts, integer_of(call.in[3]), {});
  const kernels::Int8Blocks blocks(sorted.begin.back(), block,
                                   {sorted.begin.begin() + 1, sorted.begin.end()});
  // A row of `expert` may read a row of b that others read too: its draws are those of the element of b.
  const Draws draws = draws_in_whole(b.shape(), call.in[4], call.in.subspan(5),
                                     call.attrs.ints("global_sizes"), expert.shape().axes, n);
  std::vector<kernels::Int8Dot> products;
  std::vector<kernels::Int8DotCall> calls;
  products.reserve(static_cast<size_t>(experts));
  Columns left{}, right{};
  if (blocks.k() > 0) {
    left = cut(call, a, {}, sorted, blocks, left_room);
    right = cut(call, b, draws, sorted, blocks, right_room);
  }
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t first = sorted.begin[static_cast<size_t>(e)], g = blocks.leaf_begin(e);
    const auto count = static_cast<int64_t>(sorted.of(e).size());
    float* const to = out.as<float>() + e * height * width;
    if (count == 0) {
      std::memset(to, 0, static_cast<size_t>(height * width) * sizeof(float));
      continue;
    }
    products.emplace_back(kernels::Int8DotSpec{height, width, kernels::Int8Blocks(count, block)}, call.isa);
    const auto side = [&](const Columns& c) {
      return kernels::Int8Operand{c.q + first, blocks.k(), c.scales + g, blocks.count()};
    };
    calls.push_back({&products.back(), side(left), side(right), to});
  }
  kernels::Int8Dot::run_all(call.pool, calls);
  return Status();
}

}  // namespace ostro::cpu
