#include "ostro/data/check/contamination.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "ostro/data/check/words.h"

namespace ostro::data {

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

void EvalIndex::finish() {
  std::sort(entries_.begin(), entries_.end());
  std::sort(lengths_.begin(), lengths_.end());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
  const uint64_t bits = std::bit_ceil(std::max<uint64_t>(entries_.size() * 16, 64));
  mask_ = bits - 1;
  filter_.assign(bits / 64, 0);
  for (const Entry& e : entries_) filter_[(e.hash & mask_) >> 6] |= uint64_t{1} << (e.hash & 63);
}

Contamination EvalIndex::find(std::string_view text, const std::vector<uint64_t>& hashes) const {
  Contamination out;
  if (lengths_.empty() || hashes.size() < lengths_.front()) return out;
  const StretchHashes stretches(hashes);
  std::vector<std::string> words;  // of the text, once they are needed
  struct Found {
    int64_t windows = 0;
    std::set<size_t> ngrams;
  };
  std::map<size_t, Found> found;
  std::vector<std::pair<size_t, size_t>> covered;  // [first, end) in words
  for (const size_t length : lengths_) {
    for (size_t first = 0; first + length <= hashes.size(); ++first) {
      const uint64_t hash = stretches.of(first, length);
      if (!maybe(hash)) continue;
      auto e = std::lower_bound(entries_.begin(), entries_.end(), Entry{hash, 0, 0});
      for (; e != entries_.end() && e->hash == hash; ++e) {
        const EvalDocument& d = documents_[e->eval];
        if (length_of(d) != length) continue;
        if (words.empty()) words = normalized_words(text);
        if (!std::equal(d.words.begin() + e->first,
                        d.words.begin() + e->first + static_cast<std::ptrdiff_t>(length),
                        words.begin() + static_cast<std::ptrdiff_t>(first)))
          continue;
        Found& f = found[e->eval];
        ++f.windows;
        f.ngrams.insert(e->first);
        covered.emplace_back(first, first + length);
      }
    }
  }
  std::sort(covered.begin(), covered.end());
  size_t end = 0;
  for (const auto& [first, stop] : covered) {
    if (stop <= end) continue;
    out.words_covered += static_cast<int64_t>(stop - std::max(first, end));
    end = stop;
  }
  for (const auto& [eval, f] : found)
    out.hits.push_back({eval, f.windows, {f.ngrams.begin(), f.ngrams.end()}});
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

}  // namespace ostro::data
