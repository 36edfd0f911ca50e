// small_cache, cache_inputs: a program that writes two rows into a pool of pages and attends to it, and
// inputs for it.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/buffer.h"

namespace ostro::testing {

struct CacheKind {
  int64_t window = 0;     // 0: all keys
  bool integers = false;  // products of integers (N21)
};

// paged_write of two rows, then attention of two rows over the pool of three pages: [out, pool], in f32.
ir::Program small_cache(const CacheKind& kind);

// `table` has two entries for each row. Slots whose numbers in the pool `infinite` names hold infinities.
std::vector<runtime::Buffer> cache_inputs(const std::vector<int32_t>& place,
                                          const std::vector<int32_t>& table,
                                          const std::vector<int32_t>& position,
                                          const std::vector<int32_t>& infinite = {});

}  // namespace ostro::testing
