#include "ostro/hf/model_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;

// Whether Qwen2Tokenizer of transformers, which has its own normalizer and pre-tokenizer, gives the ids that
// this tokenizer.json gives.
bool is_as_qwen2_has_it(const Json& json) {
  const auto at = [&](const char* place) {
    const Json::json_pointer pointer(place);
    return json.contains(pointer) ? json[pointer] : Json();
  };
  return at("/model/type") == "BPE" && at("/model/ignore_merges") == false &&
         at("/normalizer/type") == "NFC" && at("/pre_tokenizer/type") == "Sequence" &&
         at("/pre_tokenizer/pretokenizers").size() == 2 &&
         at("/pre_tokenizer/pretokenizers/0/pattern/Regex") ==
             std::string(tokenizer::pattern_of(tokenizer::Splitter::kQwen2)) &&
         at("/pre_tokenizer/pretokenizers/0/behavior") == "Isolated" &&
         at("/pre_tokenizer/pretokenizers/1/type") == "ByteLevel" &&
         at("/pre_tokenizer/pretokenizers/1/add_prefix_space") == false;
}

// The description of the text model of one that also sees images; nothing for another model. What the whole
// says beside it (of images, and of how they become tokens) is passed over.
Result<std::optional<nlohmann::json>> text_part(const nlohmann::json& root, const std::string& where) {
  constexpr std::pair<std::string_view, std::string_view> kWholes[] = {{"gemma3", "gemma3_text"},
                                                                       {"mistral3", "mistral"}};
  ASSIGN_OR_RETURN(const std::string type, io::JsonFields(root, where).string("model_type"));
  for (const auto& [whole, text] : kWholes) {
    if (type != whole) continue;
    if (!root.contains("text_config") || !root["text_config"].is_object())
      return corrupt(
          fmt::format("{}: \"model_type\" is \"{}\", but there is no \"text_config\"", where, type));
    nlohmann::json part = root["text_config"];
    if (!part.contains("model_type")) part["model_type"] = text;
    for (const char* key : {"tie_word_embeddings", "quantization_config"})
      if (root.contains(key) && !part.contains(key)) part[key] = root[key];
    return std::optional(std::move(part));
  }
  return std::optional<nlohmann::json>();
}

}  // namespace

Result<std::string> config_json(const HfModel& model, const tokenizer::Tokenizer& tokenizer,
                                const char* dtype) {
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family(model.options.family->name));
  ConfigFields f = ConfigFields::writer();
  f.list_of("architectures", family->architecture);
  f.text("model_type", family->model_type);
  HfModel copy = model;
  family->config(f, copy);
  f.harmless("use_cache", true);
  f.id("bos_token_id", tokenizer.bos_id());
  f.id("eos_token_id", tokenizer.eos_id());
  f.id("pad_token_id", std::nullopt);
  f.text("dtype", dtype);
  f.text("torch_dtype", dtype);
  RETURN_IF_ERROR(f.status());
  return f.written();
}

Result<HfModel> read_config_json(std::string_view json, const std::string& where) {
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(json, where));
  ASSIGN_OR_RETURN(const std::optional<nlohmann::json> part, text_part(root, where));
  ASSIGN_OR_RETURN(const std::string model_type,
                   io::JsonFields(part.value_or(root), where).string("model_type"));
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family_of_model_type(model_type, where));
  ASSIGN_OR_RETURN(ConfigFields f, ConfigFields::reader(part ? part->dump() : std::string(json), where));
  HfModel model{models::DecoderOptions(family->type)};
  model.is_text_part = part.has_value();
  family->config(f, model);
  RETURN_IF_ERROR(f.finish(family->type, &model.passed_over));
  // An impossible model: the error names our option keys, so it needs the file as context.
  if (const Status resolved = model.options.resolve(); !resolved.ok())
    return resolved.error().with_context(where);
  if (model.vocab < 1)
    return corrupt(fmt::format("{}: \"vocab_size\" is {}; a positive number is needed", where, model.vocab));
  return model;
}

TokenizerConfig tokenizer_config(const HfFamily& family, const tokenizer::Tokenizer& tokenizer,
                                 int64_t model_max_length) {
  TokenizerConfig out{tokenizer.tokenizer_config_json(model_max_length)};
  if (family.tokenizer_class.empty() || is_as_qwen2_has_it(Json::parse(tokenizer.to_json()))) return out;
  Json json = Json::parse(out.json);
  json["auto_map"] = {{"AutoTokenizer", {nullptr, "tokenization_plain.PlainTokenizer"}}};
  return {json.dump(2) + "\n", true};
}

Status write_tokenizer_config(io::FileSystem& fs, const std::string& directory, const HfFamily& family,
                              const tokenizer::Tokenizer& tokenizer, int64_t model_max_length) {
  const TokenizerConfig config = tokenizer_config(family, tokenizer, model_max_length);
  if (config.names_plain_tokenizer)
    RETURN_IF_ERROR(
        io::write_file_atomically(fs, io::join_path(directory, kPlainTokenizerFile), kPlainTokenizerText));
  return io::write_file_atomically(fs, io::join_path(directory, "tokenizer_config.json"), config.json);
}

}  // namespace ostro::hf
