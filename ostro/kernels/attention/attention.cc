#include "ostro/kernels/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/kernels/attention/kernels/attention_kernels.h"
#include "ostro/kernels/attention/slices/sliced_attention.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/tree.h"

namespace ostro::kernels {

int64_t forward_items(const AttentionShape& s) {
  return s.batch * s.kv_heads * ((s.pos * s.group + kQueryTile - 1) / kQueryTile);
}

int64_t key_block_items(const AttentionShape& s) {
  return s.batch * s.kv_heads * ((s.key_pos + kKeyBlock - 1) / kKeyBlock);
}

int64_t leaf_partials(const AttentionBackward& a) {
  const size_t leaves = std::max<size_t>(1, a.query_leaf_ends.size());
  return std::bit_width(leaves) + 1;  // at most log2 + 1 subtrees
}

namespace {

const AttentionKernels& table_of(machine::Isa isa, machine::FloatType type) {
  switch (isa) {
    case machine::Isa::kGeneric: return attention_generic();
    case machine::Isa::kAvx2: return attention_avx2();
    case machine::Isa::kAvx512: break;
    case machine::Isa::kAvx512Bf16:
      if (type == machine::FloatType::kBf16) return attention_avx512bf16();
      break;
    case machine::Isa::kAmx:
      if (type == machine::FloatType::kBf16) return attention_amx();
      break;
  }
  return attention_avx512();
}

void check_shape(const AttentionShape& s, machine::Isa isa) {
  OSTRO_CHECK(machine::has_isa(isa), "attention kernels for {} on a machine without it",
              machine::isa_name(isa));
  OSTRO_CHECK(s.batch >= 0 && s.pos >= 0 && s.key_pos >= 0 && s.kv_heads >= 1 && s.group >= 1,
              "attention of batch {}, pos {}, key_pos {}, kv_heads {}, group {}", s.batch, s.pos, s.key_pos,
              s.kv_heads, s.group);
  OSTRO_CHECK(s.head_dim >= 1 && s.head_dim <= kMaxHeadDim, "head_dim {} is not in [1, {}]", s.head_dim,
              kMaxHeadDim);
  OSTRO_CHECK(s.scale > 0 && s.soft_cap >= 0 && s.mask.window >= 0, "scale {}, soft cap {}, window {}",
              s.scale, s.soft_cap, s.mask.window);
  OSTRO_CHECK((s.mask.query_segments == nullptr) == (s.mask.key_segments == nullptr),
              "segments of queries and of keys come together");
}

// Runs fn(item, scratch) for every item, each thread with its own scratch, threads taking the next free item.
void run_items(machine::ThreadPool& pool, int64_t items, int64_t scratch_floats,
               machine::FunctionRef<void(int64_t, float*)> fn) {
  if (items == 0) return;
  std::atomic<int64_t> next{0};
  const int64_t runners = std::min<int64_t>(pool.threads(), items);
  pool.run_tiles(runners, [&](int64_t) {
    int64_t item = next.fetch_add(1, std::memory_order_relaxed);
    if (item >= items) return;
    const AlignedBytes scratch = allocate_aligned(static_cast<size_t>(scratch_floats) * sizeof(float));
    for (; item < items; item = next.fetch_add(1, std::memory_order_relaxed))
      fn(item, reinterpret_cast<float*>(scratch.get()));
  });
}

// Cuts the backward pass into jobs. One job for a whole (example, kv head) needs five products per tile.
// Separate jobs for dk and dv (by keys) and for dq (by query rows) need seven, but give every thread work.
// The bits are the same.
std::vector<BackwardJob> backward_jobs(const AttentionShape& s, int64_t threads) {
  const Range rows{0, s.pos}, keys{0, s.key_pos};
  const int64_t heads = s.batch * s.kv_heads;
  const bool whole = 5 * ((heads + threads - 1) / threads) * threads <= 7 * heads;
  const auto up = [](int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; };
  const int64_t pieces = std::max<int64_t>(1, 4 * threads / std::max<int64_t>(1, heads));
  const int64_t key_step = up(s.key_pos / pieces + 1, kKeyBlock);
  const int64_t row_step = up(s.pos / pieces + 1, kQueryTile);
  std::vector<BackwardJob> jobs;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      if (whole) {
        jobs.push_back({b, h, rows, keys, true, true});
        continue;
      }
      for (int64_t j = 0; j < s.key_pos; j += key_step)
        jobs.push_back({b, h, rows, {j, std::min(s.key_pos, j + key_step)}, false, true});
      for (int64_t i = 0; i < s.pos; i += row_step)
        jobs.push_back({b, h, {i, std::min(s.pos, i + row_step)}, keys, true, false});
    }
  return jobs;
}

// -(p_sink * delta) of each query head, one serial chain over the tokens of a leaf, then the tree.
void sink_gradient(const AttentionBackward& a, const float* delta, int64_t head) {
  const AttentionShape& s = a.shape;
  const bool capped = s.soft_cap > 0;
  const float bias = s.sink[head];
  const float m0 = capped ? bias : bias / s.scale;
  const float kappa = capped ? numerics::kLog2e : numerics::attention_kappa(s.scale);
  const int64_t heads = s.kv_heads * s.group;
  const auto chain = [&](int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = (b * s.pos + i) * heads + head;
        const float p = numerics::exp2_block(m0, a.m[at], kappa) * a.r[at];
        sum = sum + -(p * delta[at]);
      }
    return sum;
  };
  if (a.query_leaf_ends.empty()) {
    a.dsink[head] = chain(0, s.pos);
    return;
  }
  std::vector<float> partials;
  int64_t begin = 0;
  for (int64_t end : a.query_leaf_ends) {
    partials.push_back(chain(begin, end));
    begin = end;
  }
  a.dsink[head] = numerics::tree_sum<float>(partials);
}

}  // namespace

// Packs K and V first, where the kernels read them packed: one item per key block. Then one item per tile of
// query rows.
void attention_forward(const AttentionForward& args, machine::Isa isa, machine::ThreadPool& pool) {
  check_shape(args.shape, isa);
  if (args.shape.integers) return sliced_forward(args, isa, pool);
  const AttentionKernels& table = table_of(isa, args.shape.type);
  const int64_t scratch_floats = table.forward_scratch(args);
  AlignedBytes packed;
  if (table.pack != nullptr) {
    packed = allocate_aligned(static_cast<size_t>(table.packed_bytes(args)));
    run_items(pool, key_block_items(args.shape), scratch_floats,
              [&](int64_t item, float* scratch) { table.pack(args, item, packed.get(), scratch); });
  }
  run_items(pool, forward_items(args.shape), scratch_floats,
            [&](int64_t item, float* scratch) { table.forward(args, packed.get(), item, scratch); });
}

// First delta of every query row, then the jobs, then the gradient of the sink of each head.
void attention_backward(const AttentionBackward& args, machine::Isa isa, machine::ThreadPool& pool) {
  const AttentionShape& s = args.shape;
  check_shape(s, isa);
  OSTRO_CHECK(args.query_leaf_ends.empty() || args.query_leaf_ends.back() == s.pos,
              "the last query leaf ends at {}, pos is {}", args.query_leaf_ends.back(), s.pos);
  OSTRO_CHECK(s.sink == nullptr || args.dsink != nullptr, "attention with a sink needs dsink");
  const AttentionKernels& table = table_of(isa, s.type);
  std::vector<float> delta(static_cast<size_t>(s.batch * s.pos * s.kv_heads * s.group));
  pool.parallel_for(s.batch * s.pos,
                    [&](int64_t begin, int64_t end) { table.delta(args, begin, end, delta.data()); });
  const std::vector<BackwardJob> jobs = backward_jobs(s, pool.threads());
  if (s.integers) {
    pool.run_tiles(static_cast<int64_t>(jobs.size()), [&](int64_t i) {
      sliced_backward_job(args, delta.data(), jobs[static_cast<size_t>(i)], isa);
    });
  } else {
    int64_t scratch_floats = 0;
    for (const BackwardJob& job : jobs)
      scratch_floats = std::max(scratch_floats, table.backward_scratch(args, job));
    run_items(pool, static_cast<int64_t>(jobs.size()), scratch_floats, [&](int64_t i, float* scratch) {
      table.backward(args, delta.data(), jobs[static_cast<size_t>(i)], scratch);
    });
  }
  if (s.sink != nullptr)
    pool.parallel_for(s.kv_heads * s.group, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) sink_gradient(args, delta.data(), head);
    });
}

}  // namespace ostro::kernels
