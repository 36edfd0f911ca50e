// config_json, read_config_json, tokenizer_config: the JSON files of a Hugging Face model directory
// (docs/reference/models.md, "Models of other programs").
#pragma once

#include <string>

#include "ostro/hf/families/family.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// config.json. Every key is written, even if transformers has the same default. The rotary embedding is
// written in its current and in its older form, with the same meaning, so that new and old readers build the
// same model. `dtype`: "float32", "bfloat16" or "float16".
Result<std::string> config_json(const HfModel& model, const tokenizer::Tokenizer& tokenizer,
                                const char* dtype = "float32");

// The model that a config.json describes; `where` begins errors. Errors: an unknown family; a key or a value
// that the family's description does not know, by name.
Result<HfModel> read_config_json(std::string_view json, const std::string& where);

// tokenizer_config.json, and the file beside it that it names, if any.
//
// AutoTokenizer makes a class of its own of some families' directories (HfFamily::tokenizer_class), which
// takes only vocabulary and merges from tokenizer.json. For a tokenizer whose texts that class would cut in
// another way, the file names a class in kPlainTokenizerFile: then tokenizer.json is taken as it is.
struct TokenizerConfig {
  std::string json;
  bool names_plain_tokenizer = false;
};
TokenizerConfig tokenizer_config(const HfFamily& family, const tokenizer::Tokenizer& tokenizer,
                                 int64_t model_max_length);
// Writes these files into the directory. Each is replaced atomically.
Status write_tokenizer_config(io::FileSystem& fs, const std::string& directory, const HfFamily& family,
                              const tokenizer::Tokenizer& tokenizer, int64_t model_max_length);
inline constexpr const char* kPlainTokenizerFile = "tokenization_plain.py";
inline constexpr const char* kPlainTokenizerText =
    "from transformers import PreTrainedTokenizerFast\n\n\n"
    "class PlainTokenizer(PreTrainedTokenizerFast):\n"
    "    \"\"\"The tokenizer that tokenizer.json says.\"\"\"\n";

}  // namespace ostro::hf
