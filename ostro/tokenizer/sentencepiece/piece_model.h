// PieceModel: the interface of models that turn a piece of text into token ids. For pieces of plain bytes see
// bpe.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/bpe/piece_memory.h"
#include "ostro/tokenizer/bpe/symbol_merge.h"
#include "ostro/tokenizer/sentencepiece/unigram_path.h"

namespace ostro::tokenizer {

// Working memory of one thread for one model.
struct ModelScratch {
  PieceMemory memory;
  SymbolMerge merge;
  std::vector<uint32_t> symbols, ids;
  UnigramPath path;
};

// Immutable, so threads may share one; each thread has its own ModelScratch.
class PieceModel {
 public:
  virtual ~PieceModel() = default;

  // Appends the ids of a piece of valid UTF-8 text (not empty).
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const = 0;
};

}  // namespace ostro::tokenizer
