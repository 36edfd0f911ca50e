// Companions: what the files beside a tokenizer say about it, in all places where Hugging Face directories
// name tokens: tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json,
// config.json.
//
// The places are read as transformers reads them: where tokenizer_config.json has "added_tokens_decoder", the
// two legacy files special_tokens_map.json and added_tokens.json are not read.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

struct Companions {
  std::string place;               // the file that named eos and bos, for errors
  std::string eos, bos;            // "": not named
  std::vector<std::string> named;  // eos, bos and the other tokens with a role, such as the unknown token
  std::vector<AddedToken> added;   // in the order in which they are added; id kNoTokenId: no id is named
  std::vector<uint32_t> stops;     // "eos_token_id", which may be a list
  bool add_bos = false, add_eos = false;  // of a .model
  std::optional<bool> begins_texts;       // Tokenizer::begins_texts, in the folder of a run
  std::string class_name;                 // "tokenizer_class"
};

Result<Companions> read_companions(io::FileSystem& files, const std::string& directory);

// Gives the tokenizer the added tokens, eos, bos and stops that its companions name. A stop that is no token
// is left out. `is_model`: the tokenizer was read from a .model; the tokens with a role are then found in
// text, as in transformers (and unlike in sentencepiece). Errors: kNotFound for an eos or a bos that is no
// token; those of with_added_tokens().
Status apply(const Companions& companions, bool is_model, Tokenizer& tokenizer);

}  // namespace ostro::tokenizer
