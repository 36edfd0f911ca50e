// with_rows, row_bytes, copy_rows, append, shapes_of: arrays of rows and lists of them, for the parts of
// LayerRows.
#pragma once

#include <cstring>
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

// Bytes of a row of [batch, pos, ...].
inline size_t row_bytes(const ir::Shape& s) {
  return static_cast<size_t>(s.bytes() / (s.axes[0].size * s.axes[1].size));
}

// `count` rows of an array on the host, whose rows are counted through.
inline void copy_rows(const runtime::Buffer& from, int64_t first, int64_t count, runtime::Buffer& to,
                      int64_t at) {
  const size_t bytes = row_bytes(from.shape());
  std::memcpy(to.mutable_bytes().data() + static_cast<size_t>(at) * bytes,
              from.bytes().data() + static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes);
}

inline void append(std::vector<runtime::Buffer>& to, const std::vector<runtime::Buffer>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

inline std::vector<ir::Shape> shapes_of(const std::vector<runtime::Buffer>& buffers) {
  std::vector<ir::Shape> out;
  for (const runtime::Buffer& b : buffers) out.push_back(b.shape());
  return out;
}

}  // namespace ostro::infer
