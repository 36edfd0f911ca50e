#include "ostro/cli/model/export_grok.h"

#include <fmt/core.h>

#include <algorithm>

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
  const int64_t rows = decoder.vocab_rows(model.tokenizer->vocab_size());
  ASSIGN_OR_RETURN(const grok::GrokShape shape, grok::grok_shape(decoder, rows, matrices));
  const std::string directory = io::join_path(out, "ckpt-0");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(directory));
  if (exists)
    return invalid_argument(fmt::format("--out {}: {} exists; name a directory without it", out, directory));

  PercentProgressLine line;
  grok::ExportOptions options;
  options.read = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                     std::span<float> values) -> Status {
    const auto& paths = model.functions.paths;
    const auto found = std::find(paths.begin(), paths.end(), p.spec.path);
    OSTRO_CHECK(found != paths.end(), "the model has no parameter {}", p.spec.path);
    OSTRO_CHECK(static_cast<int64_t>(values.size()) == count * p.columns, "{}: {} elements for {} rows of {}",
                p.spec.path, values.size(), count, p.columns);
    read_elements(model.parameters.values[static_cast<size_t>(found - paths.begin())],
                  (std::max<int64_t>(layer, 0) * p.rows + first) * p.columns, values);
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
