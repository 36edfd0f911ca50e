// Tokenizer::State, Encoder::Work: the members of a Tokenizer and of an Encoder. Private to this room.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ostro/tokenizer/bpe/bpe.h"
#include "ostro/tokenizer/bpe/piece_encoder.h"
#include "ostro/tokenizer/model/token_decoder.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/tokenizer/normalize/normalizer.h"
#include "ostro/tokenizer/sentencepiece/piece_model.h"
#include "ostro/tokenizer/sentencepiece/sentencepiece.h"
#include "ostro/tokenizer/split/pre_tokenizer.h"

namespace ostro::tokenizer {

struct Tokenizer::State {
  TokenizerSpec spec;
  BpeModel model;  // byte-level BPE
  // Parts of tokenizers that are not plain byte-level ones.
  Normalizer normalizer;
  std::optional<PreTokenizer> pre_tokenizer;  // without one, the splitter of the spec is used
  std::unique_ptr<PieceModel> piece_model;    // null: `model` is used
  std::optional<TokenDecoder> decoder;        // without one, the bytes of tokens are joined
  std::optional<SentencePiece> sentencepiece;
  // Added tokens that are searched in the text, and (as normal forms) in the normalized text. The matchers
  // point into spec.added_tokens and normal_forms.
  std::deque<AddedToken> normal_forms;
  std::optional<AddedTokenMatcher> plain, normalized;
  std::unordered_map<std::string, uint32_t> ids;  // of model and added tokens
  std::vector<std::string> bytes;                 // bytes of each token by id; decode joins them
  std::vector<const AddedToken*> added;           // by id, nullptr for model tokens
  std::optional<uint32_t> eos, bos;
  std::optional<bool> begins_texts;
  std::vector<uint32_t> more_stops;
  std::string class_name;
  std::once_flag hashed;
  std::string hash;  // valid after `hashed` was used

  // Parses the parts that the spec keeps as JSON, and builds the model.
  Status make_parts();
  Status make_sentencepiece();
  Status make_byte_model();
  Status make_char_model();
  Status make_unigram_model();
  Result<uint32_t> merged_id(uint32_t rank) const;

  // The model for pieces that are not bytes, or null.
  const PieceModel* pieces() const { return sentencepiece ? &sentencepiece->model() : piece_model.get(); }

  // The normalized text. It is stored in `buffers`, unless it is the text itself. `at_start`: it begins the
  // whole text.
  std::string_view normal_form(std::string_view text, bool at_start, std::string (&buffers)[2]) const {
    if (!sentencepiece) return normalizer.apply(text, buffers);
    buffers[0].clear();
    sentencepiece->normalizer().append(text, at_start, buffers[0]);
    return buffers[0];
  }

  // Gives the added tokens to the matchers.
  Status make_matchers();
};

// Working memory of an Encoder. Some members are used only by some kinds of tokenizers.
struct Encoder::Work {
  explicit Work(const BpeModel& model) : bytes(model) {}

  PieceEncoder bytes;
  ModelScratch scratch;
  std::vector<Segment> segments, parts;
  std::string normal[2], prefixed;
  PreTokenizer::Buffers buffers;
};

}  // namespace ostro::tokenizer
