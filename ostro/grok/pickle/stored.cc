#include "ostro/grok/pickle/stored.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <limits>

namespace ostro::grok {
namespace {

std::string describe_array(const StoredArray& array) {
  return fmt::format("{} [{}]", dtype_name(array.dtype), fmt::join(array.shape, ", "));
}

bool same_kind_of_array(const StoredArray& a, const StoredArray& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

}  // namespace

int64_t item_size(Dtype dtype) { return dtype == Dtype::kF32 ? 4 : dtype == Dtype::kBf16 ? 2 : 1; }

const char* dtype_name(Dtype dtype) {
  return dtype == Dtype::kF32 ? "f32" : dtype == Dtype::kBf16 ? "bf16" : "int8";
}

bool StoredTensor::same_kind(const StoredTensor& other) const {
  if (!same_kind_of_array(weight, other.weight) || scales.has_value() != other.scales.has_value())
    return false;
  return !scales || same_kind_of_array(*scales, *other.scales);
}

std::optional<int64_t> bytes_needed(Dtype dtype, const io::Extents& shape) {
  int64_t bytes = item_size(dtype);
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (bytes > std::numeric_limits<int64_t>::max() / extent) {
      return std::nullopt;
    } else {
      bytes *= extent;
    }
  }
  return empty ? 0 : bytes;
}

std::string describe(const StoredTensor& tensor) {
  std::string text = describe_array(tensor.weight);
  if (tensor.scales) text += " with scales " + describe_array(*tensor.scales);
  return text;
}

}  // namespace ostro::grok
