#include "ostro/corpus_check/contamination.h"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "ostro/corpus_check/words.h"

namespace ostro::corpus_check {

void EvalIndex::add(std::string place, std::string_view text) {
  EvalDocument d;
  d.place = std::move(place);
  d.words = normalized_words(text);
  const size_t length = length_of(d);
  if (length < shortest_ || length == 0) {
    ++too_short_;
  } else {
    const StretchHashes stretches(word_hashes(text));
    d.ngrams = static_cast<int64_t>(d.words.size() - length + 1);
    for (size_t first = 0; first + length <= d.words.size(); ++first)
      entries_.push_back({stretches.of(first, length), static_cast<uint32_t>(documents_.size()),
                          static_cast<uint32_t>(first)});
    lengths_.push_back(length);
  }
  documents_.push_back(std::move(d));
}

// Sorts the n-grams by hash, and keeps one of those with the same words in one document; the others are noted
// as its repeats. Then fills the filter.
void EvalIndex::finish() {
  std::sort(entries_.begin(), entries_.end());
  size_t kept = 0;
  for (size_t i = 0, group = 0; i < entries_.size(); ++i) {  // group: first entry with this document and hash
    const Entry e = entries_[i];
    if (entries_[group].hash != e.hash || entries_[group].eval != e.eval) group = kept;
    size_t k = group;
    while (k < kept && !same_words(entries_[k], e)) ++k;
    if (k < kept)
      repeats_.push_back({e.eval, entries_[k].first, e.first});
    else
      entries_[kept++] = e;
  }
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(kept), entries_.end());
  std::sort(repeats_.begin(), repeats_.end());
  std::sort(lengths_.begin(), lengths_.end());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
  const uint64_t bits = std::bit_ceil(std::max<uint64_t>(entries_.size() * 16, 64));
  mask_ = bits - 1;
  filter_.assign(bits / 64, 0);
  for (const Entry& e : entries_) filter_[(e.hash & mask_) >> 6] |= uint64_t{1} << (e.hash & 63);
}

bool EvalIndex::same_words(const Entry& a, const Entry& b) const {
  const EvalDocument& d = documents_[a.eval];
  const auto first = d.words.begin() + a.first;
  return std::equal(first, first + static_cast<std::ptrdiff_t>(length_of(d)), d.words.begin() + b.first);
}

// Looks at the entries from `e` on that have its hash. Gives those that have `count` words, equal to `words`.
std::vector<EvalIndex::Entry> EvalIndex::with_words(std::vector<Entry>::const_iterator e,
                                                    const std::string* words, size_t count) const {
  std::vector<Entry> out;
  for (const uint64_t hash = e->hash; e != entries_.end() && e->hash == hash; ++e) {
    const EvalDocument& d = documents_[e->eval];
    if (length_of(d) == count && std::equal(words, words + count, d.words.begin() + e->first))
      out.push_back(*e);
  }
  return out;
}

// The numbers of some n-grams of a document, including their repeats, ascending.
std::vector<size_t> EvalIndex::all_numbers(size_t eval, std::vector<uint32_t> firsts) const {
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  std::vector<size_t> out(firsts.begin(), firsts.end());
  const auto number = static_cast<uint32_t>(eval);
  for (const uint32_t first : firsts) {
    auto r = std::lower_bound(repeats_.begin(), repeats_.end(), Repeat{number, first, 0});
    for (; r != repeats_.end() && r->eval == number && r->first == first; ++r) out.push_back(r->again);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// For each length of n-gram, slides a window over the hashes of the words. A window passes the filter, then
// the sorted index, then a comparison of words; only then does it cover its words and count as a hit. At the
// end covered ranges of all lengths are merged, so no word counts twice.
Contamination EvalIndex::find(std::string_view text, const std::vector<uint64_t>& hashes) const {
  Contamination out;
  if (lengths_.empty() || hashes.size() < lengths_.front()) return out;
  const StretchHashes stretches(hashes);
  std::vector<std::string> words;  // the words of the text; split only when a hash fits
  struct Found {
    int64_t windows = 0;
    std::vector<uint32_t> firsts;  // of different n-grams
  };
  std::map<size_t, Found> found;
  const auto take = [&found](const Window& window) {
    for (const Entry& e : window.entries) {
      Found& f = found[e.eval];
      f.windows += window.places;
      f.firsts.push_back(e.first);
    }
  };
  std::vector<std::pair<size_t, size_t>> covered;  // [first, end) in words
  const auto cover = [&covered](size_t first, size_t end) {
    if (!covered.empty() && covered.back().first <= first && first <= covered.back().second)
      covered.back().second = std::max(covered.back().second, end);
    else
      covered.emplace_back(first, end);
  };
  for (const size_t length : lengths_) {
    // By hash. An n-gram that the text repeats is looked up only once, because it may be in many documents of
    // the index.
    std::unordered_map<uint64_t, Window> seen;
    for (size_t first = 0; first + length <= hashes.size(); ++first) {
      const uint64_t hash = stretches.of(first, length);
      if (!maybe(hash)) continue;
      const auto known = seen.find(hash);
      const auto is_known = [&] {
        const std::string* here = words.data() + first;
        return std::equal(here, here + length, words.data() + known->second.first);
      };
      if (known != seen.end() && is_known()) {
        ++known->second.places;
        cover(first, first + length);
        continue;
      }
      const auto e = std::lower_bound(entries_.begin(), entries_.end(), Entry{hash, 0, 0});
      if (e == entries_.end() || e->hash != hash) continue;
      if (words.empty()) words = normalized_words(text);
      Window window{first, 1, with_words(e, words.data() + first, length)};
      if (window.entries.empty()) continue;
      cover(first, first + length);
      if (known == seen.end())
        seen.emplace(hash, std::move(window));
      else  // different words with the same hash
        take(window);
    }
    for (const auto& [hash, window] : seen) take(window);
  }
  std::sort(covered.begin(), covered.end());
  size_t end = 0;
  for (const auto& [first, stop] : covered) {
    if (stop <= end) continue;
    out.words_covered += static_cast<int64_t>(stop - std::max(first, end));
    end = stop;
  }
  for (auto& [eval, f] : found) out.hits.push_back({eval, f.windows, all_numbers(eval, std::move(f.firsts))});
  return out;
}

std::string EvalIndex::ngram_text(size_t eval, size_t first) const {
  const EvalDocument& d = documents_[eval];
  std::string out;
  for (size_t i = first; i < first + length_of(d); ++i) {
    if (i > first) out += ' ';
    out += d.words[i];
  }
  return out;
}

}  // namespace ostro::corpus_check
