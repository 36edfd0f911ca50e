#include "ostro/hf/export.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/hf/model_files.h"
#include "ostro/hf/weights.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::hf {

Result<NamedWeights> NamedWeights::create(const models::DecoderOptions& options,
                                          const std::vector<std::string>& paths,
                                          std::span<const runtime::Buffer> values) {
  NamedWeights out;
  for (const WeightPart& part : llama_weights(options)) {
    const auto at = std::find(paths.begin(), paths.end(), part.path);
    if (at == paths.end())
      return invalid_argument(
          fmt::format("the model has no {}, of which {} is a part", part.path, part.name));
    const runtime::Buffer& whole = values[static_cast<size_t>(at - paths.begin())];
    if (whole.shape().dtype != ir::DType::f32)
      return unsupported(fmt::format("{} is {}; only f32 is written", part.path, whole.shape().str()));
    out.storage_.push_back(take_part(part, whole));
    out.entries_.push_back({part.name, "F32", part_shape(part, whole.shape()), out.storage_.back()});
  }
  return out;
}

Status export_llama(io::FileSystem& fs, const std::string& directory, const models::DecoderOptions& options,
                    const tokenizer::Tokenizer& tokenizer, const NamedWeights& weights,
                    int64_t max_file_bytes) {
  RETURN_IF_ERROR(fs.make_dirs(directory));
  const auto write = [&](const char* name, const std::string& text) {
    return io::write_file_atomically(fs, io::join_path(directory, name), text);
  };
  RETURN_IF_ERROR(io::write_safetensors_sharded(fs, directory, weights.entries(), max_file_bytes));
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, tokenizer, io::join_path(directory, "tokenizer.json")));
  RETURN_IF_ERROR(write("tokenizer_config.json", tokenizer.tokenizer_config_json(options.seq_len)));
  RETURN_IF_ERROR(write("generation_config.json", generation_config_json(tokenizer)));
  return write("config.json", llama_config_json(options, tokenizer));
}

}  // namespace ostro::hf
