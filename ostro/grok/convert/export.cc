#include "ostro/grok/convert/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ostro/grok/convert/quantize.h"
#include "ostro/grok/release/writer.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

using numerics::Bf16;

constexpr int64_t kElementsAtOnce = 1 << 22;

// A tensor of the release inside the parameter that has its columns.
struct Place {
  const Parameter* parameter = nullptr;
  int64_t before = 0, width = 0;  // of a block of the parameter's columns: those before the tensor's, its own
};

Place place_of(const std::vector<Parameter>& parameters, const std::vector<Leaf>& leaves, const Leaf& leaf) {
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
      if (part == leaf.part) out = {&p, before, width};
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
               const ExportOptions& options)
      : leaf_(leaf), place_(place_of(parameters, leaves, leaf)), options_(options) {}

  Status next(std::span<float> out) {
    const Parameter& p = *place_.parameter;
    const int64_t row = place_.width * p.blocks, count = static_cast<int64_t>(out.size()) / row;
    OSTRO_CHECK(count * row == static_cast<int64_t>(out.size()), "{}: {} elements are no rows of {}",
                leaf_.name, out.size(), row);
    const int64_t first = first_;
    first_ += count;
    if (row == p.columns) return options_.read(p, leaf_.layer, first, count, out);
    const int64_t block = p.columns / p.blocks;
    wide_.resize(static_cast<size_t>(count * p.columns));
    RETURN_IF_ERROR(options_.read(p, leaf_.layer, first, count, wide_));
    for (int64_t i = 0; i < count * p.blocks; ++i)
      std::memcpy(out.data() + i * place_.width, wide_.data() + i * block + place_.before,
                  static_cast<size_t>(place_.width) * sizeof(float));
    return {};
  }

 private:
  const Leaf& leaf_;
  const Place place_;
  const ExportOptions& options_;
  int64_t first_ = 0;
  std::vector<float> wide_;
};

Status append_values(Dtype dtype, std::span<const float> values, const Append& append) {
  if (dtype == Dtype::kF32) return append(std::as_bytes(values));
  std::vector<Bf16> half(values.size());
  std::transform(values.begin(), values.end(), half.begin(), numerics::to_bf16);
  return append(std::as_bytes(std::span(half)));
}

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
      RETURN_IF_ERROR(reader.next(values));
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
  const std::vector<Parameter> all = parameters(shape, {0, shape.layers}, Held::kF32);
  const std::vector<Leaf> leaves = make_leaves(shape);
  int64_t done = 0, total = 0;
  for (const Leaf& leaf : leaves) total += leaf.bytes;
  RETURN_IF_ERROR(begin_release(fs, directory, shape));
  for (const Leaf& leaf : leaves) {
    RETURN_IF_ERROR(write_leaf(fs, directory, leaf, TensorReader(all, leaves, leaf, options)));
    done += leaf.bytes;
    if (options.progress) options.progress(done, total);
  }
  return {};
}

}  // namespace ostro::grok
