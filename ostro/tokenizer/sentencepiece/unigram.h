// Unigram: the unigram model, which finds the most probable segmentation. Text without tokens becomes bytes
// or an unknown token. Immutable, so threads may share it; the working memory is in ModelScratch, one per
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/sentencepiece/piece_model.h"
#include "ostro/tokenizer/sentencepiece/unigram_path.h"

namespace ostro::tokenizer {

class Unigram final : public PieceModel {
 public:
  struct Parts {
    UnigramTokens tokens;
    bool byte_fallback = false;
    std::array<uint32_t, 256> byte_ids{};  // kNoToken for none; used with byte_fallback
    // Hugging Face first looks up a whole run of unknown characters as one token, and only then uses bytes.
    bool hugging_face = true;
    // For SentencePiece: no token extends past the end of a word (words.h), and U+2581 is a token. Then all
    // paths meet at word borders, and words can be cached.
    bool words = false;
  };
  explicit Unigram(Parts parts);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const override;

 private:
  class Writer;
  void encode_words(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const;
  uint32_t bound_of(std::string_view word, double offset, double margin) const;

  Parts parts_;
  double largest_ = 0;  // largest absolute score of a token
};

}  // namespace ostro::tokenizer
