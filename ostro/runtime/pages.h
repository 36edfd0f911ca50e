// check_places, check_pages, paged_heads: questions about pages of keys and values that the routines of all
// engines ask (docs/spec/ops.md, paged_write and paged_attention): whether the places and pages of a step's
// rows lie in the pool, before anything is computed, and which axes are heads. Any thread may call them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ostro/base/error.h"
#include "ostro/ir/program/shape.h"

namespace ostro::runtime {

// Checks the places of paged_write: below 0 drops the row, others are below `places`, and no two rows have
// the same one. Error: kInvalidArgument, with the first row that is wrong.
Status check_places(std::span<const int32_t> place, int64_t places);

// The pages of the rows of paged_attention.
struct RowPages {
  int64_t rows = 0, entries = 0;      // the table's sizes
  int64_t pages = 0;                  // in each pool
  int64_t window = 0;                 // 0: no limit
  const int32_t* table = nullptr;     // [rows, entries], dense
  const int32_t* position = nullptr;  // [rows]
};

// Checks that each row's position lies in its table, and each page of which it sees a key in the pool. Error:
// kInvalidArgument, with the row.
Status check_pages(const RowPages& rows);

// The axis of heads of q that the pools have too, and that of query heads that share keys and values. An axis
// that is absent has no name and the size 1.
struct PagedHeads {
  ir::Axis kv{"", 1}, group{"", 1};
};

// Of the shapes of a paged_attention, which have at most one axis of each.
PagedHeads paged_heads(const ir::Shape& q, const ir::Shape& keys, const std::string& row,
                       const std::string& head_dim);

}  // namespace ostro::runtime
