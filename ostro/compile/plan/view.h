// View, apply_layout: a value as a strided window on a buffer. A layout op that becomes a view costs nothing,
// if the op that reads it can handle strides.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// Element (i0, i1, ...) of a value of `shape` is element offset + sum(ik * strides[k]) of the buffer. Strides
// may be 0 (broadcast) or negative (reverse). `buffer` is the number of a buffer of the plan; during lowering
// it is the ValueId of the value that the view looks at.
struct View {
  int32_t buffer = -1;
  ir::Shape shape;
  int64_t offset = 0;  // in elements of shape.dtype
  std::vector<int64_t> strides;

  // The whole of a row-major array.
  static View whole(int32_t buffer, const ir::Shape& shape);
  // True when the elements are one row-major run of memory.
  bool dense() const;
  // Bytes of the distinct elements that the view looks at: a broadcast element counts once.
  int64_t touched_bytes() const;
};

// Result number `result` of a layout op (or of broadcast) as a view on the buffer of x. Nothing when strides
// cannot express it (merging axes that are not adjacent in memory), or when the op is not pure layout
// (concat, stack, pad).
std::optional<View> apply_layout(const ir::Op& op, size_t result, const View& x, const ir::Shape& out);

}  // namespace ostro::compile
