// paged_packed_table: paged attention of bf16 on matrix instructions (attention_packed.inc.h), for items of
// several queries; of fewer, and of f32, that of AVX-512.
//
// Queries are rows of A, in blocks of 16 with zeros behind them. Of each page the words of B are made once,
// then multiplied: in scores lanes are keys and a word pairs elements of head_dim, in values lanes are
// elements and a word pairs keys.
#pragma once

#include "ostro/kernels/attention/kernels/attention_packed.inc.h"
#include "ostro/kernels/attention/paged/kernels/paged.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

template <class P>
struct PagedPacked {
  using V = machine::VecAvx512;
  static constexpr int kGroup = 32, kGroupWords = 16 * kLaneBlock;
  static constexpr int64_t kGroupsOfKeys = kKeyBlock / kGroup, kUnits = kKeyBlock / kLaneBlock;

  static int64_t queries(const PagedItem& item) { return item.rows * item.args->group; }
  static bool takes(const PagedItem& item) {
    return item.args->type == machine::FloatType::kBf16 && queries(item) >= P::kLeastQueries;
  }

  static void load_queries(const PagedItem& item) {
    const PagedAttention& a = *item.args;
    const int64_t wide = padded(a.key_dim), count = queries(item), rows = padded_queries(count);
    auto* to = reinterpret_cast<uint16_t*>(item.q);
    for (int64_t i = 0; i < rows; ++i) {
      copy_row<P>(
          i < count ? static_cast<const uint16_t*>(a.q) + query_offset<V>(item, a.q_strides, i) : nullptr,
          a.key_dim, wide, to + i * wide);
    }
    order_rows<P>(to, rows * wide);
  }

  // `scratch` has the words of a page, then its keys in the order [dim][slot] where they lie in another one.
  static void scores(const PagedItem& item, int64_t begin, int64_t end, float* scratch) {
    const PagedAttention& a = *item.args;
    const PoolStrides& st = a.key_strides;
    const int64_t wide = padded(a.key_dim), groups = wide / kGroup, ld = item.page_count * kKeyBlock;
    auto* words = reinterpret_cast<uint32_t*>(scratch);
    auto* copy = reinterpret_cast<uint16_t*>(words + kKeyBlock * wide / 2);
    alignas(64) float c[kPagedRows * kLaneBlock];
    P::enter();
    for (int64_t p = begin; p < end; ++p) {
      auto [keys, next] = page_rows<V, uint16_t>(item, a.key_pool, st, p, end);
      int64_t step = st.dim;
      if (st.slot != 1) {
        copy_keys<V>(keys, st, a.key_dim, copy);
        keys = next = copy;
        step = kKeyBlock;
      }
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = g * kGroup;
        const auto row = [&](int k, int64_t u) __attribute__((always_inline)) {
          if (first + k >= a.key_dim) return _mm512_setzero_si512();
          const int64_t at = (first + k) * step + u * kLaneBlock;
          _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T1);
          return _mm512_loadu_si512(keys + at);
        };
        pair_group<P>(row, kUnits, words + g * kGroupWords, kLaneBlock, groups * kGroupWords);
      }
      for (int64_t u = 0; u < kUnits; ++u)
        for (int64_t i = 0; i < queries(item); i += kPagedRows) {
          const int64_t left = queries(item) - i;
          P::multiply(c, kLaneBlock, kPagedRows, reinterpret_cast<const uint32_t*>(item.q) + i * wide / 2,
                      wide / 2, words + u * groups * kGroupWords, kLaneBlock, groups, true);
          for (int64_t r = 0; r < kPagedRows && r < left; ++r) {
            float* to = item.s + (i + r) * ld + p * kKeyBlock + u * kLaneBlock;
            _mm512_storeu_ps(to, _mm512_load_ps(c + r * kLaneBlock));
            _mm512_storeu_ps(to + 16, _mm512_load_ps(c + r * kLaneBlock + 16));
          }
        }
    }
    P::leave();
  }

  // The exponentials of a block of queries in one page, which are rounded to bf16, as rows of A.
  static void load_exponentials(const PagedItem& item, int64_t first, int64_t page, uint16_t* to) {
    const int64_t left = queries(item) - first, ld = item.page_count * kKeyBlock;
    for (int64_t r = 0; r < kPagedRows; ++r)
      for (int64_t j = 0; j < kKeyBlock; j += 32) {
        const float* p = item.s + (first + r) * ld + page * kKeyBlock + j;
        _mm512_storeu_si512(
            to + r * kKeyBlock + j,
            r < left ? __builtin_bit_cast(__m512i,
                                          _mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + 16), _mm512_loadu_ps(p)))
                     : _mm512_setzero_si512());
      }
    order_rows<P>(to, kPagedRows * kKeyBlock);
  }

  // `scratch` has the words of a page, then its values in the order [slot][dim] where they lie in another
  // one.
  static void values(const PagedItem& item, int64_t begin, int64_t end, float* scratch) {
    const PagedAttention& a = *item.args;
    const PoolStrides& st = a.value_strides;
    const int64_t wide = padded(a.value_dim), units = (end - begin + kLaneBlock - 1) / kLaneBlock;
    auto* words = reinterpret_cast<uint32_t*>(scratch);
    auto* copy = reinterpret_cast<uint16_t*>(words + kKeyBlock * wide / 2);
    alignas(64) uint16_t exponentials[kPagedRows * kKeyBlock];
    clear_values<V>(item, begin, padded_queries(queries(item)), units * kLaneBlock);
    P::enter();
    for (int64_t p = 0; p < item.page_count; ++p) {
      const Range keys = seen_keys<V>(item, p);
      auto [from, next] = page_rows<V, uint16_t>(item, a.value_pool, st, p, item.page_count, begin);
      int64_t step = st.slot;
      if (st.dim != 1 || (end - begin) % kLaneBlock != 0) {
        step = units * kLaneBlock;
        copy_values<V>(from, st, keys, end - begin, step, copy);
        from = next = copy;
      }
      const bool whole = keys.begin == 0 && keys.end == kKeyBlock;
      for (int64_t g = 0; g < kGroupsOfKeys; ++g) {
        const auto row = [&](int k, int64_t u) __attribute__((always_inline)) {
          const int64_t j = g * kGroup + k, at = j * step + u * kLaneBlock;
          _mm_prefetch(reinterpret_cast<const char*>(next + at), _MM_HINT_T1);
          if (!whole && (j < keys.begin || j >= keys.end)) return _mm512_setzero_si512();
          return _mm512_loadu_si512(from + at);
        };
        pair_group<P>(row, units, words + g * kGroupWords, kLaneBlock, kGroupsOfKeys * kGroupWords);
      }
      for (int64_t i = 0; i < queries(item); i += kPagedRows) {
        const int64_t left = queries(item) - i;
        load_exponentials(item, i, p, exponentials);
        for (int64_t r = 0; r < kPagedRows && r < left; ++r)
          scale_row(item.acc + (i + r) * wide + begin, units * kLaneBlock,
                    item.c[(i + r) * item.page_count + p]);
        for (int64_t u = 0; u < units; ++u)
          P::multiply(item.acc + i * wide + begin + u * kLaneBlock, wide, kPagedRows,
                      reinterpret_cast<const uint32_t*>(exponentials), kKeyBlock / 2,
                      words + u * kGroupsOfKeys * kGroupWords, kLaneBlock, kGroupsOfKeys, false);
      }
    }
    P::leave();
    store_values<V>(item, begin, end);
  }

  static void scale_row(float* row, int64_t count, float by) {
    const V c = V::set1(by);
    for (int64_t d = 0; d < count; d += V::kWidth) (V::load(row + d) * c).store(row + d);
  }
};

template <class P>
inline PagedKernels paged_packed_table() {
  using Packed = PagedPacked<P>;
  PagedKernels t = paged_table<machine::VecAvx512>();
  t.load_queries = [](const PagedItem& item) {
    Packed::takes(item) ? Packed::load_queries(item) : paged_avx512().load_queries(item);
  };
  t.scores = [](const PagedItem& item, int64_t begin, int64_t end, float* page) {
    Packed::takes(item) ? Packed::scores(item, begin, end, page)
                        : paged_avx512().scores(item, begin, end, page);
  };
  t.values = [](const PagedItem& item, int64_t begin, int64_t end, float* page) {
    Packed::takes(item) ? Packed::values(item, begin, end, page)
                        : paged_avx512().values(item, begin, end, page);
  };
  return t;
}

}  // namespace ostro::kernels
