#include "ostro/hf/model_files.h"

#include <nlohmann/json.hpp>

#include "ostro/io/json/json_fields.h"

namespace ostro::hf {

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
  ASSIGN_OR_RETURN(const std::string model_type, io::JsonFields(root, where).string("model_type"));
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family_of_model_type(model_type, where));
  ASSIGN_OR_RETURN(ConfigFields f, ConfigFields::reader(json, where));
  HfModel model{models::DecoderOptions(family->type)};
  family->config(f, model);
  RETURN_IF_ERROR(f.finish(family->type, &model.passed_over));
  // An impossible model: the error names our option keys, so it needs the file as context.
  if (const Status resolved = model.options.resolve(); !resolved.ok())
    return resolved.error().with_context(where);
  if (model.vocab < 1)
    return corrupt(fmt::format("{}: \"vocab_size\" is {}; a positive number is needed", where, model.vocab));
  return model;
}

std::string generation_config_json(const tokenizer::Tokenizer& tokenizer) {
  const auto id = [](const std::optional<uint32_t>& token) {
    return token ? nlohmann::ordered_json(*token) : nlohmann::ordered_json(nullptr);
  };
  const nlohmann::ordered_json config = {{"bos_token_id", id(tokenizer.bos_id())},
                                         {"eos_token_id", id(tokenizer.eos_id())},
                                         {"do_sample", false}};
  return config.dump(2) + "\n";
}

}  // namespace ostro::hf
