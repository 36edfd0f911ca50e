// What a Tokenizer holds; private to the room.
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
  BpeModel model;  // of bytes
  // What tokenizers that are not plainly byte-level have besides, or instead.
  Normalizer normalizer;
  std::optional<PreTokenizer> pre_tokenizer;  // nothing: the splitter of the spec
  std::unique_ptr<PieceModel> piece_model;    // null: `model`
  std::optional<TokenDecoder> decoder;        // nothing: the bytes of tokens are joined
  std::optional<SentencePiece> sentencepiece;
  // Added tokens that are looked for in the text, and, in their normal form, in the normalized text; they
  // point into spec.added_tokens and normal_forms.
  std::deque<AddedToken> normal_forms;
  std::optional<AddedTokenMatcher> plain, normalized;
  std::unordered_map<std::string, uint32_t> ids;  // of model and added tokens
  std::vector<std::string> bytes;                 // by id, what decode joins
  std::vector<const AddedToken*> added;           // by id, nullptr for model tokens
  std::optional<uint32_t> eos, bos;
  std::once_flag hashed;
  std::string hash;  // once `hashed`

  // Reads the parts that the spec keeps as JSON, and makes the model.
  Status make_parts();
  Status make_sentencepiece();
  Status make_byte_model();
  Status make_char_model();
  Status make_unigram_model();
  Result<uint32_t> merged_id(uint32_t rank) const;

  // The model of pieces that are not bytes, or null.
  const PieceModel* pieces() const { return sentencepiece ? &sentencepiece->model() : piece_model.get(); }

  // The normal form of text, which lives in `buffers` if it is not the text itself.
  std::string_view normal_form(std::string_view text, std::string (&buffers)[2]) const {
    if (!sentencepiece) return normalizer.apply(text, buffers);
    buffers[0].clear();
    sentencepiece->normalizer().append(text, buffers[0]);
    return buffers[0];
  }

  // Tells the matchers which added tokens there are.
  Status make_matchers();
};

// What an Encoder works with; some of it only for some tokenizers.
struct Encoder::Work {
  explicit Work(const BpeModel& model) : bytes(model) {}

  PieceEncoder bytes;
  ModelScratch scratch;
  std::vector<Segment> segments, parts;
  std::string normal[2], prefixed;
  PreTokenizer::Buffers buffers;
};

}  // namespace ostro::tokenizer
