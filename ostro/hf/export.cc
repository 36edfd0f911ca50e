#include "ostro/hf/export.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ostro/hf/model_files.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::hf {

Result<NamedWeights> NamedWeights::create(const models::DecoderOptions& options,
                                          const std::vector<std::string>& paths,
                                          std::span<const runtime::Buffer> values, std::string_view dtype) {
  WeightSource source{paths, {}, checkpoint::boxes_in_memory({values.begin(), values.end()})};
  for (size_t i = 0; i < values.size(); ++i) {
    source.shapes.push_back(values[i].shape());
    if (values[i].shape().dtype != ir::DType::f32)
      return unsupported(fmt::format("{} is {}; only f32 is written", paths[i], values[i].shape().str()));
  }
  NamedWeights out;
  ASSIGN_OR_RETURN(out.entries_, streamed_weights(options, std::move(source), dtype));
  out.storage_.resize(out.entries_.size());
  for (size_t i = 0; i < out.entries_.size(); ++i) {
    io::SafetensorsEntry& entry = out.entries_[i];
    std::vector<std::byte>& bytes = out.storage_[i];
    bytes.reserve(static_cast<size_t>(entry.size()));
    RETURN_IF_ERROR(entry.write([&](std::span<const std::byte> piece) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return Status();
    }));
    entry.write = {};
    entry.bytes = bytes;
  }
  return out;
}

Status export_model(io::FileSystem& fs, const std::string& directory, const HfModel& model,
                    const tokenizer::Tokenizer& tokenizer, std::span<const io::SafetensorsEntry> weights,
                    int64_t max_file_bytes) {
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family(model.options.family->name));
  const std::string dtype = weights.empty() ? "F32" : weights.front().dtype;
  ASSIGN_OR_RETURN(const std::string config, config_json(model, tokenizer,
                                                         dtype == "F32"    ? "float32"
                                                         : dtype == "BF16" ? "bfloat16"
                                                                           : "float16"));
  // F16 cannot hold all values: that shows before the first file of an earlier export is replaced.
  for (const io::SafetensorsEntry& entry : weights)
    if (entry.dtype == "F16" && entry.write)
      RETURN_IF_ERROR(entry.write([](std::span<const std::byte>) { return Status(); }));
  RETURN_IF_ERROR(fs.make_dirs(directory));
  const auto write = [&](const char* name, const std::string& text) {
    return io::write_file_atomically(fs, io::join_path(directory, name), text);
  };
  RETURN_IF_ERROR(io::write_safetensors_sharded(fs, directory, weights, max_file_bytes));
  RETURN_IF_ERROR(export_tokenizer(fs, directory, *family, tokenizer, model.options.seq_len));
  RETURN_IF_ERROR(write("generation_config.json", tokenizer.generation_config_json()));
  return write("config.json", config);
}

Status export_tokenizer(io::FileSystem& fs, const std::string& directory, const HfFamily& family,
                        const tokenizer::Tokenizer& tokenizer, int64_t seq_len) {
  const auto path = [&](const char* name) { return io::join_path(directory, name); };
  RETURN_IF_ERROR(fs.make_dirs(directory));
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer));
  const bool as_it_is = ends.before == tokenizer.spec().prefix;
  std::optional<tokenizer::Tokenizer> changed;
  if (!as_it_is) {
    ASSIGN_OR_RETURN(changed, tokenizer.with_beginning(ends.before));
  }
  const tokenizer::Tokenizer& out = as_it_is ? tokenizer : *changed;
  if (out.spec().kind == tokenizer::ModelKind::kSentencePiece) {
    if (out.is_unigram_model() && out.class_name().empty())
      return unsupported(
          "the tokenizer is a SentencePiece .model of the unigram kind, and no \"tokenizer_class\" is known "
          "that "
          "says how transformers has to read it; name it in a tokenizer_config.json beside the tokenizer");
    RETURN_IF_ERROR(io::write_file_atomically(fs, path("tokenizer.model"), out.spec().sentencepiece));
    return io::write_file_atomically(fs, path("tokenizer_config.json"), out.tokenizer_config_json(seq_len));
  }
  RETURN_IF_ERROR(tokenizer::save_tokenizer(fs, out, path("tokenizer.json")));
  return write_tokenizer_config(fs, directory, family, out, seq_len);
}

}  // namespace ostro::hf
