// The JSON files of a Hugging Face model directory (docs/dependencies.md, "Model directories").
#pragma once

#include <string>

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::hf {

// config.json. Every key is written, even if transformers has the same default. The rotary embedding is
// written in its current and in its older form, with the same meaning, so that new and old readers build the
// same model.
std::string llama_config_json(const models::DecoderOptions& options, const tokenizer::Tokenizer& tokenizer);

// generation_config.json: the ids of the tokens that begin and end a text. Generation is greedy unless the
// user asks for sampling.
std::string generation_config_json(const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::hf
