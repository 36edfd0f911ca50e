#include "ostro/tokenizer/files/merge_search.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::tokenizer {
namespace {

constexpr uint32_t kNoNeighbour = 0xFFFFFFFF;
constexpr uint32_t kDead = 0xFFFFFFFF;  // id of a symbol that was merged into another

}  // namespace

MergeSearch::PairInfo& MergeSearch::info(TokenPair pair) {
  return pairs_[uint64_t{pair.first} << 32 | pair.second];
}

void MergeSearch::add_piece(const std::vector<uint32_t>& ids, uint64_t count) {
  OSTRO_CHECK(symbols_.size() + ids.size() < kNoNeighbour,
              "more than 2^32 - 1 symbols in distinct pieces: train on a sample");
  const auto begin = static_cast<uint32_t>(symbols_.size());
  const auto end = static_cast<uint32_t>(begin + ids.size());
  const auto piece = static_cast<uint32_t>(piece_counts_.size());
  for (uint32_t i = begin; i < end; ++i) {
    symbols_.push_back(
        {ids[i - begin], i == begin ? kNoNeighbour : i - 1, i + 1 == end ? kNoNeighbour : i + 1, piece});
  }
  piece_counts_.push_back(count);
}

void MergeSearch::add_pair(TokenPair pair, uint64_t count, uint32_t place) {
  PairInfo& p = info(pair);
  p.count += count;
  p.places.push_back(place);
  if (!p.grew) {
    p.grew = true;
    grown_.push_back(pair);
  }
}

void MergeSearch::remove_pair(TokenPair pair, uint64_t count) {
  PairInfo& p = info(pair);
  OSTRO_CHECK(p.count >= count, "pair counts are out of step with the symbols");
  p.count -= count;
}

void MergeSearch::start() {
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& s = symbols_[i];
    if (s.next != kNoNeighbour) add_pair({s.id, symbols_[s.next].id}, piece_counts_[s.piece], i);
  }
  for (const TokenPair& pair : grown_) {
    queue_.push({info(pair).count, pair});
    info(pair).grew = false;
  }
  grown_.clear();
}

// The queue is lazy: counts that fell are corrected only when their entry comes to the top. An entry is right
// when its count is the pair's current one.
std::optional<TokenPair> MergeSearch::best(uint64_t min_count) {
  while (!queue_.empty()) {
    const Candidate top = queue_.top();
    const uint64_t count = info(top.pair).count;
    if (count == top.count && count >= std::max<uint64_t>(min_count, 1)) return top.pair;
    queue_.pop();
    // If the pair has become rarer, it goes back into the queue with its new count. If it became more
    // frequent, it already has a newer entry.
    if (count < top.count && count > 0) queue_.push({count, top.pair});
    if (count == top.count) break;  // here even the best pair is below min_count
  }
  return std::nullopt;
}

// Goes over the noted positions of the pair, of which some are stale: a symbol there may have been merged
// since. Each merge moves the piece's count from the three old pairs to the two new ones. Pairs whose count
// grew get a new entry in the queue; pairs that became rarer keep their old one, which best() corrects.
void MergeSearch::merge(TokenPair pair, uint32_t merged) {
  PairInfo& merging = info(pair);
  std::vector<uint32_t> places = std::move(merging.places);
  merging.places.clear();
  // Ascending order, so that in "aaa" the left pair is merged, as the encoder does.
  if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
  for (const uint32_t place : places) {
    Symbol& left = symbols_[place];
    if (left.id != pair.first || left.next == kNoNeighbour || symbols_[left.next].id != pair.second) continue;
    Symbol& right = symbols_[left.next];
    const uint64_t count = piece_counts_[left.piece];
    remove_pair(pair, count);
    if (left.previous != kNoNeighbour) remove_pair({symbols_[left.previous].id, left.id}, count);
    if (right.next != kNoNeighbour) remove_pair({right.id, symbols_[right.next].id}, count);
    left.id = merged;
    left.next = right.next;
    right.id = kDead;
    if (left.previous != kNoNeighbour) add_pair({symbols_[left.previous].id, merged}, count, left.previous);
    if (left.next != kNoNeighbour) {
      symbols_[left.next].previous = place;
      add_pair({merged, symbols_[left.next].id}, count, place);
    }
  }
  for (const TokenPair& grown : grown_) {
    PairInfo& p = info(grown);
    p.grew = false;
    if (p.count > 0) queue_.push({p.count, grown});
  }
  grown_.clear();
}

}  // namespace ostro::tokenizer
