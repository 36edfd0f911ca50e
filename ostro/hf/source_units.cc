#include "ostro/hf/source_units.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "ostro/base/check.h"
#include "ostro/base/parallel.h"
#include "ostro/hf/elements.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

constexpr int64_t kReadElements = int64_t{1} << 20;  // of a tensor, read at once by one thread

bool is_stacking(const std::string& axis) { return axis == "layers" || axis == "experts"; }

int64_t cell_of(const WeightPart& part, const ir::Shape& shape) {
  int64_t cell = 0;
  for (size_t a = 0; a < stacking_axes(shape); ++a) {
    cell *= shape.axes[a].size;
    for (const Cut& cut : part.cuts)
      if (cut.axis == shape.axes[a].name) cell += cut.start;
  }
  return cell;
}

// Converts a square of elements and writes it to its places in the unit. `bytes` are rows of `width`
// elements; the first row belongs at `places.rows[first]`. The square goes through a copy that fits into the
// first cache, because the rows of a large matrix would evict each other there. Returns the index in `bytes`
// of the first element that is infinite or NaN.
constexpr int64_t kSide = 64;
struct Square {
  int64_t row, column, rows, columns;
};
std::optional<int64_t> scatter(std::string_view dtype, int64_t item, std::span<const std::byte> bytes,
                               int64_t width, const Square& at, const PartPlaces& places, int64_t first,
                               float* unit) {
  float values[kSide][kSide];
  for (int64_t r = 0; r < at.rows; ++r) {
    const int64_t begin = (at.row + r) * width + at.column;
    const std::span<float> row(values[r], static_cast<size_t>(at.columns));
    elements_to_f32(
        dtype, bytes.subspan(static_cast<size_t>(begin * item), row.size() * static_cast<size_t>(item)), row);
    if (const auto c = numerics::first_from(row)) return begin + static_cast<int64_t>(*c);
  }
  const int64_t* rows = places.rows.data() + first + at.row;
  const int64_t* columns = places.columns.data() + at.column;
  if (at.columns > 1 && columns[1] == columns[0] + 1) {
    for (int64_t r = 0; r < at.rows; ++r)
      for (int64_t c = 0; c < at.columns; ++c) unit[rows[r] + columns[c]] = values[r][c];
  } else {
    for (int64_t c = 0; c < at.columns; ++c)
      for (int64_t r = 0; r < at.rows; ++r) unit[rows[r] + columns[c]] = values[r][c];
  }
  return std::nullopt;
}

// Puts a part of the tensor into its places of the unit, block of rows by block of rows.
Status read_part(const Source& source, const SourcePart& from, const ir::Shape& shape, std::span<float> unit,
                 int threads) {
  WeightPart part = from.part;
  for (Cut& cut : part.cuts)
    if (is_stacking(cut.axis)) cut.start = 0;  // of the unit
  const PartPlaces places = part_places(part, shape);
  const io::SafetensorsInfo& tensor = *from.tensor;
  const auto rows = static_cast<int64_t>(places.rows.size()),
             columns = static_cast<int64_t>(places.columns.size());
  const int64_t item = io::safetensors_item_size(tensor.dtype),
                block = std::max<int64_t>(1, kReadElements / columns);
  return parallel_for((rows + block - 1) / block, threads, [&](int64_t b) -> Status {
    const int64_t first = b * block, count = std::min(block, rows - first);
    const auto size = static_cast<size_t>(count * columns * item);
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
    const std::span bytes(memory.get(), size);
    RETURN_IF_ERROR(source.reader.read_range(tensor, (from.first_row + first) * columns * item, bytes));
    for (int64_t r = 0; r < count; r += kSide)
      for (int64_t c = 0; c < columns; c += kSide)
        if (const auto bad = scatter(tensor.dtype, item, bytes, columns,
                                     {r, c, std::min(kSide, count - r), std::min(kSide, columns - c)}, places,
                                     first, unit.data()))
          return corrupt(not_finite(source.reader.file_of(tensor), tensor.name,
                                    (from.first_row + first) * columns + *bad));
    return {};
  });
}

int64_t elements_of(const Unit& unit, const ir::Shape& shape) {
  int64_t count = 0;
  for (const SourcePart& p : unit.parts) {
    int64_t product = 1;
    for (const int64_t n : part_shape(p.part, shape)) product *= n;
    count += product;
  }
  return count;
}

}  // namespace

size_t stacking_axes(const ir::Shape& shape) {
  size_t n = 0;
  while (n + 1 < shape.axes.size() && is_stacking(shape.axes[n].name)) ++n;
  return n;
}

ir::Shape unit_shape(ir::Shape shape) {
  const size_t n = stacking_axes(shape);
  for (size_t a = 0; a < n; ++a) shape.axes[a].size = 1;
  return shape;
}

std::vector<Unit> units_of(const Source& source) {
  std::vector<Unit> units;
  for (size_t k = 0; k < source.paths.size(); ++k) {
    const ir::Shape& shape = source.shapes[k];
    const int64_t cells = shape.count() / unit_shape(shape).count();
    const size_t first = units.size();
    for (int64_t i = 0; i < cells; ++i) units.push_back({k, i, {}});
    for (const SourcePart& p : source.parts)
      if (p.part.path == source.paths[k])
        units[first + static_cast<size_t>(cell_of(p.part, shape))].parts.push_back(p);
  }
  return units;
}

Status read_unit(const Source& source, const Unit& unit, std::span<float> values, int threads) {
  const ir::Shape& whole = source.shapes[unit.parameter];
  const ir::Shape shape = unit_shape(whole);
  OSTRO_CHECK(elements_of(unit, whole) == shape.count() && std::ssize(values) == shape.count(),
              "{}, cell {}: {} of {} elements are in the family's table, for {}",
              source.paths[unit.parameter], unit.cell, elements_of(unit, whole), shape.count(),
              values.size());
  for (const SourcePart& part : unit.parts) RETURN_IF_ERROR(read_part(source, part, shape, values, threads));
  return {};
}

}  // namespace ostro::hf
