#include "ostro/interp/core/elements.h"

namespace ostro::interp {

std::vector<int64_t> integers(const Buffer& buffer) {
  return with_type(buffer.shape().dtype, [&]<typename T>() {
    const std::vector<T> values = elements<T>(buffer);
    return std::vector<int64_t>(values.begin(), values.end());
  });
}

Buffer pick(const Buffer& x, const Shape& shape, const std::vector<int64_t>& from) {
  Buffer out = Buffer::zeros(shape);
  const auto size = static_cast<size_t>(ir::dtype_size(shape.dtype));
  const std::byte* source = x.bytes().data();
  std::byte* target = out.mutable_bytes().data();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] >= 0) std::memcpy(target + i * size, source + static_cast<size_t>(from[i]) * size, size);
  return out;
}

void place(Buffer& out, const Buffer& x, const std::vector<int64_t>& to) {
  const auto size = static_cast<size_t>(ir::dtype_size(out.shape().dtype));
  const std::byte* source = x.bytes().data();
  std::byte* target = out.mutable_bytes().data();
  for (size_t i = 0; i < to.size(); ++i)
    std::memcpy(target + static_cast<size_t>(to[i]) * size, source + i * size, size);
}

}  // namespace ostro::interp
