// Views: a value as a strided window on a buffer, so that layout ops cost nothing where their reader can step
// through memory itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// Element (i0, i1, ...) of a value of `shape` is element offset + sum(ik * strides[k]) of the buffer. Strides
// may be 0 (broadcast) or negative (reverse). `buffer` is a number of the plan, or the ValueId of the value
// that is looked at while lowering.
struct View {
  int32_t buffer = -1;
  ir::Shape shape;
  int64_t offset = 0;  // in elements of shape.dtype
  std::vector<int64_t> strides;

  // The whole of a row-major array.
  static View whole(int32_t buffer, const ir::Shape& shape);
  // Are the elements one row-major run of memory?
  bool dense() const;
  // Bytes of the different elements it looks at: those of a broadcast value once.
  int64_t touched_bytes() const;
};

// The layout op's result (its number `result`) as a view on what x looks at; nothing when no strides can say
// it (merging axes that do not lie together) or when it is not a pure layout op (concat, stack, pad).
// Handles broadcast too.
std::optional<View> apply_layout(const ir::Op& op, size_t result, const View& x, const ir::Shape& out);

}  // namespace ostro::compile
