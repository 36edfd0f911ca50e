#include "ostro/kernels/attention/paged/paged.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/kernels/attention/paged/kernels/paged_kernels.h"
#include "ostro/kernels/attention/paged/paged_runs.h"

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

// [kv_head, key, width]: keys or values of the run's pages, one after the other, with +0 behind heads that
// are narrower. T has the size of an element.
template <class T>
AlignedBytes gathered_pages(const PagedAttention& a, const PagedRun& run, const void* source,
                            const PoolStrides& s, int64_t dim, int64_t width, machine::ThreadPool& pool) {
  constexpr int64_t kBlock = 16;  // of a transposition
  const auto pages = static_cast<int64_t>(run.pages.size());
  const int64_t page = kPageSlots * width;
  AlignedBytes copy = allocate_aligned(static_cast<size_t>(a.kv_heads * pages * page) * sizeof(T));
  pool.run_tiles(pages * a.kv_heads, [&](int64_t item) {
    const int64_t p = item / a.kv_heads, h = item % a.kv_heads;
    const T* from =
        static_cast<const T*>(source) + run.pages[static_cast<size_t>(p)] * s.page + h * s.kv_head;
    T* to = reinterpret_cast<T*>(copy.get()) + (h * pages + p) * page;
    if (dim < width) std::memset(to, 0, static_cast<size_t>(page) * sizeof(T));
    if (s.dim == 1) {
      for (int64_t j = 0; j < kPageSlots; ++j)
        std::memcpy(to + j * width, from + j * s.slot, static_cast<size_t>(dim) * sizeof(T));
      return;
    }
    for (int64_t j0 = 0; j0 < kPageSlots; j0 += kBlock)
      for (int64_t d0 = 0; d0 < dim; d0 += kBlock)
        for (int64_t j = j0; j < j0 + kBlock; ++j)
          for (int64_t d = d0; d < std::min(dim, d0 + kBlock); ++d)
            to[j * width + d] = from[j * s.slot + d * s.dim];
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
  f.shape.integers = a.integers;
  f.shape.scale = a.scale;
  f.shape.soft_cap = a.soft_cap;
  f.shape.sink = a.sink;
  f.shape.query_origin = &origin;
  f.shape.mask.causal = true;
  f.shape.mask.window = a.window;
  f.k = keys.get();
  f.v = values.get();
  f.k_strides = f.v_strides = {0, width, static_cast<int64_t>(run.pages.size()) * kPageSlots * width};
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

// True for a run of so many rows that gathering its pages costs less than reading them for every few rows,
// as measured on a Zen 4. Products of integers have no kernel for pages where they lie.
bool is_gathered(const PagedAttention& a, const PagedRun& run) {
  return a.integers || run.rows >= (a.type == machine::FloatType::kF32 ? 48 : 20);
}

const PagedKernels& paged_table_of(machine::Isa isa) {
  switch (isa) {
    case machine::Isa::kGeneric: return paged_generic();
    case machine::Isa::kAvx2: return paged_avx2();
    case machine::Isa::kAmx: return paged_amx();
    default: return paged_avx512();
  }
}

// The memory of an item: what its phases share, then a copy of a page.
struct ItemMemory {
  int64_t q, s, c, r, acc, page;  // floats

  ItemMemory(const PagedAttention& a, const PagedRun& run) {
    const int64_t queries = run.rows * a.group, pages = static_cast<int64_t>(run.pages.size());
    const auto line = [](int64_t n) { return (n + 15) / 16 * 16; };
    const int64_t padded = padded_queries(queries);
    q = padded * padded_dim(a.key_dim);
    s = queries * pages * kPageSlots;
    c = line(queries * pages);
    r = line(queries);
    acc = padded * padded_dim(a.value_dim);
    page = kPageSlots * std::max(padded_dim(a.key_dim), padded_dim(a.value_dim));
  }
  static int64_t padded_dim(int64_t dim) { return (dim + 31) / 32 * 32; }
  int64_t shared() const { return q + s + c + r + acc; }

  PagedItem item(const PagedAttention& a, const PagedRun& run, int64_t head, float* memory) const {
    PagedItem i;
    i.args = &a;
    i.head = head;
    i.first = run.first;
    i.rows = run.rows;
    i.position = run.position;
    i.first_page = run.first_page;
    i.page_count = static_cast<int64_t>(run.pages.size());
    i.pages = run.pages.data();
    i.q = memory;
    i.s = i.q + q;
    i.c = i.s + s;
    i.r = i.c + c;
    i.acc = i.r + r;
    return i;
  }
};

AlignedBytes floats(int64_t n) { return allocate_aligned(static_cast<size_t>(n) * sizeof(float)); }
float* start_of(const AlignedBytes& memory) { return reinterpret_cast<float*>(memory.get()); }

// Many items: each thread takes whole ones.
void attend_items(const PagedAttention& a, const std::vector<PagedRun>& runs, const PagedKernels& kernels,
                  machine::ThreadPool& pool) {
  int64_t needed = 0;
  for (const PagedRun& run : runs) {
    const ItemMemory memory(a, run);
    needed = std::max(needed, memory.shared() + memory.page);
  }
  const auto items = static_cast<int64_t>(runs.size()) * a.kv_heads;
  std::atomic<int64_t> next{0};
  pool.run_tiles(std::min<int64_t>(pool.threads(), items), [&](int64_t) {
    const AlignedBytes memory = floats(needed);
    for (int64_t i = next++; i < items; i = next++) {
      const PagedRun& run = runs[static_cast<size_t>(i / a.kv_heads)];
      const ItemMemory sizes(a, run);
      const PagedItem item = sizes.item(a, run, i % a.kv_heads, start_of(memory));
      float* page = start_of(memory) + sizes.shared();
      kernels.load_queries(item);
      kernels.scores(item, 0, item.page_count, page);
      kernels.exponentials(item, 0, item.rows * a.group);
      kernels.values(item, 0, a.value_dim, page);
    }
  });
}

// Few items for the threads: scores in parallel by page, then exponentials by four queries, then values by
// slice of head_dim.
void attend_phases(const PagedAttention& a, const std::vector<PagedRun>& runs, const PagedKernels& kernels,
                   machine::ThreadPool& pool) {
  struct Task {
    size_t item;
    int64_t begin, end;
  };
  constexpr int64_t kPages = 4, kQueries = 4, kSlice = 32;
  std::vector<PagedItem> items;
  std::vector<AlignedBytes> memories;
  std::vector<Task> scores, exponentials, values;
  int64_t page = 0;
  const auto cut = [&](std::vector<Task>& tasks, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i += step) tasks.push_back({items.size() - 1, i, std::min(n, i + step)});
  };
  for (const PagedRun& run : runs)
    for (int64_t head = 0; head < a.kv_heads; ++head) {
      const ItemMemory sizes(a, run);
      memories.push_back(floats(sizes.shared()));
      items.push_back(sizes.item(a, run, head, start_of(memories.back())));
      page = sizes.page;  // that of all
      cut(scores, items.back().page_count, kPages);
      cut(exponentials, run.rows * a.group, kQueries);
      cut(values, a.value_dim, kSlice);
    }
  const auto run_phase = [&](const std::vector<Task>& tasks, const auto& fn) {
    std::atomic<size_t> next{0};
    pool.run_tiles(std::min<int64_t>(pool.threads(), static_cast<int64_t>(tasks.size())), [&](int64_t) {
      const AlignedBytes copy = floats(page);
      for (size_t i = next++; i < tasks.size(); i = next++)
        fn(items[tasks[i].item], tasks[i].begin, tasks[i].end, start_of(copy));
    });
  };
  for (const PagedItem& item : items) kernels.load_queries(item);
  run_phase(scores, kernels.scores);
  run_phase(exponentials, [&](const PagedItem& item, int64_t begin, int64_t end, float*) {
    kernels.exponentials(item, begin, end);
  });
  run_phase(values, kernels.values);
}

}  // namespace

void paged_attention(const PagedAttention& args, machine::Isa isa, machine::ThreadPool& pool) {
  check_shape(args);
  OSTRO_CHECK(machine::has_isa(isa), "attention kernels for {} on a machine without it",
              machine::isa_name(isa));
  zero_padding(args);
  std::vector<PagedRun> few;
  const int64_t most = std::max<int64_t>(1, kPagedQueries / args.group);
  for (const PagedRun& run : paged_runs(args)) {
    if (is_gathered(args, run)) {
      attend_gathered(args, run, isa, pool);
      continue;
    }
    for (int64_t i = 0; i < run.rows; i += most)
      few.push_back(part_of_run(args, run, i, std::min(run.rows, i + most)));
  }
  if (few.empty()) return;
  if (static_cast<int64_t>(few.size()) * args.kv_heads >= 2 * pool.threads() || pool.threads() == 1)
    attend_items(args, few, paged_table_of(isa), pool);
  else
    attend_phases(args, few, paged_table_of(isa), pool);
}

}  // namespace ostro::kernels
