// What a tokenizer is, as plain data: the content of a tokenizer.json in our terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/tokenizer/model/added_tokens.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

// What cuts a piece of text into tokens.
enum class ModelKind {
  kByteBpe,        // BPE over bytes; tokens are in the byte-level alphabet
  kCharBpe,        // BPE over characters
  kUnigram,        // the most probable segmentation
  kSentencePiece,  // a SentencePiece .model, kept as it is
};

struct TokenizerSpec {
  ModelKind kind = ModelKind::kByteBpe;
  std::vector<std::string>
      vocab;  // model token by id, in the byte-level alphabet if the model is; "" = no such id
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // by rank; the joined text must be in the vocabulary
  std::vector<AddedToken> added_tokens;               // in the order of the file
  bool ignore_merges = false;                         // a piece that is a token is that token
  Splitter splitter = Splitter::kLlama3;
  bool byte_level_splits = false;        // written as ByteLevel(use_regex) instead of Split + ByteLevel
  bool prefix_text = false;              // a space before every text between added tokens
  bool prefix_pieces = false;            // a space before every piece
  std::vector<uint32_t> prefix, suffix;  // ids that add_special_tokens puts around a text
  // kCharBpe and kUnigram: characters without a token become bytes ("<0x0A>"), otherwise the unknown token.
  bool byte_fallback = false;
  bool fuse_unknown = false;           // kCharBpe: a run of them is one token
  std::vector<double> scores;          // kUnigram: by id
  std::optional<uint32_t> unknown_id;  // kUnigram
  std::string unknown_token = "null";  // BPE, as JSON
  // The other parts of the file, as compact JSON. Where pre_tokenizer or decoder is "", it is the byte-level
  // one that the fields above say.
  std::string normalizer = "null";
  std::string pre_tokenizer, decoder;
  std::string post_processor = "null";  // kept for writing; prefix and suffix say what it does
  // kSentencePiece: the bytes of the .model, from which vocab, prefix and suffix are filled in.
  std::string sentencepiece;
  bool add_bos = false, add_eos = false;  // add_special_tokens puts its bos before, its eos after a text
};

}  // namespace ostro::tokenizer
