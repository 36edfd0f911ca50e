// CharBpe: BPE over characters instead of bytes, for Llama 2, Mistral, Gemma and SentencePiece's BPE. A
// character that is not in the vocabulary becomes byte tokens or the unknown token.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/bpe/symbol_merge.h"
#include "ostro/tokenizer/sentencepiece/byte_trie.h"
#include "ostro/tokenizer/sentencepiece/piece_model.h"
#include "ostro/tokenizer/unicode/byte_set.h"

namespace ostro::tokenizer {

// A table from code point to symbol, in pages of 256.
class CharacterTable {
 public:
  CharacterTable() : pages_(0x1100, 0), symbols_(256, kNoToken) {}
  void insert(uint32_t code_point, uint32_t symbol);
  uint32_t find(uint32_t code_point) const {
    return symbols_[pages_[code_point >> 8] * 256u + (code_point & 255)];
  }

 private:
  std::vector<uint16_t> pages_;
  std::vector<uint32_t> symbols_;
};

// BPE over characters with a cache. Immutable: the working memory is in ModelScratch, one per thread.
//
// Such text is often not split into words, so this class cuts it into units itself. It cuts between two
// symbols that are not side by side in any token. No merge can join them, so a cut never changes an id. Most
// units are then short enough for the cache.
//
// If the vocabulary allows it, text is first cut into words (words.h), which is faster than looking at every
// character. Then units are only needed inside words that are not in the cache.
class CharBpe final : public PieceModel {
 public:
  struct Merge {
    uint32_t left, right, rank, result;
  };
  struct Parts {
    CharacterTable characters;
    std::vector<Merge> merges;
    bool byte_fallback = false;
    // kNoToken for none; used with byte_fallback if every byte of the character has a token
    std::array<uint32_t, 256> byte_ids{};
    uint32_t unknown = kNoToken;  // kNoToken: characters without a token are dropped
    bool fuse_unknown = false;    // a run of unknown characters is one symbol
    ByteTrie whole;               // pieces that are always one token (ignore_merges)
    // Only for SentencePiece. `cut_out` holds the tokens that are cut out of the text first. Symbols from
    // `first_virtual` on stand for characters that are not tokens themselves but occur inside tokens;
    // `virtual_text` holds their UTF-8, by index.
    ByteTrie cut_out;
    uint32_t first_virtual = kNoToken;
    std::vector<std::string> virtual_text;
  };
  explicit CharBpe(Parts parts);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const override;

 private:
  // The form in which a character enters the row of symbols: its own symbol, bytes, the unknown symbol, or
  // none.
  enum class Entry { kSymbol, kBytes, kUnknown, kNothing };
  struct Character {
    Entry entry = Entry::kNothing;
    uint32_t first = kNoToken, last = kNoToken;  // first and last symbol
    uint32_t length = 1;                         // length in bytes
  };
  Character character_at(std::string_view text, size_t i) const;
  bool can_cut(const Character& before, const Character& after) const;
  void find_neighbours();
  void encode_run(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const;
  size_t word_end_at(std::string_view text, size_t begin) const;
  void encode_units(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const;
  void encode_unit(std::string_view unit, ModelScratch& scratch, std::vector<uint32_t>& out) const;
  void make_row(std::string_view text, std::vector<uint32_t>& row) const;
  void replace_virtual(size_t begin, ModelScratch& scratch, std::vector<uint32_t>& out) const;

  Parts parts_;
  MergeTable pairs_;
  MergeTable neighbours_;  // pairs of symbols that are side by side in some token
  bool cuts_ = true;       // false if neighbours_ could not be computed
  bool all_bytes_ = false;
  bool words_ = false;  // no token extends past the end of a word
  ByteSet word_stops_;  // ASCII characters without merges, and the first byte of U+2581
  std::array<Character, 0x80> ascii_{};
  std::array<std::bitset<0x80>, 0x80> ascii_cuts_;  // can_cut() for all pairs of ASCII characters
  ByteSet cut_out_begins_;
};

}  // namespace ostro::tokenizer
