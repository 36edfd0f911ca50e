// BPE over characters (not bytes): Llama 2, Mistral, Gemma and SentencePiece's BPE, with bytes or an unknown
// token for characters that the vocabulary lacks.
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

// Symbols by code point, in pages.
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

// Text of this kind is often not split into words at all, so the model cuts it itself, where no merge can
// reach across: between two symbols that no token holds side by side. That never changes an id and keeps most
// units short enough to be remembered. Where the vocabulary allows it, text is first cut into words
// (words.h), which is quicker than looking at every character, and the units are only looked for in new
// words.
class CharBpe final : public PieceModel {
 public:
  struct Merge {
    uint32_t left, right, rank, result;
  };
  struct Parts {
    CharacterTable characters;
    std::vector<Merge> merges;
    bool byte_fallback = false;
    std::array<uint32_t, 256>
        byte_ids{};               // kNoToken for none; used with byte_fallback, if all of a character's exist
    uint32_t unknown = kNoToken;  // kNoToken: characters without a token vanish
    bool fuse_unknown = false;    // a run of unknown characters is one symbol
    ByteTrie whole;               // pieces that are one token whatever the merges say (ignore_merges)
    // SentencePiece: tokens that are cut out before anything else, and symbols from `first_virtual` on that
    // stand for characters which are no token but occur in tokens (by index: their UTF-8).
    ByteTrie cut_out;
    uint32_t first_virtual = kNoToken;
    std::vector<std::string> virtual_text;
  };
  explicit CharBpe(Parts parts);

  void encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const override;

 private:
  // How a character enters the row of symbols: as the symbol of its own, as bytes, as the unknown one, or
  // not.
  enum class Entry { kSymbol, kBytes, kUnknown, kNothing };
  struct Character {
    Entry entry = Entry::kNothing;
    uint32_t first = kNoToken, last = kNoToken;  // symbols
    uint32_t length = 1;                         // bytes
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
  MergeTable neighbours_;  // pairs of symbols that some token holds side by side
  bool cuts_ = true;       // false: neighbours_ could not be worked out
  bool all_bytes_ = false;
  bool words_ = false;  // no token goes on behind the end of a word
  ByteSet word_stops_;  // ASCII that joins nothing, and the first byte of U+2581
  std::array<Character, 0x80> ascii_{};
  std::array<std::bitset<0x80>, 0x80> ascii_cuts_;  // can_cut() of two ASCII characters
  ByteSet cut_out_begins_;
};

}  // namespace ostro::tokenizer
