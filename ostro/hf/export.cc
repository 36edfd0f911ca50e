#include "ostro/hf/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ostro/hf/elements.h"
#include "ostro/hf/model_files.h"
#include "ostro/hf/weights.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::hf {

Result<NamedWeights> NamedWeights::create(const models::DecoderOptions& options,
                                          const std::vector<std::string>& paths,
                                          std::span<const runtime::Buffer> values, std::string_view dtype) {
  if (!is_weight_dtype(dtype))
    return invalid_argument(fmt::format("weights as {}; use F32, BF16 or F16", dtype));
  NamedWeights out;
  ASSIGN_OR_RETURN(const std::vector<WeightPart> parts, family_weights(options));
  for (const WeightPart& part : parts) {
    const auto at = std::find(paths.begin(), paths.end(), part.path);
    if (at == paths.end())
      return invalid_argument(
          fmt::format("the model has no {}, of which {} is a part", part.path, part.name));
    const runtime::Buffer& whole = values[static_cast<size_t>(at - paths.begin())];
    if (whole.shape().dtype != ir::DType::f32)
      return unsupported(fmt::format("{} is {}; only f32 is written", part.path, whole.shape().str()));
    std::vector<std::byte> bytes = take_part(part, whole);
    if (dtype != "F32") {
      std::vector<float> values_of(bytes.size() / sizeof(float));
      std::memcpy(values_of.data(), bytes.data(), bytes.size());
      bytes.resize(values_of.size() * static_cast<size_t>(io::safetensors_item_size(dtype)));
      elements_from_f32(dtype, values_of, bytes);
    }
    const std::vector<int64_t> shape = part_shape(part, whole.shape());
    if (out.entries_.empty() || out.entries_.back().name != part.name) {
      out.storage_.push_back(std::move(bytes));
      out.entries_.push_back({part.name, std::string(dtype), shape, {}});
    } else {  // its rows follow those of the part before
      out.storage_.back().insert(out.storage_.back().end(), bytes.begin(), bytes.end());
      out.entries_.back().shape[0] += shape[0];
    }
    out.entries_.back().bytes = out.storage_.back();
  }
  return out;
}

Status export_model(io::FileSystem& fs, const std::string& directory, const HfModel& model,
                    const tokenizer::Tokenizer& tokenizer, std::span<const io::SafetensorsEntry> weights,
                    int64_t max_file_bytes) {
  const std::string dtype = weights.empty() ? "F32" : weights.front().dtype;
  ASSIGN_OR_RETURN(const std::string config, config_json(model, tokenizer,
                                                         dtype == "F32"    ? "float32"
                                                         : dtype == "BF16" ? "bfloat16"
                                                                           : "float16"));
  RETURN_IF_ERROR(fs.make_dirs(directory));
  const auto write = [&](const char* name, const std::string& text) {
    return io::write_file_atomically(fs, io::join_path(directory, name), text);
  };
  RETURN_IF_ERROR(io::write_safetensors_sharded(fs, directory, weights, max_file_bytes));
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, tokenizer, io::join_path(directory, "tokenizer.json")));
  RETURN_IF_ERROR(write("tokenizer_config.json", tokenizer.tokenizer_config_json(model.options.seq_len)));
  RETURN_IF_ERROR(write("generation_config.json", generation_config_json(tokenizer)));
  return write("config.json", config);
}

}  // namespace ostro::hf
