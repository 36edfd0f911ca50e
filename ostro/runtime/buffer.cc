#include "ostro/runtime/buffer.h"

#include <cstring>

namespace ostro::runtime {

Buffer Buffer::empty(ir::Shape shape) {
  Buffer b;
  b.block_ = allocate_on_host(shape.bytes(), false);
  b.shape_ = std::move(shape);
  return b;
}

Buffer Buffer::zeros(ir::Shape shape) {
  Buffer b;
  b.block_ = allocate_on_host(shape.bytes(), true);
  b.shape_ = std::move(shape);
  return b;
}

Buffer Buffer::copy_of(ir::Shape shape, const void* data) {
  Buffer b = empty(std::move(shape));
  if (!b.mutable_bytes().empty()) std::memcpy(b.mutable_bytes().data(), data, b.mutable_bytes().size());
  return b;
}

Result<Buffer> Buffer::allocate(ir::Shape shape, Memory& memory) {
  Buffer b;
  ASSIGN_OR_RETURN(b.block_, memory.allocate(shape.bytes()));
  b.shape_ = std::move(shape);
  return b;
}

// Host memory is on one side of every copy: a copy between two devices goes through the host.
Result<Buffer> Buffer::to(Memory& memory) const {
  OSTRO_CHECK(valid(), "a missing buffer has no elements to copy to {}", memory.name());
  if (&block_->memory() == &memory) return *this;
  if (!on_host() && &memory != &host_memory()) {
    ASSIGN_OR_RETURN(const Buffer staged, to_host());
    return staged.to(memory);
  }
  ASSIGN_OR_RETURN(Buffer copy, allocate(shape_, memory));
  if (on_host())
    RETURN_IF_ERROR(copy.write(bytes()));
  else
    RETURN_IF_ERROR(read(copy.mutable_bytes()));
  return copy;
}

Status Buffer::read(std::span<std::byte> to) const {
  OSTRO_CHECK(valid() && static_cast<int64_t>(to.size()) == shape_.bytes(), "{} bytes read of {}", to.size(),
              shape_.str());
  return memory().read(*block_, offset_, to);
}

Status Buffer::write(std::span<const std::byte> from) {
  OSTRO_CHECK(valid() && static_cast<int64_t>(from.size()) == shape_.bytes(), "{} bytes written to {}",
              from.size(), shape_.str());
  return memory().write(*block_, offset_, from);
}

Buffer Buffer::with_shape(ir::Shape shape) const {
  OSTRO_CHECK(shape.bytes() == shape_.bytes(), "{} seen as {}", shape_.str(), shape.str());
  Buffer b = *this;
  b.shape_ = std::move(shape);
  return b;
}

Buffer Buffer::rows(int64_t first, int64_t count) const {
  OSTRO_CHECK(!shape_.axes.empty() && first >= 0 && count >= 0 && first + count <= shape_.axes[0].size,
              "rows {} to {} of {}", first, first + count, shape_.str());
  Buffer b = *this;
  b.shape_.axes[0].size = count;
  if (count > 0) b.offset_ += first * (b.shape_.bytes() / count);
  return b;
}

Result<std::vector<Buffer>> all_to(std::vector<Buffer> buffers, Memory& memory) {
  for (Buffer& b : buffers)
    if (&b.memory() != &memory) {
      ASSIGN_OR_RETURN(b, b.to(memory));
    }
  return buffers;
}

}  // namespace ostro::runtime
