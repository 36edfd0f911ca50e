#include "ostro/hf/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ostro/base/check.h"

namespace ostro::hf {
namespace {

const Cut* find_cut(const WeightPart& part, const std::string& axis) {
  for (const Cut& cut : part.cuts)
    if (cut.axis == axis) return &cut;
  return nullptr;
}

int64_t count_of(const WeightPart& part, const ir::Shape& whole, const std::string& axis) {
  const Cut* cut = find_cut(part, axis);
  return cut != nullptr ? cut->count : whole.size_of(axis);
}

int64_t product_of(const WeightPart& part, const ir::Shape& whole, const std::vector<std::string>& axes) {
  int64_t product = 1;
  for (const std::string& axis : axes) product *= count_of(part, whole, axis);
  return product;
}

// The places along these axes, the last one fastest.
std::vector<int64_t> places_along(const WeightPart& part, const ir::Shape& whole,
                                  const std::vector<std::string>& axes, int64_t origin) {
  const std::vector<int64_t> strides = whole.strides();
  std::vector<int64_t> out = {origin};
  for (const std::string& axis : axes) {
    const int64_t stride = strides[static_cast<size_t>(whole.find(axis))], n = count_of(part, whole, axis);
    std::vector<int64_t> longer;
    longer.reserve(out.size() * static_cast<size_t>(n));
    for (const int64_t at : out)
      for (int64_t i = 0; i < n; ++i) longer.push_back(at + i * stride);
    out = std::move(longer);
  }
  return out;
}

template <class Element>
void copy_part(const PartPlaces& places, const std::byte* from, std::byte* to) {
  // Squares of a few rows and columns, so that neither side is walked in long strides.
  constexpr size_t kSide = 32;
  const size_t rows = places.rows.size(), columns = places.columns.size();
  for (size_t r0 = 0; r0 < rows; r0 += kSide)
    for (size_t c0 = 0; c0 < columns; c0 += kSide)
      for (size_t r = r0; r < std::min(r0 + kSide, rows); ++r)
        for (size_t c = c0; c < std::min(c0 + kSide, columns); ++c)
          std::memcpy(to + (r * columns + c) * sizeof(Element),
                      from + static_cast<size_t>(places.rows[r] + places.columns[c]) * sizeof(Element),
                      sizeof(Element));
}

}  // namespace

std::vector<int64_t> part_shape(const WeightPart& part, const ir::Shape& whole) {
  std::vector<int64_t> shape = {product_of(part, whole, part.rows)};
  if (!part.columns.empty()) shape.push_back(product_of(part, whole, part.columns));
  return shape;
}

PartPlaces part_places(const WeightPart& part, const ir::Shape& whole) {
  const std::vector<int64_t> strides = whole.strides();
  int64_t origin = 0;
  for (const Cut& cut : part.cuts) {
    OSTRO_CHECK(cut.start + cut.count <= whole.size_of(cut.axis), "{}: {} has {} of {}", part.name, part.path,
                whole.size_of(cut.axis), cut.axis);
    origin += cut.start * strides[static_cast<size_t>(whole.find(cut.axis))];
  }
  return {places_along(part, whole, part.rows, origin), places_along(part, whole, part.columns, 0)};
}

std::vector<std::byte> take_part(const WeightPart& part, const runtime::Buffer& whole) {
  const PartPlaces places = part_places(part, whole.shape());
  const auto item = static_cast<size_t>(ir::dtype_size(whole.shape().dtype));
  std::vector<std::byte> out(places.rows.size() * places.columns.size() * item);
  const std::byte* from = whole.bytes().data();
  switch (item) {
    case 1: copy_part<uint8_t>(places, from, out.data()); break;
    case 2: copy_part<uint16_t>(places, from, out.data()); break;
    case 4: copy_part<uint32_t>(places, from, out.data()); break;
    default:
      OSTRO_CHECK(item == 8, "{}: elements of {} bytes", part.path, item);
      copy_part<uint64_t>(places, from, out.data());
  }
  return out;
}

}  // namespace ostro::hf
