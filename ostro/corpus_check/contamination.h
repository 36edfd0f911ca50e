// EvalIndex: finds n-grams of evaluation sets in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ostro::corpus_check {

struct EvalDocument {
  std::string place;  // "file:line"
  std::vector<std::string> words;
  int64_t ngrams = 0;  // its n-grams in the index; one that occurs k times counts k times
};

// The n-grams of one evaluation document that a text holds.
struct ContaminationHit {
  size_t eval = 0;      // index of the evaluation document
  int64_t windows = 0;  // positions of the text at which one of its n-grams begins
  // Its n-grams that were found, by the number of their first word, ascending. An n-gram that occurs several
  // times in the evaluation document has all its numbers here.
  std::vector<size_t> ngrams;
};

struct Contamination {
  int64_t words_covered = 0;           // words of the text that lie in an n-gram of any evaluation document
  std::vector<ContaminationHit> hits;  // in the order of the evaluation documents
};

// The index of the n-grams of evaluation documents. An n-gram has n words. A document of fewer words, but at
// least `shortest`, is one n-gram as a whole; a shorter document is not looked for. Call add() for each
// document, then finish(); after that const use is thread-safe.
class EvalIndex {
 public:
  EvalIndex(size_t n, size_t shortest) : n_(n), shortest_(shortest) {}

  // Adds a document; its n-grams are in the index after finish().
  void add(std::string place, std::string_view text);
  void finish();

  // Finds the n-grams in `text`. `hashes` are the hashes of its words (word_hashes). Where a hash fits, the
  // words are compared, so that different words with equal hashes are not a hit. Time: linear in the words of
  // the text; plus, for every different n-gram found, one step for each evaluation document that holds it;
  // plus the size of the result.
  Contamination find(std::string_view text, const std::vector<uint64_t>& hashes) const;

  const std::vector<EvalDocument>& documents() const { return documents_; }
  int64_t too_short() const { return too_short_; }
  // The words of an n-gram, joined with spaces.
  std::string ngram_text(size_t eval, size_t first) const;

 private:
  struct Entry {
    uint64_t hash;
    uint32_t eval, first;
    auto operator<=>(const Entry&) const = default;
  };
  // In evaluation document `eval`, the n-gram at word `first` occurs again at word `again`.
  struct Repeat {
    uint32_t eval, first, again;
    auto operator<=>(const Repeat&) const = default;
  };
  // A window of the text, and the n-grams of the index with the same words.
  struct Window {
    size_t first = 0;
    int64_t places = 0;  // positions of the text with the same words
    std::vector<Entry> entries;
  };

  bool same_words(const Entry& a, const Entry& b) const;  // both of the same document
  std::vector<Entry> with_words(std::vector<Entry>::const_iterator e, const std::string* words,
                                size_t count) const;
  std::vector<size_t> all_numbers(size_t eval, std::vector<uint32_t> firsts) const;
  size_t length_of(const EvalDocument& d) const { return d.words.size() < n_ ? d.words.size() : n_; }
  bool maybe(uint64_t hash) const { return (filter_[(hash & mask_) >> 6] >> (hash & 63) & 1) != 0; }

  size_t n_, shortest_;
  std::vector<EvalDocument> documents_;
  // sorted; after finish(), one entry for each different n-gram of each document
  std::vector<Entry> entries_;
  std::vector<Repeat> repeats_;  // sorted
  // a bit for each hash in the index: most windows are ruled out without a search
  std::vector<uint64_t> filter_;
  uint64_t mask_ = 0;
  std::vector<size_t> lengths_;  // lengths of n-grams, ascending
  int64_t too_short_ = 0;
};

}  // namespace ostro::corpus_check
