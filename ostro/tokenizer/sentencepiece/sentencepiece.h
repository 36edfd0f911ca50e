// SentencePiece: a SentencePiece model. It gives the same ids and text as the `sentencepiece` library.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/tokenizer/normalize/charsmap.h"
#include "ostro/tokenizer/sentencepiece/byte_trie.h"
#include "ostro/tokenizer/sentencepiece/piece_model.h"
#include "ostro/tokenizer/sentencepiece/sentencepiece_proto.h"
#include "ostro/tokenizer/unicode/byte_set.h"

namespace ostro::tokenizer {

// The normalization that SentencePiece applies before it searches pieces.
class SentencePieceNormalizer {
 public:
  static Result<SentencePieceNormalizer> from_proto(const SentencePieceProto& proto);

  // Appends the normal form of valid UTF-8 text. A text that does not begin the whole (an added token stands
  // before it) gets no space in front, as in transformers.
  void append(std::string_view text, bool at_start, std::string& out) const;

 private:
  struct Prefix {
    std::string_view normal;
    size_t length;
  };
  Prefix first_of(std::string_view text) const;
  void append_plain(std::string_view text, bool& after_space, std::string& out) const;

  std::optional<Charsmap> charsmap_;
  ByteTrie user_defined_;  // user-defined pieces, which no rule changes
  bool dummy_prefix_ = true, remove_extra_ = true, suffix_ = false;
  std::string_view space_;  // replacement of a space
  ByteSet special_;         // non-ASCII bytes, and bytes that begin a rule or a user-defined piece
};

// A normalizer and a model of pieces, built from the fields of a .model file. Immutable, so threads may share
// it.
class SentencePiece {
 public:
  // Errors: kUnsupported for features that exist in the format but are hardly used: the model types word and
  // char, unused pieces in a BPE model, a denormalizer. kCorrupt for pieces that do not fit together.
  static Result<SentencePiece> from_proto(SentencePieceProto proto);

  const SentencePieceNormalizer& normalizer() const { return normalizer_; }
  const PieceModel& model() const { return *model_; }
  const SentencePieceProto& proto() const { return proto_; }

  // The id of a control piece, for example those that begin and end a document.
  std::optional<uint32_t> control_id(std::string_view piece) const;

  // The text of ids; every id must belong to a piece. With `raw`, byte pieces that are not UTF-8 stay as they
  // are. Otherwise each becomes U+FFFD. `at_start`: the ids begin the whole text.
  std::string decode(std::span<const uint32_t> ids, bool at_start, bool raw) const;

 private:
  SentencePiece() = default;
  Status make_bpe();
  Status make_unigram();
  Status check_pieces(std::array<uint32_t, 256>& byte_ids);

  SentencePieceProto proto_;
  SentencePieceNormalizer normalizer_;
  std::unique_ptr<PieceModel> model_;
  uint32_t unknown_ = 0;
};

}  // namespace ostro::tokenizer
