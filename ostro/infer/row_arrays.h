// with_rows, append: arrays of rows and lists of them, for the parts of LayerRows.
#pragma once

#include <vector>

#include "ostro/base/check.h"
#include "ostro/runtime/buffer.h"

namespace ostro::infer {

// [batch, pos, ...] with other numbers of both.
inline ir::Shape with_rows(ir::Shape shape, int64_t batch, int64_t rows) {
  OSTRO_CHECK(shape.axes.size() >= 2 && shape.axes[1].name == "pos", "{} has no rows", shape.str());
  shape.axes[0].size = batch;
  shape.axes[1].size = rows;
  return shape;
}

inline void append(std::vector<runtime::Buffer>& to, const std::vector<runtime::Buffer>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace ostro::infer
