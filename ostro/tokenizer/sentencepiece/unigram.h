// The unigram model: the most probable segmentation, with bytes or one token for what no token covers.
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
    // Hugging Face looks a run of unknown characters up as one token before it falls back.
    bool hugging_face = true;
    // SentencePiece: no token goes on behind the end of a word (words.h), and U+2581 is one, so that all
    // paths meet there and words can be remembered.
    bool words = false;
  };
  explicit Unigram(Parts parts);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const override;

 private:
  class Writer;
  void encode_words(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const;
  uint32_t bound_of(std::string_view word, double offset, double margin) const;

  Parts parts_;
  double largest_ = 0;  // of what a token costs
};

}  // namespace ostro::tokenizer
