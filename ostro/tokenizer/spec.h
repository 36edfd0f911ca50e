// What a tokenizer is, as plain data: the content of a tokenizer.json in our terms.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ostro/tokenizer/added_tokens.h"
#include "ostro/tokenizer/splitter.h"

namespace ostro::tokenizer {

struct TokenizerSpec {
  std::vector<std::string> vocab;  // model token by id, in the byte-level alphabet; "" = no such id
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // by rank; the joined text must be in the vocabulary
  std::vector<AddedToken> added_tokens;               // in the order of the file
  bool ignore_merges = false;                         // a piece that is a token is that token
  Splitter splitter = Splitter::kLlama3;
  bool byte_level_splits = false;        // written as ByteLevel(use_regex) instead of Split + ByteLevel
  bool prefix_text = false;              // a space before every text between added tokens
  bool prefix_pieces = false;            // a space before every piece
  std::vector<uint32_t> prefix, suffix;  // ids that add_special_tokens puts around a text
  // Kept for writing, as compact JSON; they do not change ids.
  std::string post_processor = "null";
  std::string unknown_token = "null";
};

}  // namespace ostro::tokenizer
