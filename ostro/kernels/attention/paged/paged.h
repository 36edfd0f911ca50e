// paged_attention: attention of rows whose keys and values lie in pages of 128 positions (numerics.md N9,
// N21). Row r attends to the keys at positions 0 to position[r], or to those of its window, of its own
// sequence; page p of the sequence is page table[r][p] of the pools. A row with a position below 0 gives +0.
//
// Rows that follow each other in one sequence are computed together. The caller has checked positions and
// tables (runtime/pages.h). What lies in slots that no row sees is not read into any result. Shapes out of
// range abort. Every output has one fixed order of operations: bits do not depend on instruction set,
// threads, or on which rows are computed together.
#pragma once

#include "ostro/kernels/attention/attention.h"

namespace ostro::kernels {

// Strides in elements of a pool [page, slot, kv_heads, head_dim], in any order of these axes.
struct PoolStrides {
  int64_t page = 0, slot = 0, kv_head = 0, dim = 0;
};

struct PagedAttention {
  int64_t rows = 0, kv_heads = 1, group = 1;
  int64_t key_dim = 0, value_dim = 0;                  // head_dim of q and keys, of values and out
  int64_t pages = 0;                                   // in each pool
  int64_t entries = 0;                                 // of the table of each row
  machine::FloatType type = machine::FloatType::kF32;  // of all arrays
  bool integers = false;                               // products are of integers (N21)
  float scale = 1;                                     // > 0
  float soft_cap = 0;                                  // 0: none
  int64_t window = 0;                                  // 0: no limit
  const float* sink = nullptr;                         // [kv_heads, group] or none
  const void* q = nullptr;                             // [row, kv_heads, group, key_dim], key_dim contiguous
  const void* key_pool = nullptr;
  const void* value_pool = nullptr;
  void* out = nullptr;                  // [row, kv_heads, group, value_dim], value_dim contiguous
  QueryStrides q_strides, out_strides;  // pos: from one row to the next; batch is not used
  PoolStrides key_strides, value_strides;
  const int32_t* table = nullptr;     // [row, entries], dense
  const int32_t* position = nullptr;  // [row]
};

// Writes out of every row.
void paged_attention(const PagedAttention& args, machine::Isa isa, machine::ThreadPool& pool);

}  // namespace ostro::kernels
