// Which n-grams of evaluation sets stand in a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ostro::data {

struct EvalDocument {
  std::string place;  // "file:line"
  std::vector<std::string> words;
  int64_t ngrams = 0;  // of it in the index; one that stands in it k times counts k times
};

// What of one evaluation document a text holds.
struct ContaminationHit {
  size_t eval = 0;      // number of the evaluation document
  int64_t windows = 0;  // places of the text that hold an n-gram of it, each once
  // Numbers of its n-grams that were found (their first words), ascending; of one that stands in it more than
  // once, all its numbers.
  std::vector<size_t> ngrams;
};

struct Contamination {
  int64_t words_covered = 0;           // of the text, by n-grams of any evaluation document
  std::vector<ContaminationHit> hits;  // in the order of the evaluation documents
};

// The n-grams of evaluation documents: n words each; a document of fewer words, but at least `shortest`, is
// one n-gram as a whole, a shorter one is not looked for. Built by add(), then finish(); after that const use
// is thread-safe.
class EvalIndex {
 public:
  EvalIndex(size_t n, size_t shortest) : n_(n), shortest_(shortest) {}

  void add(std::string place, std::string_view text);
  void finish();

  // Compares word by word, so that equal hashes of different words cannot make a hit. `hashes` are of the
  // words of `text` (word_hashes); it is only read again where a hash fits. Takes time for every place of the
  // text, for every different n-gram there once more for each evaluation document that holds it, and for the
  // result.
  Contamination find(std::string_view text, const std::vector<uint64_t>& hashes) const;

  const std::vector<EvalDocument>& documents() const { return documents_; }
  int64_t too_short() const { return too_short_; }
  // The words of an n-gram, with spaces between them.
  std::string ngram_text(size_t eval, size_t first) const;

 private:
  struct Entry {
    uint64_t hash;
    uint32_t eval, first;
    auto operator<=>(const Entry&) const = default;
  };
  // The n-gram at `first` of a document stands at `again` once more.
  struct Repeat {
    uint32_t eval, first, again;
    auto operator<=>(const Repeat&) const = default;
  };
  // A window of a text, and the n-grams with its words.
  struct Window {
    size_t first = 0;
    int64_t places = 0;  // of the text that hold the same words
    std::vector<Entry> entries;
  };

  bool same_words(const Entry& a, const Entry& b) const;  // of one document
  std::vector<Entry> with_words(std::vector<Entry>::const_iterator e, const std::string* words,
                                size_t count) const;
  std::vector<size_t> all_numbers(size_t eval, std::vector<uint32_t> firsts) const;
  size_t length_of(const EvalDocument& d) const { return d.words.size() < n_ ? d.words.size() : n_; }
  bool maybe(uint64_t hash) const { return (filter_[(hash & mask_) >> 6] >> (hash & 63) & 1) != 0; }

  size_t n_, shortest_;
  std::vector<EvalDocument> documents_;
  std::vector<Entry> entries_;    // sorted; after finish() one for each document and its different n-grams
  std::vector<Repeat> repeats_;   // sorted
  std::vector<uint64_t> filter_;  // a bit for every hash that is there
  uint64_t mask_ = 0;
  std::vector<size_t> lengths_;  // of n-grams, ascending
  int64_t too_short_ = 0;
};

}  // namespace ostro::data
