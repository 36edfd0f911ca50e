// The best segmentation of text under a unigram model (Viterbi over a trie), in time linear in the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/sentencepiece/byte_trie.h"

namespace ostro::tokenizer {

// The tokens of a unigram model and what a path pays for them.
struct UnigramTokens {
  ByteTrie trie;               // values are ids
  std::vector<double> scores;  // by id
  uint32_t unknown = 0;        // taken for a character that no token of just that character covers
  double unknown_score = 0;
  // SentencePiece adds up in single precision, Hugging Face in double: near ties come out differently.
  bool single_precision = false;
};

// Takes the steps of a path in the order of the text.
class UnigramSink {
 public:
  virtual ~UnigramSink() = default;
  virtual void take(size_t begin, size_t end, uint32_t id) = 0;
};

// The working memory of one thread. What is decided is given out and forgotten wherever all paths meet, so
// memory depends on the longest stretch without such a place, not on the text.
class UnigramPath {
 public:
  struct End {
    double score = 0;   // what the best path costs, from `begin` on
    double margin = 0;  // by how much it won where it won least
  };
  // Valid UTF-8; `begin`: what the path to the text costs. Of equal paths the one found first wins, as in
  // both libraries.
  End run(const UnigramTokens& tokens, std::string_view text, UnigramSink& sink, double begin = 0);

 private:
  struct Node {  // the best path that ends at this byte
    double score;
    double second;    // the best of the others
    uint32_t length;  // of its last token; 0: no path ends here
    uint32_t id;
  };
  void extend(const UnigramTokens& tokens, std::string_view text, size_t start);
  void offer(const UnigramTokens& tokens, size_t start, size_t end, double score, uint32_t id);
  size_t meeting_place(size_t start) const;
  void give_out(size_t end, UnigramSink& sink);

  std::vector<Node> nodes_;  // from base_ on; between two runs none is reached
  double margin_ = 0;
  std::vector<size_t> ends_;
  size_t base_ = 0, reach_ = 0;
};

}  // namespace ostro::tokenizer
