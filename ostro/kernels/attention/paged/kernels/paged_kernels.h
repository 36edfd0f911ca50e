// PagedKernels: the kernels of paged attention for few rows, of one instruction set, as a table of functions.
// They read keys and values where they lie. An item is some queries of one run and head of keys. Its chains
// are cut into three phases: scores by page, exponentials by query, values by slice of head_dim; the calls of
// a phase are independent of each other. Callers set N0's floating-point environment.
#pragma once

#include <cstdint>

#include "ostro/kernels/attention/kernels/attention_kernels.h"
#include "ostro/kernels/attention/paged/paged.h"

namespace ostro::kernels {

// The most queries of an item, unless a single row has more.
inline constexpr int64_t kPagedQueries = 16;

// Queries are padded to whole blocks of so many where they are rows of a matrix instruction.
inline constexpr int64_t kPagedRows = 16;
constexpr int64_t padded_queries(int64_t queries) {
  return (queries + kPagedRows - 1) / kPagedRows * kPagedRows;
}

// Query i is row `first` + i / group, head i % group.
struct PagedItem {
  const PagedAttention* args = nullptr;
  int64_t head = 0;
  int64_t first = 0, rows = 0, position = 0;  // as in PagedRun
  int64_t first_page = 0, page_count = 0;
  const int32_t* pages = nullptr;
  // Shared by the phases: queries [query][padded key_dim] in the kernels' own form, scores, then exponentials
  // [query][page * 128], factors c of N9 [query][page], r [query], accumulators [query][padded value_dim]. Of
  // queries and accumulators there are padded_queries().
  float *q = nullptr, *s = nullptr, *c = nullptr, *r = nullptr, *acc = nullptr;
};

struct PagedKernels {
  void (*load_queries)(const PagedItem& item);
  // Of pages [begin, end) of the item. `page` has room for 128 x padded key_dim floats.
  void (*scores)(const PagedItem& item, int64_t begin, int64_t end, float* page);
  // Of queries [begin, end), from scores to p, c and r.
  void (*exponentials)(const PagedItem& item, int64_t begin, int64_t end);
  // Elements [begin, end) of all queries' results; begin and end are multiples of 32, or the end of
  // value_dim. `page` has room for 128 x padded value_dim floats.
  void (*values)(const PagedItem& item, int64_t begin, int64_t end, float* page);
};

const PagedKernels& paged_generic();
const PagedKernels& paged_avx2();
const PagedKernels& paged_avx512();
const PagedKernels& paged_amx();

}  // namespace ostro::kernels
