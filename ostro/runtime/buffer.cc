#include "ostro/runtime/buffer.h"

#include <cstring>

namespace ostro::runtime {

namespace {

std::shared_ptr<std::byte[]> storage_of(AlignedBytes (*allocate)(size_t), const ir::Shape& shape) {
  return allocate(static_cast<size_t>(shape.bytes()));
}

}  // namespace

Buffer Buffer::empty(ir::Shape shape) {
  Buffer b;
  b.storage_ = storage_of(allocate_aligned, shape);
  b.shape_ = std::move(shape);
  return b;
}

Buffer Buffer::zeros(ir::Shape shape) {
  Buffer b;
  b.storage_ = storage_of(allocate_zeroed, shape);
  b.shape_ = std::move(shape);
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
