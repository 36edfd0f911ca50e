// Buffer: the value of one array: a shape, and the place of its elements in a block of some memory. A cheap
// handle; copies and views share the block, which is freed with the last of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ostro/base/check.h"
#include "ostro/base/error.h"
#include "ostro/ir/program/shape.h"
#include "ostro/runtime/memory.h"

namespace ostro::runtime {

// Row-major dense elements of a Shape. A new buffer begins at its block's first byte, on the host aligned to
// kAlignment; a view (rows) is aligned to its elements only, and engines must not assume more of an input.
//
// Only write when no other handle reads the block: when this is the only handle, or when the engine has been
// given the buffer (a donated input).
//
// Code that works with the results of an engine reads them through to(), to_host(), read() or scalar(),
// which work in every memory and return its errors. bytes(), as() and item() are for buffers that are known
// to be on the host; elsewhere they abort.
class Buffer {
 public:
  Buffer() = default;
  // On the host; the elements are not initialised.
  static Buffer empty(ir::Shape shape);
  // On the host, all bits zero.
  static Buffer zeros(ir::Shape shape);
  // On the host; copies shape.bytes() bytes.
  static Buffer copy_of(ir::Shape shape, const void* data);
  template <typename T>
  static Buffer scalar(ir::DType dtype, T value) {
    Buffer b = empty(ir::scalar(dtype));
    OSTRO_CHECK(static_cast<int64_t>(sizeof(T)) == b.shape().bytes(), "scalar of {} bytes for {}", sizeof(T),
                b.shape().str());
    *reinterpret_cast<T*>(b.mutable_bytes().data()) = value;
    return b;
  }
  // In any memory; the elements are not initialised. Error: the memory has no room.
  static Result<Buffer> allocate(ir::Shape shape, Memory& memory);

  bool valid() const { return block_ != nullptr; }
  const ir::Shape& shape() const { return shape_; }
  // Of a valid buffer.
  Memory& memory() const { return block_->memory(); }
  bool on_host() const { return block_ != nullptr && block_->host() != nullptr; }
  // Where the elements begin: the block, and bytes from its first. For engines; of a valid buffer.
  const Block& block() const { return *block_; }
  int64_t offset() const { return offset_; }

  // The same elements in that memory: this handle if they are there, else a copy.
  Result<Buffer> to(Memory& memory) const;
  Result<Buffer> to_host() const { return to(host_memory()); }
  // Copies all bytes to the host, or from it. Sizes must agree.
  Status read(std::span<std::byte> to) const;
  Status write(std::span<const std::byte> from);
  // The only element of a scalar, from wherever it is.
  template <typename T>
  Result<T> scalar() const {
    OSTRO_CHECK(shape_.count() == 1 && static_cast<int64_t>(sizeof(T)) == shape_.bytes(),
                "a scalar of {} bytes from {}", sizeof(T), shape_.str());
    T value;
    RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  std::span<const std::byte> bytes() const { return {host(), static_cast<size_t>(shape_.bytes())}; }
  std::span<std::byte> mutable_bytes() { return {host(), static_cast<size_t>(shape_.bytes())}; }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(host()), static_cast<size_t>(shape_.count())};
  }
  template <typename T>
  std::span<T> mutable_as() {
    return {reinterpret_cast<T*>(host()), static_cast<size_t>(shape_.count())};
  }
  // The single element of a scalar on the host.
  template <typename T>
  T item() const {
    OSTRO_CHECK(shape_.count() == 1, "item() of {}", shape_.str());
    return as<T>()[0];
  }

  // True when this is the only handle to the block. A view and the buffer that it was taken from share the
  // block, so neither is unique while both are there; what is left alone may be written in place.
  bool unique() const { return block_.use_count() == 1; }
  // Whether both handles are of the same elements of the same block.
  bool same_place(const Buffer& other) const { return block_ == other.block_ && offset_ == other.offset_; }
  // The same elements under another shape of equal size in bytes (no copy).
  Buffer with_shape(ir::Shape shape) const;
  // Indices [first, first + count) of the leading axis, without a copy. The view keeps the whole block alive.
  Buffer rows(int64_t first, int64_t count) const;

 private:
  std::byte* host() const {
    OSTRO_CHECK(on_host(), "bytes of a {} buffer {} on the host: read it with to_host()",
                valid() ? memory().name() : "missing", shape_.str());
    return block_->host() + offset_;
  }

  ir::Shape shape_;
  std::shared_ptr<Block> block_;
  int64_t offset_ = 0;  // of the first element, in bytes
};

// Returns the buffers, each in that memory (Buffer::to).
Result<std::vector<Buffer>> all_to(std::vector<Buffer> buffers, Memory& memory);

}  // namespace ostro::runtime
