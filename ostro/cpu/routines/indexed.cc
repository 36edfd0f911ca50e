// Ops that read or write at positions given by an index (docs/spec/numerics.md, N10). Dense operands.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/elements.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/order.h"
#include "ostro/kernels/losses/embedding.h"

namespace ostro::cpu {
namespace {

int64_t stride_of(const Array& a, const std::string& axis) {
  return a.view->strides[static_cast<size_t>(a.shape().find(axis))];
}

// True when the op looks up rows of a table, as an embedding does: the index shares no axis with the table,
// and the gathered axis is the table's first.
bool is_embedding(const Array& table, const Array& index, const std::string& axis) {
  if (table.shape().find(axis) != 0) return false;
  for (const ir::Axis& a : index.shape().axes)
    if (table.shape().has(a.name)) return false;
  return table.dtype() == ir::DType::f32 || table.dtype() == ir::DType::bf16;
}

machine::FloatType float_type(ir::DType d) {
  return d == ir::DType::bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32;
}

// Positions that a top_k of a line finds one by one; for more of them sorting the line is faster.
constexpr int64_t kFewest = 32;

// order[0] .. order[keep - 1]: the positions of the first `keep` of n elements, best first. before(i, j):
// whether element i comes before element j.
template <typename Before>
void find_first(int64_t n, int64_t keep, std::vector<int32_t>& order, Before&& before) {
  int64_t found = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (found == keep && !before(i, order[static_cast<size_t>(keep - 1)])) continue;
    int64_t at = found < keep ? found++ : keep - 1;
    for (; at > 0 && before(i, order[static_cast<size_t>(at - 1)]); --at)
      order[static_cast<size_t>(at)] = order[static_cast<size_t>(at - 1)];
    order[static_cast<size_t>(at)] = i;
  }
}

}  // namespace

Status run_gather(const OpCall& call) {
  const Array &table = call.in[0], &index = call.in[1], &out = call.out[0];
  const std::string& axis = call.attrs.str("axis");
  const int64_t rows = table.shape().size_of(axis), origin = integer_of(call.in[2]);
  if (out.count() == 0) return Status();
  if (is_embedding(table, index, axis)) {
    kernels::EmbeddingGather g;
    g.tokens = index.count();
    g.vocab = rows;
    g.embed = out.count() / g.tokens;
    g.type = float_type(table.dtype());
    g.table = table.data;
    g.table_stride = g.out_stride = g.embed;
    g.indices = index.as<int32_t>();
    g.origin = origin;
    g.out = out.data;
    kernels::embedding_gather(g, call.pool);
    return Status();
  }
  const int64_t stride = stride_of(table, axis), size = ir::dtype_size(table.dtype());
  const std::vector<ir::Axis> rest(out.shape().axes.begin() + index.shape().rank(), out.shape().axes.end());
  const std::vector<int64_t> base = offsets_over(index.shape().axes, *table.view);
  const std::vector<int64_t> inner = offsets_over(rest, *table.view);
  const auto width = static_cast<int64_t>(inner.size());
  call.pool.parallel_for(
      index.count(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          char* to = out.data + i * width * size;
          const int64_t row = index.as<int32_t>()[i] - origin;
          if (row < 0 || row >= rows) {
            std::memset(to, 0, static_cast<size_t>(width * size));
            continue;
          }
          const char* from = table.data + (base[static_cast<size_t>(i)] + row * stride) * size;
          for (int64_t k = 0; k < width; ++k)
            std::memcpy(to + k * size, from + inner[static_cast<size_t>(k)] * size,
                        static_cast<size_t>(size));
        }
      },
      std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width)));
  return Status();
}

Status run_scatter_add(const OpCall& call) {
  const Array &update = call.in[0], &index = call.in[1], &out = call.out[0];
  const std::string& axis = call.attrs.str("axis");
  const auto batch = call.attrs.has("batch") ? call.attrs.strs("batch") : std::vector<std::string>{};
  const int64_t rows = out.shape().size_of(axis), origin = integer_of(call.in[2]);
  const std::vector<ir::Axis> summed = axes_without(index.shape(), batch);
  const Contraction contraction = contraction_of(summed, call.leaves);
  // f32 elements of the update, widened when it is bf16.
  std::vector<float> widened;
  const float* updates = update.as<float>();
  if (update.dtype() == ir::DType::bf16) {
    widened.resize(static_cast<size_t>(update.count()));
    load_run(update.data, update.dtype(), 1, update.count(), widened.data());
    updates = widened.data();
  }
  bool tokens_first = batch.empty() && call.attrs.i64("position") == 0 && contraction.tree_counts.empty();
  for (size_t i = 0; i < index.shape().axes.size() && tokens_first; ++i)
    tokens_first = update.shape().axes[i].name == index.shape().axes[i].name;
  if (tokens_first && index.count() > 0 && rows > 0) {
    kernels::EmbeddingScatterAdd s;
    s.tokens = index.count();
    s.vocab = rows;
    s.embed = update.count() / s.tokens;
    s.update = updates;
    s.update_stride = s.grad_stride = s.embed;
    s.indices = index.as<int32_t>();
    s.origin = origin;
    s.grad = out.as<float>();
    kernels::embedding_scatter_add(s, call.pool);
    return Status();
  }
  const std::vector<ir::Axis> kept = axes_without(out.shape(), {axis});
  const int64_t stride = stride_of(out, axis);
  const auto source_in_update = in_order(offsets_over(summed, *update.view), contraction);
  const auto source_in_index = in_order(offsets_over(summed, *index.view), contraction);
  const auto kept_in_update = offsets_over(kept, *update.view),
             kept_in_index = offsets_over(kept, *index.view);
  const auto kept_in_out = offsets_over(kept, *out.view);
  const auto leaves = static_cast<int64_t>(contraction.segment_ends.size());
  call.pool.parallel_for(count_of(kept), [&](int64_t begin, int64_t end) {
    std::vector<float> sums(static_cast<size_t>(leaves * rows)), column(static_cast<size_t>(leaves));
    for (int64_t i = begin; i < end; ++i) {
      const auto k = static_cast<size_t>(i);
      std::fill(sums.begin(), sums.end(), 0.0f);
      size_t r = 0;
      for (int64_t leaf = 0; leaf < leaves; ++leaf)
        for (; r < static_cast<size_t>(contraction.segment_ends[static_cast<size_t>(leaf)]); ++r) {
          const int64_t row = index.as<int32_t>()[source_in_index[r] + kept_in_index[k]] - origin;
          if (row < 0 || row >= rows) continue;
          float& target = sums[static_cast<size_t>(leaf * rows + row)];
          target = target + updates[source_in_update[r] + kept_in_update[k]];
        }
      for (int64_t row = 0; row < rows; ++row) {
        column.resize(static_cast<size_t>(leaves));
        for (int64_t leaf = 0; leaf < leaves; ++leaf)
          column[static_cast<size_t>(leaf)] = sums[static_cast<size_t>(leaf * rows + row)];
        out.as<float>()[kept_in_out[k] + row * stride] = join_leaves(column, contraction.tree_counts);
      }
    }
  });
  return Status();
}

Status run_sort(const OpCall& call) {
  const Array &x = call.in[0], &out = call.out[0], &indices = call.out[1];
  const std::string& axis = call.attrs.str("axis");
  const bool descending = call.kind == ir::OpKind::top_k || call.attrs.i64("descending", 0) != 0;
  const int64_t n = x.shape().size_of(axis), keep = out.shape().size_of(axis);
  const int64_t from_stride = stride_of(x, axis), to_stride = stride_of(out, axis);
  const std::vector<ir::Axis> kept = axes_without(x.shape(), {axis});
  const std::vector<int64_t> from = offsets_over(kept, *x.view), to = offsets_over(kept, *out.view);
  const auto size = static_cast<size_t>(ir::dtype_size(x.dtype()));
  with_element_type(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    call.pool.parallel_for(static_cast<int64_t>(from.size()), [&](int64_t begin, int64_t end) {
      std::vector<T> line(static_cast<size_t>(n));
      std::vector<int32_t> order(static_cast<size_t>(n));
      for (int64_t l = begin; l < end; ++l) {
        const int64_t first = from[static_cast<size_t>(l)], target = to[static_cast<size_t>(l)];
        load_run(x.data + first * static_cast<int64_t>(size), x.dtype(), from_stride, n, line.data());
        const auto before = [&](int32_t i, int32_t j) {
          const T a = line[static_cast<size_t>(i)], b = line[static_cast<size_t>(j)];
          if (descending ? is_below(b, a) : is_below(a, b)) return true;
          if (descending ? is_below(a, b) : is_below(b, a)) return false;
          return i < j;
        };
        if (keep < n && keep <= kFewest) {
          find_first(n, keep, order, before);
        } else {
          std::iota(order.begin(), order.end(), 0);
          std::sort(order.begin(), order.end(), before);
        }
        for (int64_t i = 0; i < keep; ++i) {
          const int32_t index = order[static_cast<size_t>(i)];
          std::memcpy(out.data + static_cast<size_t>(target + i * to_stride) * size,
                      x.data + static_cast<size_t>(first + index * from_stride) * size, size);
          indices.as<int32_t>()[target + i * to_stride] = index;
        }
      }
    });
  });
  return Status();
}

}  // namespace ostro::cpu
