// quantize and dot_int8 (docs/spec/numerics.md, N20). Values whose contracted axis lies at even distances go
// to the kernels of products/; others are cut by the definition, rows shared among the threads.
#include <algorithm>

#include "ostro/cpu/integers/draws.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/bf16.h"
#include "ostro/products/int8_dot.h"
#include "ostro/products/int8_quantize.h"

namespace ostro::cpu {
namespace {

// The fewest columns, on average, that the kernels take at once.
constexpr int64_t kLeastRun = 16;

Draws draws_of(const OpCall& call, const std::vector<ir::Axis>& rows, const std::vector<ir::Axis>& over) {
  if (call.attrs.str("rounding") != "dithered") return {};
  return draws_in_whole(call.in[0].shape(), call.in[1], call.in.subspan(2), call.attrs.ints("global_sizes"),
                        rows, over);
}

// Runs the kernels if x is a matrix of which one side, and the draws along it, lie together. Otherwise
// returns false. The lists of places begin with 0, those of draws with the first index of a row.
bool quantize_matrix(const OpCall& call, const std::vector<int64_t>& row_at, const std::vector<int64_t>& k_at,
                     const Draws& draws) {
  const auto rows = static_cast<int64_t>(row_at.size()), size = static_cast<int64_t>(k_at.size());
  const kernels::Int8Blocks blocks(size, call.attrs.i64("block"));
  const kernels::Int8Output out{call.out[0].as<int8_t>(), size, call.out[1].as<float>(), blocks.count()};
  const kernels::GemmType type = gemm_type(call.in[0].dtype());
  kernels::Int8Dither dither{draws.key};
  const kernels::Int8Dither* dithered = draws.any ? &dither : nullptr;
  if (is_contiguous(k_at) && is_contiguous(draws.k_at)) {
    dither.first = draws.row_at.data();
    kernels::quantize_rows(call.pool, call.isa,
                           {call.in[0].data, type, rows, size, 0, dithered, row_at.data()}, blocks, out);
    return true;
  }
  // Columns by runs of neighbours: all of a matrix, those of one expert.
  const auto follows = [](const std::vector<int64_t>& list, int64_t i) {
    return list.empty() || list[static_cast<size_t>(i)] == list[static_cast<size_t>(i) - 1] + 1;
  };
  std::vector<int64_t> starts{0};
  for (int64_t i = 1; i < rows; ++i)
    if (!follows(row_at, i) || !follows(draws.row_at, i)) starts.push_back(i);
  starts.push_back(rows);
  if (rows < kLeastRun * (static_cast<int64_t>(starts.size()) - 1) && starts.size() > 2) return false;
  std::vector<int64_t> first, at(k_at.size());
  for (size_t run = 0; run + 1 < starts.size(); ++run) {
    const auto begin = static_cast<size_t>(starts[run]);
    first = draws.k_at;
    for (int64_t& f : first) f += draws.row_at[begin];
    for (size_t k = 0; k < at.size(); ++k) at[k] = k_at[k] + row_at[begin];
    dither.first = first.data();
    kernels::quantize_columns(
        call.pool, call.isa,
        {call.in[0].data, type, size, starts[run + 1] - starts[run], 0, dithered, at.data()}, blocks,
        {out.q + starts[run] * size, size, out.scales + starts[run] * blocks.count(), blocks.count()});
  }
  return true;
}

template <typename T>
void quantize_rows_of(const OpCall& call) {
  const Array& x = call.in[0];
  const auto& names = call.attrs.strs("over");
  const std::vector<ir::Axis> rows = axes_without(x.shape(), names), over = axes_named(x.shape(), names);
  const std::vector<int64_t> row_at = offsets_over(rows, *x.view), k_at = offsets_over(over, *x.view);
  const Draws draws = draws_of(call, rows, over);
  const auto size = static_cast<int64_t>(k_at.size());
  const int64_t block = call.attrs.i64("block"), blocks = (size + block - 1) / block;
  if (size == 0 || row_at.empty() || quantize_matrix(call, row_at, k_at, draws)) return;
  call.pool.parallel_for(static_cast<int64_t>(row_at.size()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto at = static_cast<size_t>(r);
      quantize_row(x.as<T>() + row_at[at], k_at, block, draws, draws.any ? draws.row_at[at] : 0, draws.k_at,
                   call.out[0].as<int8_t>() + r * size, call.out[1].as<float>() + r * blocks);
    }
  });
}

}  // namespace

Status run_quantize(const OpCall& call) {
  if (call.in[0].dtype() == ir::DType::bf16)
    quantize_rows_of<numerics::Bf16>(call);
  else
    quantize_rows_of<float>(call);
  return Status();
}

Status run_dot_int8(const OpCall& call) {
  const Array& out = call.out[0];
  if (out.count() == 0) return Status();
  const auto& names = call.attrs.strs("over");
  const int64_t size = count_of(axes_named(call.in[0].shape(), names)),
                columns = count_of(axes_without(call.in[2].shape(), names));
  kernels::Int8DotSpec spec{out.count() / columns, columns,
                            kernels::Int8Blocks(size, call.attrs.i64("block"))};
  spec.out = gemm_type(out.dtype());
  const int64_t blocks = spec.blocks.count();
  const auto operand = [&](size_t i) {
    return kernels::Int8Operand{call.in[i].as<int8_t>(), size, call.in[i + 1].as<float>(), blocks};
  };
  kernels::Int8Dot(std::move(spec), call.isa).run(call.pool, operand(0), operand(2), out.data, call.go_on);
  return Status();
}

}  // namespace ostro::cpu
