#include "ostro/convert/export_grok.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "ostro/checkpoint/boxes.h"
#include "ostro/grok/convert/export.h"
#include "ostro/io/files/path.h"
#include "ostro/numerics/bf16.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::convert {
namespace {

Result<grok::Dtype> matrix_dtype(const std::string& name) {
  for (const grok::Dtype dtype : {grok::Dtype::kInt8, grok::Dtype::kBf16, grok::Dtype::kF32})
    if (name == grok::dtype_name(dtype)) return dtype;
  return invalid_argument(fmt::format("--dtype {}: --to grok takes int8, bf16 or f32", name));
}

Result<grok::GrokShape> shape_of(const trained::LoadedModel& model, const models::DecoderOptions& decoder,
                                 const std::string& dtype) {
  ASSIGN_OR_RETURN(const grok::Dtype matrices, matrix_dtype(dtype));
  return grok::grok_shape(decoder, decoder.vocab_rows(model.tokenizer->vocab_size()), matrices);
}

// Rows of the parameters of a source, each a matrix of all its leading axes.
class Rows {
 public:
  explicit Rows(const hf::WeightSource& source) : source_(source) {}

  bool is_int8(const std::string& path) const { return source_.shapes[index(path)].dtype == ir::DType::i8; }

  // Rows [first, first + count) of `columns` elements; of int8 the whole numbers.
  Status read(const std::string& path, int64_t first, int64_t count, int64_t columns,
              std::span<float> values) const {
    OSTRO_CHECK(static_cast<int64_t>(values.size()) == count * columns, "{}: {} elements for {} rows of {}",
                path, values.size(), count, columns);
    const size_t k = index(path);
    checkpoint::Extents extents;
    for (const ir::Axis& axis : source_.shapes[k].axes) extents.push_back(axis.size);
    return checkpoint::read_range(source_.read, k, extents, first * columns, values);
  }

  // Multiplies such rows by their scales: as many rows of these are of equally many rows of the parameter.
  Status scale(const std::string& path, int64_t first, int64_t count, int64_t columns,
               std::span<float> values) const {
    const std::string scales_path = grok::scales_path(path);
    const int64_t in_group = source_.shapes[index(path)].count() / source_.shapes[index(scales_path)].count();
    std::vector<float> scales(static_cast<size_t>(columns));
    for (int64_t row = first, group = -1; row < first + count; ++row) {
      if (row / in_group != group) {
        group = row / in_group;
        RETURN_IF_ERROR(read(scales_path, group, 1, columns, scales));
      }
      const auto of_row = values.subspan(static_cast<size_t>((row - first) * columns), scales.size());
      std::transform(of_row.begin(), of_row.end(), scales.begin(), of_row.begin(), std::multiplies<>());
    }
    return {};
  }

 private:
  size_t index(const std::string& path) const {
    const auto found = std::find(source_.paths.begin(), source_.paths.end(), path);
    OSTRO_CHECK(found != source_.paths.end(), "the model has no parameter {}", path);
    return static_cast<size_t>(found - source_.paths.begin());
  }

  const hf::WeightSource& source_;
};

// Values as the elements of a type that holds them exactly. Error: a value that is not finite.
Status narrow(std::span<const float> values, const checkpoint::TensorSpec& spec, std::span<std::byte> out) {
  const int64_t size = checkpoint::dtype_size(spec.dtype);
  OSTRO_CHECK(out.size() == values.size() * static_cast<size_t>(size), "{}: {} bytes for {} elements",
              spec.path, out.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      return corrupt(
          fmt::format("{}: an element is {}; the checkpoint holds no usable weights", spec.path, values[i]));
    std::byte* to = out.data() + i * static_cast<size_t>(size);
    if (spec.dtype == "i8") {
      const auto x = static_cast<int8_t>(values[i]);
      std::memcpy(to, &x, sizeof(x));
    } else if (spec.dtype == "bf16") {
      const numerics::Bf16 x = numerics::to_bf16(values[i]);
      OSTRO_CHECK(numerics::to_f32(x) == values[i], "{}: {} is not of bf16", spec.path, values[i]);
      std::memcpy(to, &x, sizeof(x));
    } else {
      std::memcpy(to, &values[i], sizeof(float));
    }
  }
  return {};
}

std::string directory_in(const std::string& out) { return io::join_path(out, kGrokFolder); }

}  // namespace

Status check_grok_export(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                         const models::DecoderOptions& decoder, const std::string& dtype) {
  RETURN_IF_ERROR(shape_of(model, decoder, dtype));
  if (train::lora_spec(model.config.adapter))
    return unsupported(
        fmt::format("{} has an adapter, which --to grok does not add to the weights", model.parameters.path));
  const std::string directory = directory_in(out);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(directory));
  if (exists)
    return invalid_argument(fmt::format("--out {}: {} exists; name a directory without it", out, directory));
  return {};
}

Status export_grok(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, const hf::WeightSource& source,
                   const std::string& dtype, Progress& progress) {
  ASSIGN_OR_RETURN(const grok::GrokShape shape, shape_of(model, decoder, dtype));
  const Rows rows(source);
  grok::ExportOptions options;
  options.read = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                     std::span<float> values) -> Status {
    const int64_t at = std::max<int64_t>(layer, 0) * p.rows + first;
    RETURN_IF_ERROR(rows.read(p.spec.path, at, count, p.columns, values));
    return rows.is_int8(p.spec.path) ? rows.scale(p.spec.path, at, count, p.columns, values) : Status();
  };
  if (decoder.int8_row_groups > 0)
    options.read_stored = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                              std::span<std::byte> out_bytes) -> Status {
      std::vector<float> values(static_cast<size_t>(count * p.columns));
      RETURN_IF_ERROR(
          rows.read(p.spec.path, std::max<int64_t>(layer, 0) * p.rows + first, count, p.columns, values));
      return narrow(values, p.spec, out_bytes);
    };
  options.progress = [&progress](int64_t done, int64_t total) {
    progress.show("exporting", static_cast<double>(done) / static_cast<double>(total));
  };
  const Status written = grok::export_release(fs, directory_in(out), shape, options);
  progress.end();
  RETURN_IF_ERROR(written);
  return tokenizer::save_tokenizer(fs, *model.tokenizer, io::join_path(out, "tokenizer.json"));
}

Result<std::vector<grok::Leaf>> grok_leaves(const trained::LoadedModel& model,
                                            const models::DecoderOptions& decoder, const std::string& dtype) {
  ASSIGN_OR_RETURN(const grok::GrokShape shape, shape_of(model, decoder, dtype));
  return grok::make_leaves(shape);
}

}  // namespace ostro::convert
