#include "ostro/grok/convert/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ostro/grok/convert/quantize.h"
#include "ostro/grok/release/writer.h"
#include "ostro/numerics/arrays.h"

namespace ostro::grok {
namespace {

using numerics::Bf16;

constexpr int64_t kElementsAtOnce = 1 << 22;

// A tensor of the release inside the parameter that has its columns.
struct Place {
  const Parameter* parameter = nullptr;
  int64_t before = 0, width = 0;  // of a block of the parameter's columns: those before the tensor's, its own
};

Place place_of(const std::vector<Parameter>& parameters, const std::vector<Leaf>& leaves, const Leaf& leaf,
               Content content) {
  const auto columns_of = [&](Part part) {
    const auto found =
        std::find_if(leaves.begin(), leaves.end(), [part](const Leaf& l) { return l.part == part; });
    return found->tensor.weight.shape.back();
  };
  Place out;
  for (const Parameter& p : parameters) {
    int64_t before = 0;
    for (const Part part : p.parts) {
      // A parameter of one part may have its rows cut otherwise than the tensor: they are the same elements.
      const int64_t width = p.parts.size() == 1 ? p.columns : columns_of(part) / p.blocks;
      if (part == leaf.part && p.content == content) out = {&p, before, width};
      before += width;
    }
  }
  OSTRO_CHECK(out.parameter != nullptr, "{} is in no parameter", leaf.name);
  return out;
}

// Reads the elements of one tensor in order, whole rows of it at a time.
class TensorReader {
 public:
  TensorReader(const std::vector<Parameter>& parameters, const std::vector<Leaf>& leaves, const Leaf& leaf,
               const ExportOptions& options, Content content = Content::kElements)
      : leaf_(leaf), place_(place_of(parameters, leaves, leaf, content)), options_(options) {}

  // float: elements as f32. int8_t, Bf16: elements and scales of an int8 matrix as they are stored.
  template <typename T>
  Status next(std::span<T> out) {
    const Parameter& p = *place_.parameter;
    const int64_t row = place_.width * p.blocks, count = static_cast<int64_t>(out.size()) / row;
    OSTRO_CHECK(count * row == static_cast<int64_t>(out.size()), "{}: {} elements are no rows of {}",
                leaf_.name, out.size(), row);
    const int64_t first = first_;
    first_ += count;
    if (row == p.columns) return read(p, first, count, out);
    const int64_t block = p.columns / p.blocks;
    std::vector<T> wide(static_cast<size_t>(count * p.columns));
    RETURN_IF_ERROR(read(p, first, count, std::span<T>(wide)));
    for (int64_t i = 0; i < count * p.blocks; ++i)
      std::memcpy(out.data() + i * place_.width, wide.data() + i * block + place_.before,
                  static_cast<size_t>(place_.width) * sizeof(T));
    return {};
  }

 private:
  template <typename T>
  Status read(const Parameter& p, int64_t first, int64_t count, std::span<T> out) const {
    if constexpr (std::is_same_v<T, float>)
      return options_.read(p, leaf_.layer, first, count, out);
    else
      return options_.read_stored(p, leaf_.layer, first, count, std::as_writable_bytes(out));
  }

  const Leaf& leaf_;
  const Place place_;
  const ExportOptions& options_;
  int64_t first_ = 0;
};

// Appends all `count` elements of the reader's tensor as they are stored.
template <typename T>
Status append_stored(TensorReader reader, int64_t count, int64_t columns, const Append& append) {
  std::vector<T> values;
  const int64_t most = std::max<int64_t>(1, kElementsAtOnce / columns) * columns;
  for (int64_t done = 0; done < count; done += static_cast<int64_t>(values.size())) {
    values.resize(static_cast<size_t>(std::min(most, count - done)));
    RETURN_IF_ERROR(reader.next(std::span<T>(values)));
    RETURN_IF_ERROR(append(std::as_bytes(std::span(values))));
  }
  return {};
}

Status append_values(Dtype dtype, std::span<const float> values, const Append& append) {
  if (dtype == Dtype::kF32) return append(std::as_bytes(values));
  std::vector<std::byte> half(values.size() * sizeof(Bf16));
  numerics::narrow(values, half);
  return append(half);
}

// An int8 tensor from a model that holds it so.
Status write_stored(io::FileSystem& fs, const std::string& directory, const Leaf& leaf,
                    const TensorReader& weight, const TensorReader& scales) {
  const int64_t columns = leaf.tensor.weight.shape.back();
  return write_tensor(fs, directory, leaf, [&](const StoredArray& array, const Append& append) -> Status {
    const int64_t count = io::product(array.shape);
    return array.dtype == Dtype::kInt8 ? append_stored<int8_t>(weight, count, columns, append)
                                       : append_stored<Bf16>(scales, count, columns, append);
  });
}

// Writes a tensor from f32 parameters. Without scales, in pieces of whole rows. With scales, one group of
// rows at a time, since a group shares a row of scales; the scales are collected and written after the
// elements.
Status write_leaf(io::FileSystem& fs, const std::string& directory, const Leaf& leaf, TensorReader reader) {
  const StoredTensor& t = leaf.tensor;
  const int64_t columns = t.weight.shape.back();
  std::vector<Bf16> scales;
  const auto elements = [&](const StoredArray& array, const Append& append) -> Status {
    if (array.dtype != t.weight.dtype) return append(std::as_bytes(std::span(scales)));
    const int64_t count = io::product(array.shape);
    const int64_t part = t.scales ? count / (io::product(t.scales->shape) / columns)
                                  : std::max<int64_t>(1, kElementsAtOnce / columns) * columns;
    std::vector<float> values;
    std::vector<int8_t> small;
    for (int64_t done = 0; done < count;) {
      values.resize(static_cast<size_t>(std::min(part, count - done)));
      RETURN_IF_ERROR(reader.next(std::span<float>(values)));
      done += static_cast<int64_t>(values.size());
      if (!t.scales) {
        RETURN_IF_ERROR(append_values(array.dtype, values, append));
        continue;
      }
      small.resize(values.size());
      scales.resize(scales.size() + static_cast<size_t>(columns));
      const auto row = std::span(scales).last(static_cast<size_t>(columns));
      const Status made = quantize(values, columns, small, row);
      if (!made.ok()) return made.error().with_context(leaf_title(leaf));
      RETURN_IF_ERROR(append(std::as_bytes(std::span(small))));
    }
    return {};
  };
  return write_tensor(fs, directory, leaf, elements);
}

}  // namespace

Status export_release(io::FileSystem& fs, const std::string& directory, const GrokShape& shape,
                      const ExportOptions& options) {
  const std::vector<Parameter> all =
      parameters(shape, {0, shape.layers}, options.read_stored ? Held::kInt8 : Held::kF32);
  const std::vector<Leaf> leaves = make_leaves(shape);
  int64_t done = 0, total = 0;
  for (const Leaf& leaf : leaves) total += leaf.bytes;
  RETURN_IF_ERROR(begin_release(fs, directory, shape));
  for (const Leaf& leaf : leaves) {
    const TensorReader reader(all, leaves, leaf, options);
    RETURN_IF_ERROR(leaf.tensor.scales && options.read_stored
                        ? write_stored(fs, directory, leaf, reader,
                                       TensorReader(all, leaves, leaf, options, Content::kScales))
                        : write_leaf(fs, directory, leaf, reader));
    done += leaf.bytes;
    if (options.progress) options.progress(done, total);
  }
  return {};
}

}  // namespace ostro::grok
