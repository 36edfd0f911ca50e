// A SentencePiece model at work, with the ids and the text that the `sentencepiece` library gives.
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

// What SentencePiece does to the text before it looks for pieces.
class SentencePieceNormalizer {
 public:
  static Result<SentencePieceNormalizer> from_proto(const SentencePieceProto& proto);

  // Appends the normal form of valid UTF-8 text.
  void append(std::string_view text, std::string& out) const;

 private:
  struct Prefix {
    std::string_view normal;
    size_t length;
  };
  Prefix first_of(std::string_view text) const;
  void append_plain(std::string_view text, bool& after_space, std::string& out) const;

  std::optional<Charsmap> charsmap_;
  ByteTrie user_defined_;  // pieces that no rule changes
  bool dummy_prefix_ = true, remove_extra_ = true, suffix_ = false;
  std::string_view space_;  // what a space becomes
  ByteSet special_;         // bytes that are not ASCII, or that a rule or user-defined piece may be about
};

class SentencePiece {
 public:
  // kUnsupported for what other programs write but nobody trains with: the kinds word and char, unused pieces
  // in a BPE model, a denormalizer.
  static Result<SentencePiece> from_proto(SentencePieceProto proto);

  const SentencePieceNormalizer& normalizer() const { return normalizer_; }
  const PieceModel& model() const { return *model_; }
  const SentencePieceProto& proto() const { return proto_; }

  // The id of a piece, and of the control pieces that begin and end a document.
  std::optional<uint32_t> control_id(std::string_view piece) const;

  // The text of ids, which must be of pieces. `raw`: byte pieces that make no UTF-8 stay as they are, instead
  // of becoming U+FFFD each.
  std::string decode(std::span<const uint32_t> ids, bool raw) const;

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
