// The JSON files of a Hugging Face model directory (docs/dependencies.md, "Model directories").
#pragma once

#include <string>

#include "ostro/models/llama_options.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// config.json. Every key is written, also where transformers' default is the same, and the rotary code in its
// present and its older form, equal: readers of either age give the same model.
std::string llama_config_json(const models::LlamaOptions& options, const tokenizer::Tokenizer& tokenizer);

// generation_config.json: the tokens that begin and end a text; greedy unless the user says otherwise.
std::string generation_config_json(const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::hf
