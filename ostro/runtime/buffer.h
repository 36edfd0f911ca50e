// Buffer: the memory of one array value. A cheap handle; the storage is shared and freed with the last
// handle.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/ir/program/shape.h"

namespace ostro::runtime {

// Row-major dense elements of a Shape in host memory, aligned to kAlignment. Copies share storage. Only write
// through mutable_bytes when no other handle reads the storage: when this is the only handle, or when the
// engine has been given the buffer (a donated input).
class Buffer {
 public:
  Buffer() = default;
  // The elements are not initialised.
  static Buffer empty(ir::Shape shape);
  // All bits zero.
  static Buffer zeros(ir::Shape shape);
  // Copies shape.bytes() bytes.
  static Buffer copy_of(ir::Shape shape, const void* data);
  template <typename T>
  static Buffer scalar(ir::DType dtype, T value) {
    Buffer b = empty(ir::scalar(dtype));
    OSTRO_CHECK(static_cast<int64_t>(sizeof(T)) == b.shape().bytes(), "scalar of {} bytes for {}", sizeof(T),
                b.shape().str());
    *reinterpret_cast<T*>(b.mutable_bytes().data()) = value;
    return b;
  }

  bool valid() const { return storage_ != nullptr; }
  const ir::Shape& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return {storage_.get(), static_cast<size_t>(shape_.bytes())}; }
  std::span<std::byte> mutable_bytes() { return {storage_.get(), static_cast<size_t>(shape_.bytes())}; }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(storage_.get()), static_cast<size_t>(shape_.count())};
  }
  template <typename T>
  std::span<T> mutable_as() {
    return {reinterpret_cast<T*>(storage_.get()), static_cast<size_t>(shape_.count())};
  }
  // The single element of a scalar.
  template <typename T>
  T item() const {
    OSTRO_CHECK(shape_.count() == 1, "item() of {}", shape_.str());
    return as<T>()[0];
  }
  // True when this is the only handle to the storage.
  bool unique() const { return storage_.use_count() == 1; }
  // The same elements under another shape of equal size in bytes (no copy).
  Buffer with_shape(ir::Shape shape) const;

 private:
  ir::Shape shape_;
  std::shared_ptr<std::byte[]> storage_;
};

}  // namespace ostro::runtime
