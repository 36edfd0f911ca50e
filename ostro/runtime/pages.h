// check_places, check_pages: whether the places and pages of a step's rows lie in the pool of pages of keys
// and values (docs/spec/ops.md, paged_write and paged_attention). Every engine refuses a step by them before
// it computes. Any thread may call them.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/base/error.h"

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

}  // namespace ostro::runtime
