// UnigramPath: the best segmentation of text under a unigram model (Viterbi over a trie), in time linear in
// the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/tokenizer/sentencepiece/byte_trie.h"

namespace ostro::tokenizer {

// The tokens of a unigram model and their scores. The score of a path is the sum of its tokens' scores.
struct UnigramTokens {
  ByteTrie trie;               // values are ids
  std::vector<double> scores;  // by id
  uint32_t unknown = 0;        // id for a character that is not a token by itself
  double unknown_score = 0;
  // SentencePiece adds scores in single precision, Hugging Face in double. The result can differ if two paths
  // have nearly the same score.
  bool single_precision = false;
};

// Receives the tokens of the best path in the order of the text.
class UnigramSink {
 public:
  virtual ~UnigramSink() = default;
  virtual void take(size_t begin, size_t end, uint32_t id) = 0;
};

// The search, with the working memory of one thread. At a position where all paths meet, everything before it
// is decided. It is passed to the sink and forgotten. So memory depends on the longest stretch without such a
// position, not on the length of the text.
class UnigramPath {
 public:
  struct End {
    double score = 0;   // score of the best path, `begin` included
    double margin = 0;  // the smallest lead of the best path over another one
  };
  // Finds the best segmentation of valid UTF-8 text. `begin` is the score of the path before the text. Of
  // paths with equal scores, the one found first wins, as in both libraries.
  End run(const UnigramTokens& tokens, std::string_view text, UnigramSink& sink, double begin = 0);

 private:
  struct Node {  // the best path that ends at this byte
    double score;
    double second;    // score of the second best path
    uint32_t length;  // length of its last token; 0: no path ends here
    uint32_t id;
  };
  void extend(const UnigramTokens& tokens, std::string_view text, size_t start);
  void offer(const UnigramTokens& tokens, size_t start, size_t end, double score, uint32_t id);
  size_t meeting_place(size_t start) const;
  void give_out(size_t end, UnigramSink& sink);

  std::vector<Node> nodes_;  // node i is at byte base_ + i; all have length 0 between runs
  double margin_ = 0;
  std::vector<size_t> ends_;
  size_t base_ = 0, reach_ = 0;
};

}  // namespace ostro::tokenizer
