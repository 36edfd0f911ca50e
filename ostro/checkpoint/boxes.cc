#include "ostro/checkpoint/boxes.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "ostro/base/aligned.h"
#include "ostro/numerics/arrays.h"

namespace ostro::checkpoint {
namespace {

void widen_int8(std::span<const std::byte> stored, std::span<std::byte> out) {
  for (size_t i = 0; i < stored.size(); ++i) {
    const float wide = static_cast<int8_t>(stored[i]);
    std::memcpy(out.data() + i * sizeof(wide), &wide, sizeof(wide));
  }
}

// Reads elements of any type of ReadBox as f32; `read` fills the stored bytes.
template <typename Read>
Status read_as_f32(const std::string& name, std::string_view dtype, std::span<float> out, const Read& read) {
  const std::span<std::byte> wide = std::as_writable_bytes(out);
  OSTRO_CHECK(dtype == "f32" || dtype == "bf16" || dtype == "i8", "{} is {}, none of f32, bf16 and i8", name,
              dtype);
  if (dtype == "f32") return read(wide);
  const size_t bytes = out.size() * static_cast<size_t>(dtype_size(dtype));
  const AlignedBytes memory = allocate_aligned(bytes);
  const std::span<std::byte> stored(memory.get(), bytes);
  RETURN_IF_ERROR(read(stored));
  dtype == "bf16" ? numerics::widen(stored, wide) : widen_int8(stored, wide);
  return {};
}

}  // namespace

ReadBox boxes_in_memory(std::vector<runtime::Buffer> values) {
  return [values = std::move(values)](size_t parameter, const Extents& start, const Extents& shape,
                                      std::span<float> out) -> Status {
    const runtime::Buffer& from = values.at(parameter);
    Extents whole;
    for (const ir::Axis& axis : from.shape().axes) whole.push_back(axis.size);
    return read_as_f32(from.shape().str(), ir::dtype_name(from.shape().dtype), out,
                       [&](std::span<std::byte> to) {
                         io::copy_box(from.bytes(), whole, start, to, shape, Extents(shape.size(), 0), shape,
                                      ir::dtype_size(from.shape().dtype));
                         return Status();
                       });
  };
}

ReadBox boxes_of(std::shared_ptr<const PartReader> reader) {
  return [reader = std::move(reader)](size_t parameter, const Extents& start, const Extents& shape,
                                      std::span<float> out) -> Status {
    const TensorSpec& spec = reader->spec(parameter);
    return read_as_f32(spec.path, spec.dtype, out, [&](std::span<std::byte> to) {
      const PartReader::Part part{parameter, start, shape, to};
      return reader->read({&part, 1});
    });
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
