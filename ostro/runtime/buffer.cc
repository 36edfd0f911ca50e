#include "ostro/runtime/buffer.h"

#include <cstring>

namespace ostro::runtime {

Buffer Buffer::empty(ir::Shape shape) {
  Buffer b;
  b.storage_ = allocate_aligned(static_cast<size_t>(shape.bytes()));
  b.shape_ = std::move(shape);
  return b;
}

Buffer Buffer::zeros(ir::Shape shape) {
  Buffer b = empty(std::move(shape));
  std::memset(b.mutable_bytes().data(), 0, b.mutable_bytes().size());
  return b;
}

Buffer Buffer::copy_of(ir::Shape shape, const void* data) {
  Buffer b = empty(std::move(shape));
  if (!b.mutable_bytes().empty()) std::memcpy(b.mutable_bytes().data(), data, b.mutable_bytes().size());
  return b;
}

Buffer Buffer::with_shape(ir::Shape shape) const {
  OSTRO_CHECK(shape.bytes() == shape_.bytes(), "{} seen as {}", shape_.str(), shape.str());
  Buffer b = *this;
  b.shape_ = std::move(shape);
  return b;
}

}  // namespace ostro::runtime
