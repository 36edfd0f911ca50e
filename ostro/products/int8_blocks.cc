#include "ostro/products/int8_blocks.h"

#include <algorithm>

#include "ostro/base/error.h"
#include "ostro/ir/program/int8_limits.h"

namespace ostro::kernels {

Int8Blocks::Int8Blocks(int64_t k, int64_t block, std::vector<int64_t> leaf_ends)
    : k_(k), block_(block), leaf_ends_(std::move(leaf_ends)) {
  OSTRO_CHECK(block >= 1 && block <= ir::kMaxInt8Block,
              "a block of {} int8 numbers; 1 to {} have an exact sum", block, ir::kMaxInt8Block);
  if (leaf_ends_.empty()) leaf_ends_ = {k};
  OSTRO_CHECK(k >= 0 && leaf_ends_.back() == k, "leaves end at {}, k is {}", leaf_ends_.back(), k);
  int64_t begin = 0;
  leaf_begin_.push_back(0);
  for (const int64_t end : leaf_ends_) {
    OSTRO_CHECK(end >= begin, "leaf ends must ascend: {} after {}", end, begin);
    for (int64_t at = begin; at < end; at += block_) blocks_.push_back({at, std::min(block_, end - at)});
    leaf_begin_.push_back(count());
    begin = end;
  }
}

}  // namespace ostro::kernels
