// What a Tokenizer holds; private to the room.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ostro/tokenizer/bpe.h"
#include "ostro/tokenizer/tokenizer.h"

namespace ostro::tokenizer {

struct Tokenizer::State {
  TokenizerSpec spec;
  BpeModel model;
  // Added tokens that are looked for in the first and in the second pass; they point into spec.added_tokens.
  std::optional<AddedTokenMatcher> plain, normalized;
  std::unordered_map<std::string, uint32_t> ids;  // of model and added tokens
  std::vector<std::string> bytes;                 // by id, what decode joins
  std::vector<const AddedToken*> added;           // by id, nullptr for model tokens
  std::optional<uint32_t> eos, bos;
};

}  // namespace ostro::tokenizer
