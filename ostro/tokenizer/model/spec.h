// TokenizerSpec: the definition of a tokenizer as plain data: the content of a tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/tokenizer/model/added_tokens.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {

// The kind of model that cuts a piece of text into tokens.
enum class ModelKind {
  kByteBpe,        // BPE over bytes; tokens are in the byte-level alphabet
  kCharBpe,        // BPE over characters
  kUnigram,        // unigram: the most probable segmentation
  kSentencePiece,  // a SentencePiece .model, kept as it is
};

struct TokenizerSpec {
  ModelKind kind = ModelKind::kByteBpe;
  // model tokens by id, in the byte-level alphabet for kByteBpe; "": no such id
  std::vector<std::string> vocab;
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // by rank; the merged text must be in the vocabulary
  std::vector<AddedToken> added_tokens;               // in the order of the file
  bool ignore_merges = false;                         // a piece that equals a token is not split by merges
  Splitter splitter = Splitter::kLlama3;
  bool byte_level_splits = false;        // written as ByteLevel(use_regex) instead of Split + ByteLevel
  bool prefix_text = false;              // put a space before every text between added tokens
  bool prefix_pieces = false;            // put a space before every piece
  std::vector<uint32_t> prefix, suffix;  // ids that add_special_tokens puts around a text
  // kCharBpe and kUnigram: a character without a token becomes byte tokens ("<0x0A>"). Otherwise it becomes
  // the unknown token.
  bool byte_fallback = false;
  bool fuse_unknown = false;           // kCharBpe: a run of unknown characters is one token
  std::vector<double> scores;          // kUnigram: by id
  std::optional<uint32_t> unknown_id;  // kUnigram
  std::string unknown_token = "null";  // BPE, as JSON
  // The other parts of the file as compact JSON. If pre_tokenizer or decoder is "", it is the byte-level one
  // that the fields above describe.
  std::string normalizer = "null";
  std::string pre_tokenizer, decoder;
  std::string post_processor = "null";  // kept only for writing; prefix and suffix say what it does
  // kSentencePiece: the bytes of the .model, from which vocab, prefix and suffix are filled in.
  std::string sentencepiece;
  bool add_bos = false, add_eos = false;  // add_special_tokens puts bos before and eos after a text
};

}  // namespace ostro::tokenizer
