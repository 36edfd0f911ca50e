#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/hf/elements.h"
#include "ostro/hf/export.h"
#include "ostro/hf/weights.h"
#include "ostro/numerics/arrays.h"

namespace ostro::hf {
namespace {

using Append = io::SafetensorsEntry::Append;

// The state that all entries share.
struct From {
  From(WeightSource s, std::string d, int64_t b) : source(std::move(s)), dtype(std::move(d)), block(b) {}

  WeightSource source;
  std::string dtype;
  int64_t block = 0;                         // elements
  mutable std::atomic<bool> warned = false;  // of a value that is not finite: once is enough
};

struct PlacedPart {
  WeightPart part;
  size_t parameter = 0;
};

// Ranges of the axes of a weight.
struct Box {
  io::Extents start, shape;
};

// The boxes that hold the rows of a part, in the order of the rows. A box has at most `most` elements, or one
// row if that is longer. The outermost row axes are taken one index at a time until the rest is small enough
// to be cut along one axis; the axes behind that one are whole.
std::vector<Box> row_blocks(const WeightPart& part, const ir::Shape& whole, int64_t most) {
  Box all;
  for (const ir::Axis& axis : whole.axes) {
    const auto cut =
        std::find_if(part.cuts.begin(), part.cuts.end(), [&](const Cut& c) { return c.axis == axis.name; });
    all.start.push_back(cut == part.cuts.end() ? 0 : cut->start);
    all.shape.push_back(cut == part.cuts.end() ? axis.size : cut->count);
  }
  io::Extents block = all.shape, rows;
  int64_t elements = io::product(all.shape);
  for (const std::string& axis : part.rows) {
    const auto d = static_cast<size_t>(whole.find(axis));
    const int64_t inner = elements / all.shape[d];
    if (elements > most) block[d] = std::clamp<int64_t>(most / inner, 1, all.shape[d]);
    elements = block[d] == 1 ? inner : 0;  // axes after one that is cut are whole
    rows.push_back(static_cast<int64_t>(d));
  }
  // In the order of the rows, which need not be that of the axes.
  io::Extents grid;
  for (const int64_t d : rows)
    grid.push_back((all.shape[static_cast<size_t>(d)] + block[static_cast<size_t>(d)] - 1) /
                   block[static_cast<size_t>(d)]);
  std::vector<Box> out;
  check_ok(io::for_each_index(grid, [&](const io::Extents& index) -> Status {
    Box box{all.start, block};
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto d = static_cast<size_t>(rows[i]);
      box.start[d] += index[i] * block[d];
      box.shape[d] = std::min(block[d], all.start[d] + all.shape[d] - box.start[d]);
    }
    out.push_back(std::move(box));
    return {};
  }));
  return out;
}

// Reads a part box by box as f32, brings each box into Hugging Face's order, converts it and appends it.
Status append_part(const From& from, const PlacedPart& placed, const Append& append) {
  const ir::Shape& whole = from.source.shapes[placed.parameter];
  WeightPart part = placed.part;
  part.cuts.clear();  // a box has nothing else
  for (const Box& box : row_blocks(placed.part, whole, from.block)) {
    ir::Shape shape = whole;
    shape.dtype = ir::DType::f32;
    for (size_t d = 0; d < shape.axes.size(); ++d) shape.axes[d].size = box.shape[d];
    std::vector<std::byte> bytes;
    {
      runtime::Buffer values = runtime::Buffer::empty(shape);
      RETURN_IF_ERROR(from.source.read(placed.parameter, box.start, box.shape, values.mutable_as<float>()));
      bytes = take_part(part, values);
    }
    const std::span<const float> values(reinterpret_cast<const float*>(bytes.data()),
                                        bytes.size() / sizeof(float));
    if (numerics::first_from(values) && !from.warned.exchange(true))
      log_warning(
          fmt::format("tensor {} has values that are infinite or NaN: the model is useless, and `ostro "
                      "import` refuses it",
                      placed.part.name));
    if (from.dtype == "F32") {
      RETURN_IF_ERROR(append(bytes));
      continue;
    }
    std::vector<std::byte> narrow(values.size() * static_cast<size_t>(io::safetensors_item_size(from.dtype)));
    if (const auto at = first_unfit(from.dtype, values))
      return invalid_argument(fmt::format("--dtype: tensor {} has the value {}, which {} cannot hold; use {}",
                                          placed.part.name, values[*at], from.dtype,
                                          from.dtype == "F16" ? "bf16 or f32" : "f32"));
    elements_from_f32(from.dtype, values, narrow);
    RETURN_IF_ERROR(append(narrow));
  }
  return {};
}

}  // namespace

Result<std::vector<io::SafetensorsEntry>> streamed_weights(const models::DecoderOptions& options,
                                                           WeightSource source, std::string_view dtype,
                                                           int64_t block_elements) {
  if (!is_weight_dtype(dtype))
    return invalid_argument(fmt::format("weights as {}; use F32, BF16 or F16", dtype));
  ASSIGN_OR_RETURN(const std::vector<WeightPart> parts, family_weights(options));
  const auto from = std::make_shared<const From>(std::move(source), std::string(dtype), block_elements);
  const std::vector<std::string>& paths = from->source.paths;
  std::vector<io::SafetensorsEntry> entries;
  std::vector<std::vector<PlacedPart>> parts_of;
  for (const WeightPart& part : parts) {
    const auto at = std::find(paths.begin(), paths.end(), part.path);
    if (at == paths.end())
      return invalid_argument(
          fmt::format("the model has no {}, of which {} is a part", part.path, part.name));
    const auto parameter = static_cast<size_t>(at - paths.begin());
    const std::vector<int64_t> shape = part_shape(part, from->source.shapes[parameter]);
    if (entries.empty() || entries.back().name != part.name) {
      entries.push_back({part.name, std::string(dtype), shape, {}});
      parts_of.emplace_back();
    } else {  // its rows follow those of the part before
      entries.back().shape[0] += shape[0];
    }
    parts_of.back().push_back({part, parameter});
  }
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i].write = [from, mine = std::move(parts_of[i])](const Append& append) -> Status {
      for (const PlacedPart& part : mine) RETURN_IF_ERROR(append_part(*from, part, append));
      return {};
    };
  return entries;
}

}  // namespace ostro::hf
