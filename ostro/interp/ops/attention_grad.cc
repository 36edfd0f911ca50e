// Attention backward (numerics.md N9). dq chains over keys; dk and dv chain over the heads that share a key
// and over queries, cut by the leaves of the query axis.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"
#include "ostro/interp/ops/attention_rows.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::interp {
namespace {

// Recomputed per row and key; +0 where the key is masked.
struct Probabilities {
  std::vector<float> p, ds;  // [row, key]
  std::vector<float> delta;  // [row]
};

Probabilities recompute(const AttentionRows& rows, const std::vector<float>& o, const std::vector<float>& m,
                        const std::vector<float>& r, const std::vector<float>& d_o) {
  const auto cells = rows.q_at.size() * static_cast<size_t>(rows.keys);
  Probabilities result{std::vector<float>(cells, 0.0f), std::vector<float>(cells, 0.0f), {}};
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
      const float dp = rows.contract(
          rows.head_dim, [&](int64_t d) { return do_row[d]; }, [&](int64_t d) { return v_row[d]; });
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
  for (int64_t row = 0; row < static_cast<int64_t>(rows.q_at.size()); ++row)
    for (int64_t d = 0; d < rows.head_dim; ++d) {
      const float sum = rows.contract(
          rows.keys, [&](int64_t key) { return ds(row, key); },
          [&](int64_t key) { return rows.k[rows.k_at[row] + key * rows.key_stride + d]; });
      dq[rows.q_at[row] + d] = sum * rows.scale + 0.0f;
    }
  const SharingRows sharing = sharing_rows(call, rows);
  const bool partial = call.op.attrs.i64("partial", 0) != 0;
  for (int64_t first : sharing.first)
    for (int64_t key = 0; key < rows.keys; ++key)
      for (int64_t d = 0; d < rows.head_dim; ++d) {
        const int64_t at = rows.k_at[first] + key * rows.key_stride + d;
        const float sum_k = contract_rows(
            rows, sharing, first, [&](int64_t row) { return ds(row, key); },
            [&](int64_t row) { return rows.q[rows.q_at[row] + d]; });
        const float sum_v = contract_rows(
            rows, sharing, first, [&](int64_t row) { return p(row, key); },
            [&](int64_t row) { return d_o[rows.q_at[row] + d]; });
        // A partial of a tree over workers is scaled after that tree.
        dk[at] = partial ? sum_k + 0.0f : sum_k * rows.scale + 0.0f;
        dv[at] = sum_v + 0.0f;
      }
  Buffers results{make_buffer(call.out[0], dq), make_buffer(call.out[1], dk), make_buffer(call.out[2], dv)};
  if (rows.has_sink()) results.push_back(sink_gradient(call, rows, m, r, probabilities.delta));
  return results;
}

}  // namespace ostro::interp
