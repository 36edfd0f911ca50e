#include "ostro/cli/model/export_grok.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ostro/cli/shared/percent_progress.h"
#include "ostro/grok/convert/export.h"
#include "ostro/io/files/path.h"
#include "ostro/numerics/bf16.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::cli {
namespace {

Result<grok::Dtype> matrix_dtype(const std::string& name) {
  for (const grok::Dtype dtype : {grok::Dtype::kInt8, grok::Dtype::kBf16, grok::Dtype::kF32})
    if (name == grok::dtype_name(dtype)) return dtype;
  return invalid_argument(fmt::format("--dtype {}: --to grok takes int8, bf16 or f32", name));
}

// The parameter at this path.
const runtime::Buffer& value_of(const eval::LoadedModel& model, const std::string& path) {
  const auto& paths = model.functions.paths;
  const auto found = std::find(paths.begin(), paths.end(), path);
  OSTRO_CHECK(found != paths.end(), "the model has no parameter {}", path);
  return model.parameters.values[static_cast<size_t>(found - paths.begin())];
}

// Elements [first, first + out.size()) of an int8 parameter times their scales: row r of a layer's `rows` has
// those of group r div (rows / groups), where all leading axes of the scales count as groups.
void dequantize(const runtime::Buffer& value, const runtime::Buffer& scales, int64_t first, int64_t columns,
                std::span<float> out) {
  const int64_t rows = value.shape().count() / columns, groups = scales.shape().count() / columns;
  const auto from = value.as<int8_t>().subspan(static_cast<size_t>(first), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t at = first + static_cast<int64_t>(i), row = at / columns;
    const auto scale = static_cast<size_t>(row / (rows / groups) * columns + at % columns);
    out[i] = static_cast<float>(from[i]) * (scales.shape().dtype == ir::DType::bf16
                                                ? to_f32(scales.as<numerics::Bf16>()[scale])
                                                : scales.as<float>()[scale]);
  }
}

// Elements [first, first + out.size()) of a parameter as f32.
void read_elements(const runtime::Buffer& value, int64_t first, std::span<float> out) {
  const auto at = static_cast<size_t>(first);
  if (value.shape().dtype == ir::DType::bf16) {
    const auto from = value.as<numerics::Bf16>().subspan(at, out.size());
    std::transform(from.begin(), from.end(), out.begin(), [](numerics::Bf16 x) { return to_f32(x); });
  } else {
    const auto from = value.as<float>().subspan(at, out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }
}

}  // namespace

Status export_grok(io::FileSystem& fs, const std::string& out, const eval::LoadedModel& model,
                   const models::DecoderOptions& decoder, const std::string& dtype) {
  ASSIGN_OR_RETURN(const grok::Dtype matrices, matrix_dtype(dtype));
  if (train::lora_spec(model.config.adapter))
    return unsupported(
        fmt::format("{} has an adapter, which --to grok does not add to the weights", model.parameters.path));
  const auto vocab = static_cast<int64_t>(model.tokenizer->vocab_size());
  ASSIGN_OR_RETURN(const grok::GrokShape shape, grok::grok_shape(decoder, vocab, matrices));
  const std::string directory = io::join_path(out, "ckpt-0");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(directory));
  if (exists)
    return invalid_argument(fmt::format("--out {}: {} exists; name a directory without it", out, directory));

  PercentProgressLine line;
  grok::ExportOptions options;
  options.read = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                     std::span<float> values) -> Status {
    const runtime::Buffer& value = value_of(model, p.spec.path);
    OSTRO_CHECK(static_cast<int64_t>(values.size()) == count * p.columns, "{}: {} elements for {} rows of {}",
                p.spec.path, values.size(), count, p.columns);
    const int64_t at = (std::max<int64_t>(layer, 0) * p.rows + first) * p.columns;
    if (value.shape().dtype == ir::DType::i8)
      dequantize(value, value_of(model, grok::scales_path(p.spec.path)), at, p.columns, values);
    else
      read_elements(value, at, values);
    return {};
  };
  if (decoder.int8_row_groups > 0)
    options.read_stored = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                              std::span<std::byte> out_bytes) -> Status {
      const runtime::Buffer& value = value_of(model, p.spec.path);
      const int64_t row_bytes = p.columns * checkpoint::dtype_size(p.spec.dtype);
      const int64_t at = std::max<int64_t>(layer, 0) * p.rows + first;
      OSTRO_CHECK(ir::dtype_name(value.shape().dtype) == p.spec.dtype, "{} is {}, not {}", p.spec.path,
                  value.shape().str(), p.spec.dtype);
      OSTRO_CHECK(static_cast<int64_t>(out_bytes.size()) == count * row_bytes,
                  "{}: {} bytes for {} rows of {}", p.spec.path, out_bytes.size(), count, row_bytes);
      std::memcpy(out_bytes.data(), value.bytes().data() + at * row_bytes, out_bytes.size());
      return {};
    };
  options.progress = [&line](int64_t done, int64_t total) {
    line.draw("exporting", static_cast<double>(done) / static_cast<double>(total));
  };
  const Status written = grok::export_release(fs, directory, shape, options);
  line.end();
  RETURN_IF_ERROR(written);
  return tokenizer::save_tokenizer(fs, *model.tokenizer, io::join_path(out, "tokenizer.json"));
}

}  // namespace ostro::cli
