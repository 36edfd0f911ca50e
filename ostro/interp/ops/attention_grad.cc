// Attention backward (numerics.md N9, N21). dq chains over keys; dk and dv chain over the heads that share a
// key and over queries, cut by the leaves of the query axis.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"
#include "ostro/interp/ops/attention_rows.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::interp {
namespace {

using numerics::SlicedRow;

// Recomputed per row and key; +0 where the key is masked.
struct Probabilities {
  std::vector<float> p, ds;  // [row, key]
  std::vector<float> delta;  // [row]
  std::vector<SlicedRow> do_slices;
};

Probabilities recompute(const AttentionRows& rows, const std::vector<float>& o, const std::vector<float>& m,
                        const std::vector<float>& r, const std::vector<float>& d_o) {
  const auto cells = rows.q_at.size() * static_cast<size_t>(rows.keys);
  Probabilities result{std::vector<float>(cells, 0.0f), std::vector<float>(cells, 0.0f), {}, {}};
  if (rows.sliced) result.do_slices = rows.slices_of(d_o);
  for (size_t row = 0; row < rows.q_at.size(); ++row) {
    const float* o_row = o.data() + rows.q_at[row];
    const float* do_row = d_o.data() + rows.q_at[row];
    const float delta =
        numerics::striped_sum<float>(rows.head_dim, [&](int64_t d) { return do_row[d] * o_row[d]; });
    result.delta.push_back(delta);
    for (int64_t key = 0; key < rows.keys; ++key) {
      if (!rows.sees(row, key)) continue;
      float t = 0.0f;
      const float s = rows.score(row, key, &t);
      const float p = numerics::exp2_block(s, m[row], rows.kappa) * r[row];
      const float* v_row = rows.v.data() + rows.k_at[row] + key * rows.key_stride;
      const float dp = rows.sliced ? numerics::dot_sliced(rows.v_slices[rows.key_index(row, key)],
                                                          result.do_slices[rows.query_index(row)])
                                   : rows.contract(
                                         rows.head_dim, [&](int64_t d) { return do_row[d]; },
                                         [&](int64_t d) { return v_row[d]; });
      float ds = p * (dp - delta);
      if (rows.soft_cap != 0.0f) ds = ds * (1.0f - t * t);
      result.p[row * static_cast<size_t>(rows.keys) + key] = p;
      result.ds[row * static_cast<size_t>(rows.keys) + key] = ds;
    }
  }
  return result;
}

// The rows that share one key, leaf by leaf: lists of rows, heads ascending, then queries ascending.
struct SharingRows {
  std::vector<Axis> batch;     // k's axes without key and head_dim: one set of rows per point
  std::vector<Axis> chained;   // head groups, then query
  std::vector<int64_t> first;  // row of each batch point
  std::vector<int64_t> next;   // offset of each chained point
  ContractionLeaves leaves;
  int64_t queries = 0;
};

// Of the axes these gradients chain over, only the query axis is cut into leaves: head groups, and the batch
// of a sink, are one chain even if the table has them (N9).
ContractionLeaves query_cut(const Call& call, const std::vector<Axis>& chained) {
  const std::string& query = call.op.attrs.str("query");
  return cut(chained, numerics::LeafTable{{{query, call.leaves.count(query)}}});
}

SharingRows sharing_rows(const Call& call, const AttentionRows& rows) {
  const std::string& query = call.op.attrs.str("query");
  const Shape m_shape{DType::f32, rows.axes};
  SharingRows sharing;
  sharing.batch = axes_not_in(call.shape(1), {call.op.attrs.str("key"), call.op.attrs.str("head_dim")});
  for (const Axis& a : rows.axes)
    if (a.name != query && !call.shape(1).has(a.name)) sharing.chained.push_back(a);
  sharing.queries = m_shape.size_of(query);
  sharing.chained.push_back({query, sharing.queries});
  sharing.first = offsets(sharing.batch, m_shape);
  sharing.next = offsets(sharing.chained, m_shape);
  sharing.leaves = query_cut(call, sharing.chained);
  return sharing;
}

// One element of dk or dv: per leaf the chain of factor(row) * value(row), then the tree. In bf16 a new head
// starts a new group, and groups are counted by absolute position: places before the first row are +0.
template <typename Factor, typename Value>
float contract_rows(const AttentionRows& rows, const SharingRows& sharing, int64_t first, Factor&& factor,
                    Value&& value) {
  std::vector<float> partials;
  for (const std::vector<int64_t>& leaf : sharing.leaves.indices) {
    float acc = 0.0f;
    for (size_t begin = 0, end = 0; begin < leaf.size(); begin = end) {
      std::vector<float> a, b;  // of one head
      const int64_t head = leaf[begin] / sharing.queries;
      a.assign(static_cast<size_t>(rows.position[first + sharing.next[leaf[begin]]] % numerics::kDotGroup),
               0.0f);
      b = a;
      for (; end < leaf.size() && leaf[end] / sharing.queries == head; ++end) {
        a.push_back(factor(first + sharing.next[leaf[end]]));
        b.push_back(value(first + sharing.next[leaf[end]]));
      }
      acc = rows.contract(
          static_cast<int64_t>(a.size()), [&](int64_t i) { return a[i]; }, [&](int64_t i) { return b[i]; },
          acc);
    }
    partials.push_back(acc);
  }
  return join(partials, sharing.leaves.counts);
}

// N21: dq of one row, unscaled: block by block of keys.
std::vector<float> sum_of_keys(const AttentionRows& rows, size_t row, const std::vector<float>& ds) {
  std::vector<float> sum(static_cast<size_t>(rows.head_dim), 0.0f);
  for (int64_t block = 0; block < rows.keys; block += kKeyBlock) {
    std::vector<float> factors;
    std::vector<const SlicedRow*> keys;
    for (int64_t key = block; key < std::min(rows.keys, block + kKeyBlock); ++key) {
      factors.push_back(ds[row * static_cast<size_t>(rows.keys) + static_cast<size_t>(key)]);
      keys.push_back(rows.sees(row, key) ? &rows.k_slices[rows.key_index(row, key)] : nullptr);
    }
    numerics::add_rows(numerics::LeftOperand::kRows, factors, keys, sum);
  }
  return sum;
}

// N21: one row of dk or dv, unscaled: per leaf the chain over blocks of 128 positions of each query head,
// then the tree. `factors` is p or ds, `slices` those of do or q.
std::vector<float> sum_of_queries(const AttentionRows& rows, const SharingRows& sharing, int64_t first,
                                  int64_t key, const std::vector<float>& factors,
                                  const std::vector<SlicedRow>& slices) {
  std::vector<std::vector<float>> partials;  // of each leaf
  for (const std::vector<int64_t>& leaf : sharing.leaves.indices) {
    std::vector<float> sum(static_cast<size_t>(rows.head_dim), 0.0f);
    for (size_t begin = 0, end = 0; begin < leaf.size(); begin = end) {
      const auto block_of = [&](size_t i) {
        const int64_t position = rows.position[first + sharing.next[leaf[i]]];
        const int64_t place = (position % kKeyBlock + kKeyBlock) % kKeyBlock;
        return std::pair(leaf[i] / sharing.queries, position - place);
      };
      std::vector<float> of_block;
      std::vector<const SlicedRow*> queries;
      for (; end < leaf.size() && block_of(end) == block_of(begin); ++end) {
        const auto row = static_cast<size_t>(first + sharing.next[leaf[end]]);
        of_block.push_back(factors[row * static_cast<size_t>(rows.keys) + static_cast<size_t>(key)]);
        queries.push_back(rows.sees(row, key) ? &slices[rows.query_index(row)] : nullptr);
      }
      numerics::add_rows(numerics::LeftOperand::kFactors, of_block, queries, sum);
    }
    partials.push_back(std::move(sum));
  }
  std::vector<float> result;
  for (int64_t d = 0; d < rows.head_dim; ++d) {
    std::vector<float> of_element;
    for (const std::vector<float>& partial : partials) of_element.push_back(partial[static_cast<size_t>(d)]);
    result.push_back(join(of_element, sharing.leaves.counts));
  }
  return result;
}

// -(p_sink * delta), serial over the rows each sink belongs to.
Buffer sink_gradient(const Call& call, const AttentionRows& rows, const std::vector<float>& m,
                     const std::vector<float>& r, const std::vector<float>& delta) {
  const Shape& sink = call.in.back().shape();
  const Shape m_shape{DType::f32, rows.axes};
  const std::vector<Axis> summed = axes_not_in(m_shape, sink.names());
  const std::vector<int64_t> first = offsets(sink.axes, m_shape), next = offsets(summed, m_shape);
  const ContractionLeaves leaves = query_cut(call, summed);
  std::vector<float> result;
  for (int64_t start : first) {
    std::vector<float> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices)
      partials.push_back(numerics::serial_sum<float>(static_cast<int64_t>(leaf.size()), [&](int64_t i) {
        const int64_t row = start + next[leaf[i]];
        const float p_sink = numerics::exp2_block(rows.start_max(row), m[row], rows.kappa) * r[row];
        return -(p_sink * delta[row]);
      }));
    result.push_back(join(partials, leaves.counts));
  }
  return make_buffer(sink, result);
}

}  // namespace

Result<Buffers> run_attention_grad(const Call& call) {
  if (call.shape(3) != call.shape(0) || call.shape(6) != call.shape(0))
    return invalid_argument(fmt::format("attention_grad: o {} and do {} must be as q {}", call.shape(3).str(),
                                        call.shape(6).str(), call.shape(0).str()));
  const AttentionRows rows(call, 7);
  const std::vector<float> o = elements<float>(call.in[3]), m = elements<float>(call.in[4]),
                           r = elements<float>(call.in[5]), d_o = elements<float>(call.in[6]);
  const Probabilities probabilities = recompute(rows, o, m, r, d_o);
  auto p = [&](int64_t row, int64_t key) { return rows.factor(probabilities.p[row * rows.keys + key]); };
  auto ds = [&](int64_t row, int64_t key) { return rows.factor(probabilities.ds[row * rows.keys + key]); };

  std::vector<float> dq(rows.q.size()), dk(rows.k.size()), dv(rows.v.size());
  for (int64_t row = 0; row < static_cast<int64_t>(rows.q_at.size()); ++row) {
    const std::vector<float> of_integers =
        rows.sliced ? sum_of_keys(rows, static_cast<size_t>(row), probabilities.ds) : std::vector<float>();
    for (int64_t d = 0; d < rows.head_dim; ++d) {
      const float sum =
          rows.sliced ? of_integers[static_cast<size_t>(d)]
                      : rows.contract(
                            rows.keys, [&](int64_t key) { return ds(row, key); },
                            [&](int64_t key) { return rows.k[rows.k_at[row] + key * rows.key_stride + d]; });
      dq[rows.q_at[row] + d] = sum * rows.scale + 0.0f;
    }
  }
  const SharingRows sharing = sharing_rows(call, rows);
  const bool partial = call.op.attrs.i64("partial", 0) != 0;
  for (int64_t first : sharing.first)
    for (int64_t key = 0; key < rows.keys; ++key) {
      std::vector<float> sum_k, sum_v;
      if (rows.sliced) {
        sum_k = sum_of_queries(rows, sharing, first, key, probabilities.ds, rows.q_slices);
        sum_v = sum_of_queries(rows, sharing, first, key, probabilities.p, probabilities.do_slices);
      }
      for (int64_t d = 0; d < rows.head_dim; ++d) {
        const int64_t at = rows.k_at[first] + key * rows.key_stride + d;
        if (!rows.sliced) {
          sum_k.push_back(contract_rows(
              rows, sharing, first, [&](int64_t row) { return ds(row, key); },
              [&](int64_t row) { return rows.q[rows.q_at[row] + d]; }));
          sum_v.push_back(contract_rows(
              rows, sharing, first, [&](int64_t row) { return p(row, key); },
              [&](int64_t row) { return d_o[rows.q_at[row] + d]; }));
        }
        const float k = sum_k[static_cast<size_t>(d)], v = sum_v[static_cast<size_t>(d)];
        // A partial of a tree over workers is scaled after that tree.
        dk[at] = partial ? k + 0.0f : k * rows.scale + 0.0f;
        dv[at] = v + 0.0f;
      }
    }
  Buffers results{make_buffer(call.out[0], dq), make_buffer(call.out[1], dk), make_buffer(call.out[2], dv)};
  if (rows.has_sink()) results.push_back(sink_gradient(call, rows, m, r, probabilities.delta));
  return results;
}

}  // namespace ostro::interp
