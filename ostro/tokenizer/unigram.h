// The unigram model: the most probable segmentation, with bytes or one token for what no token covers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/piece_model.h"
#include "ostro/tokenizer/unigram_path.h"

namespace ostro::tokenizer {

class Unigram final : public PieceModel {
 public:
  struct Parts {
    UnigramTokens tokens;
    bool byte_fallback = false;
    std::array<uint32_t, 256> byte_ids{};  // kNoToken for none; used with byte_fallback
    ByteTrie
        cut_out;  // SentencePiece: tokens that are cut out first; what is between them is text of its own
    // Hugging Face looks a run of unknown characters up as one token before it falls back; it also remembers
    // pieces, which SentencePiece's sums over the whole text forbid.
    bool hugging_face = true;
  };
  explicit Unigram(Parts parts) : parts_(std::move(parts)) {}

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const override;

 private:
  class Writer;
  Parts parts_;
};

}  // namespace ostro::tokenizer
