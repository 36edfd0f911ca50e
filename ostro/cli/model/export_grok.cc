#include "ostro/cli/model/export_grok.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/checkpoint/boxes.h"
#include "ostro/cli/shared/percent_progress.h"
#include "ostro/grok/convert/export.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::cli {
namespace {

Result<grok::Dtype> matrix_dtype(const std::string& name) {
  for (const grok::Dtype dtype : {grok::Dtype::kInt8, grok::Dtype::kBf16, grok::Dtype::kF32})
    if (name == grok::dtype_name(dtype)) return dtype;
  return invalid_argument(fmt::format("--dtype {}: --to grok takes int8, bf16 or f32", name));
}

Result<grok::GrokShape> shape_of(const eval::LoadedModel& model, const models::DecoderOptions& decoder,
                                 const std::string& dtype) {
  ASSIGN_OR_RETURN(const grok::Dtype matrices, matrix_dtype(dtype));
  return grok::grok_shape(decoder, decoder.vocab_rows(model.tokenizer->vocab_size()), matrices);
}

std::string directory_in(const std::string& out) { return io::join_path(out, "ckpt-0"); }

}  // namespace

Status check_grok_export(io::FileSystem& fs, const std::string& out, const eval::LoadedModel& model,
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

Status export_grok(io::FileSystem& fs, const std::string& out, const eval::LoadedModel& model,
                   const models::DecoderOptions& decoder, const hf::WeightSource& source,
                   const std::string& dtype) {
  ASSIGN_OR_RETURN(const grok::GrokShape shape, shape_of(model, decoder, dtype));
  PercentProgressLine line;
  grok::ExportOptions options;
  options.read = [&](const grok::Parameter& p, int64_t layer, int64_t first, int64_t count,
                     std::span<float> values) -> Status {
    const auto found = std::find(source.paths.begin(), source.paths.end(), p.spec.path);
    OSTRO_CHECK(found != source.paths.end(), "the model has no parameter {}", p.spec.path);
    OSTRO_CHECK(static_cast<int64_t>(values.size()) == count * p.columns, "{}: {} elements for {} rows of {}",
                p.spec.path, values.size(), count, p.columns);
    const auto k = static_cast<size_t>(found - source.paths.begin());
    checkpoint::Extents extents;
    for (const ir::Axis& axis : source.shapes[k].axes) extents.push_back(axis.size);
    return checkpoint::read_range(source.read, k, extents,
                                  (std::max<int64_t>(layer, 0) * p.rows + first) * p.columns, values);
  };
  options.progress = [&line](int64_t done, int64_t total) {
    line.draw("exporting", static_cast<double>(done) / static_cast<double>(total));
  };
  const Status written = grok::export_release(fs, directory_in(out), shape, options);
  line.end();
  RETURN_IF_ERROR(written);
  return tokenizer::save_tokenizer(fs, *model.tokenizer, io::join_path(out, "tokenizer.json"));
}

}  // namespace ostro::cli
