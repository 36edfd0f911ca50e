#include "ostro/kernels/attention/paged.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/kernels/attention/paged_runs.h"

namespace ostro::kernels {
namespace {

using ir::kPageSlots;

void check_shape(const PagedAttention& a) {
  OSTRO_CHECK(a.kv_heads >= 1 && a.group >= 1 && a.entries >= 0 && a.pages >= 0,
              "paged attention of kv_heads {}, group {}, entries {}, pages {}", a.kv_heads, a.group,
              a.entries, a.pages);
  for (int64_t dim : {a.key_dim, a.value_dim})
    OSTRO_CHECK(dim >= 1 && dim <= ir::kMaxHeadDim, "head_dim {} is not in [1, {}]", dim, ir::kMaxHeadDim);
  OSTRO_CHECK(a.scale > 0 && a.soft_cap >= 0 && a.window >= 0, "scale {}, soft cap {}, window {}", a.scale,
              a.soft_cap, a.window);
}

int64_t element_bytes(const PagedAttention& a) { return a.type == machine::FloatType::kF32 ? 4 : 2; }

char* at(const void* array, int64_t bytes) {
  return const_cast<char*>(static_cast<const char*>(array)) + bytes;
}

// [key, kv_heads, width]: keys or values of the run's pages, one after the other, with +0 behind heads that
// are narrower. T has the size of an element.
template <class T>
AlignedBytes gathered_pages(const PagedAttention& a, const PagedRun& run, const void* source,
                            const PoolStrides& s, int64_t dim, int64_t width, machine::ThreadPool& pool) {
  const auto pages = static_cast<int64_t>(run.pages.size());
  const int64_t step = a.kv_heads * width;
  AlignedBytes copy = allocate_aligned(static_cast<size_t>(pages * kPageSlots * step) * sizeof(T));
  pool.run_tiles(pages * a.kv_heads, [&](int64_t item) {
    const int64_t p = item / a.kv_heads, h = item % a.kv_heads;
    const T* from =
        static_cast<const T*>(source) + run.pages[static_cast<size_t>(p)] * s.page + h * s.kv_head;
    T* to = reinterpret_cast<T*>(copy.get()) + p * kPageSlots * step + h * width;
    for (int64_t j = 0; j < kPageSlots; ++j, to += step, from += s.slot) {
      for (int64_t d = 0; d < dim; ++d) to[d] = from[d * s.dim];
      for (int64_t d = dim; d < width; ++d) to[d] = T{0};
    }
  });
  return copy;
}

// A run as one attention over its pages, gathered: what they take is little beside many rows.
void attend_gathered(const PagedAttention& a, const PagedRun& run, machine::Isa isa,
                     machine::ThreadPool& pool) {
  const int64_t size = element_bytes(a), width = std::max(a.key_dim, a.value_dim);
  const int64_t heads = a.kv_heads * a.group;
  const auto gather = [&](const void* source, const PoolStrides& s, int64_t dim) {
    return size == 4 ? gathered_pages<uint32_t>(a, run, source, s, dim, width, pool)
                     : gathered_pages<uint16_t>(a, run, source, s, dim, width, pool);
  };
  const AlignedBytes keys = gather(a.key_pool, a.key_strides, a.key_dim);
  const AlignedBytes values = gather(a.value_pool, a.value_strides, a.value_dim);
  // Calls fn(place in q or out, place in a dense [row, heads, width]) for every head of every row.
  const QueryStrides dense{0, heads * width, a.group * width, width};
  const auto for_heads = [&](const QueryStrides& st, const auto& fn) {
    for (int64_t r = 0; r < run.rows; ++r)
      for (int64_t h = 0; h < a.kv_heads; ++h)
        for (int64_t g = 0; g < a.group; ++g)
          fn(((run.first + r) * st.pos + h * st.kv_head + g * st.group) * size,
             (r * dense.pos + h * dense.kv_head + g * dense.group) * size);
  };
  const auto wide_rows = [&] {
    return allocate_zeroed(static_cast<size_t>(run.rows * heads * width * size));
  };
  const int64_t origin = run.position - run.first_page * kPageSlots;
  std::vector<float> statistics(static_cast<size_t>(2 * run.rows * heads));
  AttentionForward f;
  f.shape.batch = 1;
  f.shape.pos = run.rows;
  f.shape.key_pos = origin + run.rows;
  f.shape.kv_heads = a.kv_heads;
  f.shape.group = a.group;
  f.shape.head_dim = width;
  f.shape.type = f.out_type = a.type;
  f.shape.scale = a.scale;
  f.shape.soft_cap = a.soft_cap;
  f.shape.sink = a.sink;
  f.shape.query_origin = &origin;
  f.shape.mask.causal = true;
  f.shape.mask.window = a.window;
  f.k = keys.get();
  f.v = values.get();
  f.k_strides = f.v_strides = {0, a.kv_heads * width, width};
  f.m = statistics.data();
  f.r = f.m + run.rows * heads;
  f.q = at(a.q, run.first * a.q_strides.pos * size);
  f.out = at(a.out, run.first * a.out_strides.pos * size);
  f.q_strides = a.q_strides;
  f.out_strides = a.out_strides;
  AlignedBytes wide_q, wide_out;
  if (a.key_dim < width) {
    wide_q = wide_rows();
    for_heads(a.q_strides, [&](int64_t from, int64_t to) {
      std::memcpy(at(wide_q.get(), to), at(a.q, from), static_cast<size_t>(a.key_dim * size));
    });
    f.q = wide_q.get();
    f.q_strides = dense;
  }
  if (a.value_dim < width) {
    wide_out = wide_rows();
    f.out = wide_out.get();
    f.out_strides = dense;
  }
  attention_forward(f, isa, pool);
  if (wide_out != nullptr)
    for_heads(a.out_strides, [&](int64_t to, int64_t from) {
      std::memcpy(at(a.out, to), at(wide_out.get(), from), static_cast<size_t>(a.value_dim * size));
    });
}

void zero_padding(const PagedAttention& a) {
  const int64_t size = element_bytes(a);
  for (int64_t r = 0; r < a.rows; ++r) {
    if (a.position[r] >= 0) continue;
    for (int64_t h = 0; h < a.kv_heads; ++h)
      for (int64_t g = 0; g < a.group; ++g)
        std::memset(
            at(a.out, (r * a.out_strides.pos + h * a.out_strides.kv_head + g * a.out_strides.group) * size),
            0, static_cast<size_t>(a.value_dim * size));
  }
}

}  // namespace

void paged_attention(const PagedAttention& args, machine::Isa isa, machine::ThreadPool& pool) {
  check_shape(args);
  zero_padding(args);
  for (const PagedRun& run : paged_runs(args)) attend_gathered(args, run, isa, pool);
}

}  // namespace ostro::kernels
