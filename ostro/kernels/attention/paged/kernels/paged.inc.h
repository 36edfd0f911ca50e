// paged_table: the kernels of paged attention over a vector type V. Lanes are keys in scores and elements of
// head_dim in values, so every chain of N9 is in one lane.
#pragma once

#include "ostro/kernels/attention/kernels/attention_common.inc.h"
#include "ostro/kernels/attention/paged/kernels/paged_kernels.h"
#include "ostro/machine/vector/exp2.inc.h"

namespace ostro::kernels {

template <bool kBf16>
struct PagedElement {
  using Type = float;
};
template <>
struct PagedElement<true> {
  using Type = uint16_t;
};

// Accumulators that a tile keeps in registers.
template <class V>
inline constexpr int kPagedTile = V::kWidth == 16 ? 16 : 8;
// Vectors beside each other in a tile of Q queries; bf16 has two chains for each.
template <class V, bool kBf16, int Q>
inline constexpr int kPagedVectors = kPagedTile<V> / Q / (kBf16 ? 2 : 1) > 8
                                         ? 8
                                         : kPagedTile<V> / Q / (kBf16 ? 2 : 1);

template <class V>
inline V load_element(const float* p) {
  return V::load(p);
}
template <class V>
inline V load_element(const uint16_t* p) {
  return V::load_bf16(p);
}

// Asks for the N vectors at p, which the same tile of the next page reads: pages lie apart, so no processor
// foresees them.
template <class V, int N, class T>
inline void fetch_ahead(const T* p) {
  constexpr int kBytes = N * V::kWidth * static_cast<int>(sizeof(T));
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + i, 0, 2);
}

// Calls fn with the number of queries of each tile, a constant of 4, 2 or 1, and with its first query.
template <class F>
inline void for_query_tiles(int64_t queries, F&& fn) {
  int64_t i = 0;
  for (; i + 4 <= queries; i += 4) fn.template operator()<4>(i);
  for (; i + 2 <= queries; i += 2) fn.template operator()<2>(i);
  for (; i < queries; ++i) fn.template operator()<1>(i);
}

// The scores of Q queries and N vectors of keys (N6, N7). Keys are [dim][slot], slots side by side.
template <class V, bool kBf16, int Q, int N, class T>
inline void score_tile(const T* keys, const T* next, int64_t step, int64_t dims, const float* q, int64_t wide,
                       float* s, int64_t ld) {
  constexpr int kW = V::kWidth;
  V sum[Q][N];
  for (int i = 0; i < Q; ++i)
    for (int n = 0; n < N; ++n) sum[i][n] = V::zero();
  const auto add = [&](V(&to)[Q][N], int64_t d) {
    V k[N];
    fetch_ahead<V, N>(next + d * step);
    for (int n = 0; n < N; ++n) k[n] = load_element<V>(keys + d * step + n * kW);
    for (int i = 0; i < Q; ++i) {
      const V x = V::set1(q[i * wide + d]);
      for (int n = 0; n < N; ++n) to[i][n] = V::fma(x, k[n], to[i][n]);
    }
  };
  if constexpr (kBf16) {
    // A padded product could change the sign of a zero only, which no score needs.
    for (int64_t group = 0; group < dims; group += 32) {
      V even[Q][N], odd[Q][N];
      for (int i = 0; i < Q; ++i)
        for (int n = 0; n < N; ++n) even[i][n] = odd[i][n] = V::zero();
      const int64_t end = group + 32 < dims ? group + 32 : dims;
      int64_t d = group;
      for (; d + 2 <= end; d += 2) {
        add(even, d);
        add(odd, d + 1);
      }
      if (d < end) add(even, d);
      for (int i = 0; i < Q; ++i)
        for (int n = 0; n < N; ++n) sum[i][n] = sum[i][n] + (even[i][n] + odd[i][n]);
    }
  } else {
    for (int64_t d = 0; d < dims; ++d) add(sum, d);
  }
  for (int i = 0; i < Q; ++i)
    for (int n = 0; n < N; ++n) sum[i][n].store(s + i * ld + n * kW);
}

// Where query i of the item begins in an array of queries or results.
template <class V>
inline int64_t query_offset(const PagedItem& item, const QueryStrides& st, int64_t i) {
  const int64_t group = item.args->group;
  return (item.first + i / group) * st.pos + item.head * st.kv_head + i % group * st.group;
}

// Where the item's page p has its keys or values in a pool, from element `first` of head_dim on, and where
// the page has them that is read after it; of the last one before `end` this is the page itself.
template <class V, class T>
struct PageRows {
  const T *rows, *next;
};
template <class V, class T>
inline PageRows<V, T> page_rows(const PagedItem& item, const void* pool, const PoolStrides& st, int64_t p,
                                int64_t end, int64_t first = 0) {
  const T* head = static_cast<const T*>(pool) + item.head * st.kv_head + first * st.dim;
  return {head + item.pages[p] * st.page, head + item.pages[p + 1 < end ? p + 1 : p] * st.page};
}

// A page's keys in the order [dim][slot].
template <class V, class T>
inline void copy_keys(const T* keys, const PoolStrides& st, int64_t dims, T* to) {
  for (int64_t j = 0; j < kKeyBlock; ++j)
    for (int64_t d = 0; d < dims; ++d) to[d * kKeyBlock + j] = keys[j * st.slot + d * st.dim];
}

// The values of some slots of a page in the order [slot][dim], with zeros behind `dims` elements up to
// `wide`.
template <class V, class T>
inline void copy_values(const T* values, const PoolStrides& st, Range slots, int64_t dims, int64_t wide,
                        T* to) {
  for (int64_t j = slots.begin; j < slots.end; ++j)
    for (int64_t d = 0; d < wide; ++d) to[j * wide + d] = d < dims ? values[j * st.slot + d * st.dim] : T{0};
}

template <class V, bool kBf16>
void paged_load_queries(const PagedItem& item) {
  const PagedAttention& a = *item.args;
  const int64_t wide = padded(a.key_dim);
  for (int64_t i = 0; i < item.rows * a.group; ++i) {
    load_row<V, kBf16>(a.q, query_offset<V>(item, a.q_strides, i), a.key_dim, item.q + i * wide);
  }
}

template <class V, bool kBf16>
void paged_scores(const PagedItem& item, int64_t begin, int64_t end, float* scratch) {
  using T = typename PagedElement<kBf16>::Type;
  const PagedAttention& a = *item.args;
  const PoolStrides& st = a.key_strides;
  const int64_t wide = padded(a.key_dim), ld = item.page_count * kKeyBlock;
  for (int64_t p = begin; p < end; ++p) {
    auto [keys, next] = page_rows<V, T>(item, a.key_pool, st, p, end);
    if (p + 1 == item.page_count && a.value_dim >= a.key_dim && a.value_strides.slot >= a.value_dim)
      next = static_cast<const T*>(a.value_pool) + item.pages[0] * a.value_strides.page +
             item.head * a.value_strides.kv_head;  // the values' first page follows
    int64_t step = st.dim;
    if (st.slot != 1) {  // in another order: a copy as the tiles read it
      T* copy = reinterpret_cast<T*>(scratch);
      copy_keys<V>(keys, st, a.key_dim, copy);
      keys = next = copy;
      step = kKeyBlock;
    }
    for_query_tiles(item.rows * a.group, [&]<int Q>(int64_t i) {
      constexpr int kVectors = kPagedVectors<V, kBf16, Q>;
      for (int64_t j = 0; j < kKeyBlock; j += kVectors * V::kWidth)
        score_tile<V, kBf16, Q, kVectors>(keys + j, next + j, step, a.key_dim, item.q + i * wide, wide,
                                          item.s + i * ld + p * kKeyBlock + j, ld);
    });
  }
}

// The largest of the lanes of x; its bits do not depend on the order.
template <class V>
inline float largest(V x) {
  float lanes[V::kWidth];
  x.store(lanes);
  float top = lanes[0];
  for (int i = 1; i < V::kWidth; ++i) top = lanes[i] > top ? lanes[i] : top;
  return top;
}

// One query and page: scores to p, of which `exact` gets the sum's operands; returns c.
template <class V, bool kBf16>
inline float exponential_page(const PagedAttention& a, float* s, Range keys, V kappa, float* m,
                              float* exact) {
  constexpr float kBelowAll = -__builtin_inff();  // E of it is +0
  if (a.soft_cap > 0) machine::cap_scores(s, keys.end, a.scale, a.soft_cap);
  for (int64_t j = 0; j < keys.begin; ++j) s[j] = kBelowAll;
  for (int64_t j = keys.end; j < kKeyBlock; ++j) s[j] = kBelowAll;
  V top = V::set1(*m);
  for (int64_t j = 0; j < kKeyBlock; j += V::kWidth) top = V::max(V::load(s + j), top);
  const float highest = largest(top);
  float c[V::kWidth];
  machine::exp2_below<V>(V::set1(*m), V::set1(highest), kappa).store(c);
  *m = highest;
  for (int64_t j = 0; j < kKeyBlock; j += V::kWidth) {
    const V e = machine::exp2_below<V>(V::load(s + j), V::set1(highest), kappa);
    e.store(exact + j);
    (kBf16 ? V::round_bf16(e) : e).store(s + j);
  }
  return c[0];
}

// Four queries at a time, so that their sums, each one chain, run beside each other.
template <class V, bool kBf16>
void paged_exponentials(const PagedItem& item, int64_t begin, int64_t end) {
  constexpr int kTogether = 4;
  const PagedAttention& a = *item.args;
  const int64_t ld = item.page_count * kKeyBlock;
  const V kappa = V::set1(a.soft_cap > 0 ? numerics::kLog2e : numerics::attention_kappa(a.scale));
  for (int64_t first = begin; first < end; first += kTogether) {
    const int count = static_cast<int>(end - first < kTogether ? end - first : kTogether);
    float m[kTogether], l[kTogether] = {}, exact[kTogether][kKeyBlock] = {};
    for (int i = 0; i < count; ++i) {
      m[i] = -1e30f;
      if (a.sink == nullptr) continue;
      const float bias = a.sink[item.head * a.group + (first + i) % a.group];
      m[i] = a.soft_cap > 0 ? bias : bias / a.scale;
      l[i] = 1;
    }
    for (int64_t p = 0; p < item.page_count; ++p) {
      const int64_t start = (item.first_page + p) * kKeyBlock;
      for (int i = 0; i < count; ++i) {
        const int64_t position = item.position + (first + i) / a.group;
        const int64_t low = a.window > 0 ? position - a.window + 1 - start : 0;
        const Range keys{clamp<V>(low, 0, kKeyBlock), clamp<V>(position + 1 - start, 0, kKeyBlock)};
        const float c = exponential_page<V, kBf16>(a, item.s + (first + i) * ld + p * kKeyBlock, keys, kappa,
                                                   &m[i], exact[i]);
        item.c[(first + i) * item.page_count + p] = c;
        l[i] = l[i] * c;
      }
      for (int64_t j = 0; j < kKeyBlock; ++j)
        for (int i = 0; i < kTogether; ++i) l[i] = l[i] + exact[i][j];
    }
    for (int i = 0; i < count; ++i) item.r[first + i] = 1.0f / l[i];
  }
}

// The keys of page p that some query sees: slots outside may hold anything.
template <class V>
inline Range seen_keys(const PagedItem& item, int64_t p) {
  const PagedAttention& a = *item.args;
  const int64_t last = item.position + item.rows, low = a.window > 0 ? item.position - a.window + 1 : 0;
  const int64_t start = (item.first_page + p) * kKeyBlock;
  return {clamp<V>(low - start, 0, kKeyBlock), clamp<V>(last - start, 0, kKeyBlock)};
}

// Accumulators of `rows` queries, `count` elements from `begin` on.
template <class V>
inline void clear_values(const PagedItem& item, int64_t begin, int64_t rows, int64_t count) {
  const int64_t wide = padded(item.args->value_dim);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t d = begin; d < begin + count; ++d) item.acc[i * wide + d] = 0;
}

// Writes elements [begin, end) of all queries' results.
template <class V>
inline void store_values(const PagedItem& item, int64_t begin, int64_t end) {
  const PagedAttention& a = *item.args;
  const int64_t wide = padded(a.value_dim), vectors = (end - begin + V::kWidth - 1) / V::kWidth;
  for (int64_t i = 0; i < item.rows * a.group; ++i) {
    float* row = item.acc + i * wide + begin;
    const V r = V::set1(item.r[i]);
    for (int64_t n = 0; n < vectors * V::kWidth; n += V::kWidth)
      ((V::load(row + n) + V::zero()) * r).store(row + n);
    store_row<V>(row, end - begin, a.out, query_offset<V>(item, a.out_strides, i) + begin, a.type);
  }
}

// Adds a page's values to the accumulators of Q queries and N vectors of head_dim, after their rescaling.
template <class V, bool kBf16, int Q, int N, class T>
inline void value_tile(const T* values, const T* next, int64_t step, Range keys, const float* p, int64_t ld,
                       const float* c, int64_t ld_c, float* acc, int64_t wide) {
  constexpr int kW = V::kWidth;
  V sum[Q][N];
  for (int i = 0; i < Q; ++i)
    for (int n = 0; n < N; ++n) sum[i][n] = V::load(acc + i * wide + n * kW) * V::set1(c[i * ld_c]);
  const auto add = [&](V(&to)[Q][N], int64_t j) {
    V v[N];
    fetch_ahead<V, N>(next + j * step);
    for (int n = 0; n < N; ++n) v[n] = load_element<V>(values + j * step + n * kW);
    for (int i = 0; i < Q; ++i) {
      const V x = V::set1(p[i * ld + j]);
      for (int n = 0; n < N; ++n) to[i][n] = V::fma(x, v[n], to[i][n]);
    }
  };
  if constexpr (kBf16) {
    for (int64_t group = keys.begin / 32 * 32; group < keys.end; group += 32) {
      V even[Q][N], odd[Q][N];
      for (int i = 0; i < Q; ++i)
        for (int n = 0; n < N; ++n) even[i][n] = odd[i][n] = V::zero();
      int64_t j = group > keys.begin ? group : keys.begin;
      const int64_t end = group + 32 < keys.end ? group + 32 : keys.end;
      if (j < end && j % 2 != 0) add(odd, j++);
      for (; j + 2 <= end; j += 2) {
        add(even, j);
        add(odd, j + 1);
      }
      if (j < end) add(even, j);
      for (int i = 0; i < Q; ++i)
        for (int n = 0; n < N; ++n) sum[i][n] = sum[i][n] + (even[i][n] + odd[i][n]);
    }
  } else {
    for (int64_t j = keys.begin; j < keys.end; ++j) add(sum, j);
  }
  for (int i = 0; i < Q; ++i)
    for (int n = 0; n < N; ++n) sum[i][n].store(acc + i * wide + n * kW);
}

// value_tile over vectors [0, vectors) of head_dim, as many at a time as a tile holds.
template <class V, bool kBf16, int Q, int N, class T>
inline void value_tiles(const T* values, const T* next, int64_t step, Range keys, const float* p, int64_t ld,
                        const float* c, int64_t ld_c, float* acc, int64_t wide, int64_t vectors) {
  int64_t n = 0;
  for (; n + N <= vectors; n += N)
    value_tile<V, kBf16, Q, N>(values + n * V::kWidth, next + n * V::kWidth, step, keys, p, ld, c, ld_c,
                               acc + n * V::kWidth, wide);
  if constexpr (N > 1) {
    if (n < vectors)
      value_tiles<V, kBf16, Q, N / 2>(values + n * V::kWidth, next + n * V::kWidth, step, keys, p, ld, c,
                                      ld_c, acc + n * V::kWidth, wide, vectors - n);
  }
}

template <class V, bool kBf16>
void paged_values(const PagedItem& item, int64_t begin, int64_t end, float* scratch) {
  using T = typename PagedElement<kBf16>::Type;
  const PagedAttention& a = *item.args;
  const PoolStrides& st = a.value_strides;
  const int64_t queries = item.rows * a.group, wide = padded(a.value_dim), ld = item.page_count * kKeyBlock;
  const int64_t vectors = (end - begin + V::kWidth - 1) / V::kWidth;
  clear_values<V>(item, begin, queries, vectors * V::kWidth);
  for (int64_t p = 0; p < item.page_count; ++p) {
    const Range keys = seen_keys<V>(item, p);
    auto [values, next] = page_rows<V, T>(item, a.value_pool, st, p, item.page_count, begin);
    int64_t step = st.slot;
    if (st.dim != 1 || (end - begin) % V::kWidth != 0) {  // in another order, or not whole vectors
      T* copy = reinterpret_cast<T*>(scratch);
      step = vectors * V::kWidth;
      copy_values<V>(values, st, keys, end - begin, step, copy);
      values = next = copy;
    }
    for_query_tiles(queries, [&]<int Q>(int64_t i) {
      value_tiles<V, kBf16, Q, kPagedVectors<V, kBf16, Q>>(
          values, next, step, keys, item.s + i * ld + p * kKeyBlock, ld, item.c + i * item.page_count + p,
          item.page_count, item.acc + i * wide + begin, wide, vectors);
    });
  }
  store_values<V>(item, begin, end);
}

template <class V>
inline PagedKernels paged_table() {
  PagedKernels t;
  t.load_queries = [](const PagedItem& item) {
    item.args->type == machine::FloatType::kBf16 ? paged_load_queries<V, true>(item)
                                                 : paged_load_queries<V, false>(item);
  };
  t.scores = [](const PagedItem& item, int64_t begin, int64_t end, float* page) {
    item.args->type == machine::FloatType::kBf16 ? paged_scores<V, true>(item, begin, end, page)
                                                 : paged_scores<V, false>(item, begin, end, page);
  };
  t.exponentials = [](const PagedItem& item, int64_t begin, int64_t end) {
    item.args->type == machine::FloatType::kBf16 ? paged_exponentials<V, true>(item, begin, end)
                                                 : paged_exponentials<V, false>(item, begin, end);
  };
  t.values = [](const PagedItem& item, int64_t begin, int64_t end, float* page) {
    item.args->type == machine::FloatType::kBf16 ? paged_values<V, true>(item, begin, end, page)
                                                 : paged_values<V, false>(item, begin, end, page);
  };
  return t;
}

}  // namespace ostro::kernels
