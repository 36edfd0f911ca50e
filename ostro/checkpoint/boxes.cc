#include "ostro/checkpoint/boxes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ostro/base/aligned.h"
#include "ostro/numerics/bf16.h"

namespace ostro::checkpoint {
namespace {

constexpr int64_t kHalf = sizeof(numerics::Bf16);

// Reads bf16 elements with `read`, which fills bytes, and widens them.
template <typename Read>
Status widened(std::span<float> out, const Read& read) {
  const size_t bytes = out.size() * sizeof(numerics::Bf16);
  const AlignedBytes stored = allocate_aligned(bytes);
  RETURN_IF_ERROR(read(std::span<std::byte>(stored.get(), bytes)));
  for (size_t i = 0; i < out.size(); ++i) {
    numerics::Bf16 x;
    std::memcpy(&x, stored.get() + i * sizeof(x), sizeof(x));
    out[i] = numerics::to_f32(x);
  }
  return {};
}

}  // namespace

ReadBox boxes_in_memory(std::vector<runtime::Buffer> values) {
  return [values = std::move(values)](size_t parameter, const Extents& start, const Extents& shape,
                                      std::span<float> out) -> Status {
    const runtime::Buffer& from = values.at(parameter);
    Extents whole;
    for (const ir::Axis& axis : from.shape().axes) whole.push_back(axis.size);
    const auto copy = [&](std::span<std::byte> to, int64_t item) {
      io::copy_box(from.bytes(), whole, start, to, shape, Extents(shape.size(), 0), shape, item);
      return Status();
    };
    if (from.shape().dtype == ir::DType::bf16)
      return widened(out, [&](std::span<std::byte> to) { return copy(to, kHalf); });
    OSTRO_CHECK(from.shape().dtype == ir::DType::f32, "{} is neither f32 nor bf16", from.shape().str());
    return copy(std::as_writable_bytes(out), sizeof(float));
  };
}

ReadBox boxes_of(std::shared_ptr<const PartReader> reader) {
  return [reader = std::move(reader)](size_t parameter, const Extents& start, const Extents& shape,
                                      std::span<float> out) -> Status {
    const auto read = [&](std::span<std::byte> to) {
      const PartReader::Part part{parameter, start, shape, to};
      return reader->read({&part, 1});
    };
    const TensorSpec& spec = reader->spec(parameter);
    if (spec.dtype == "bf16") return widened(out, read);
    OSTRO_CHECK(spec.dtype == "f32", "{} is {}, neither f32 nor bf16", spec.path, spec.dtype);
    return read(std::as_writable_bytes(out));
  };
}

Status read_range(const ReadBox& read, size_t parameter, const Extents& shape, int64_t first,
                  std::span<float> out) {
  const size_t rank = shape.size();
  for (size_t done = 0; done < out.size();) {
    const auto left = static_cast<int64_t>(out.size() - done);
    const int64_t at = first + static_cast<int64_t>(done);
    Extents start(rank), box(rank, 1);
    int64_t rest = at;
    for (size_t d = rank; d-- > 0; rest /= shape[d]) start[d] = rest % shape[d];
    // From the inside: axes are whole as long as the range begins at their beginning and covers them.
    int64_t inner = 1;
    for (size_t d = rank; d-- > 0;) {
      box[d] = std::min(shape[d] - start[d], left / inner);
      inner *= box[d];
      if (box[d] < shape[d] || (d > 0 && left / inner == 0)) break;
    }
    RETURN_IF_ERROR(read(parameter, start, box, out.subspan(done, static_cast<size_t>(inner))));
    done += static_cast<size_t>(inner);
  }
  return {};
}

}  // namespace ostro::checkpoint
