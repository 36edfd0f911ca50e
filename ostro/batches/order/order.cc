#include "ostro/batches/order/order.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::batches {
namespace {

using numerics::fold_in;
using numerics::Permutation;
__extension__ using Wide = __int128;

// Permutes blocks of b neighbouring sequences as wholes, and gives the sequence at position p of n. The last
// block may be shorter.
int64_t permute_blocks(numerics::Key key, int64_t n, int64_t b, int64_t p) {
  const int64_t blocks = (n - 1) / b + 1, missing = blocks * b - n;
  const Permutation order(key, blocks);
  if (missing == 0) return order(p / b) * b + p % b;
  // All positions after the short block are shifted by the number of sequences that it lacks.
  const int64_t short_place = order.inverse(blocks - 1);
  if (p >= short_place * b + (b - missing)) p += missing;
  return order(p / b) * b + p % b;
}

// The position p at which permute_blocks gives `sequence`.
int64_t find_in_blocks(numerics::Key key, int64_t n, int64_t b, int64_t sequence) {
  const int64_t blocks = (n - 1) / b + 1, missing = blocks * b - n;
  const Permutation order(key, blocks);
  const int64_t p = order.inverse(sequence / b) * b + sequence % b;
  return missing > 0 && p >= (order.inverse(blocks - 1) + 1) * b ? p - missing : p;
}

}  // namespace

numerics::Key data_key(uint64_t seed) { return fold_in(numerics::key_from_seed(seed), "data"); }

SequenceOrder::SequenceOrder(numerics::Key key, int64_t n, const data::Shuffle& shuffle) : key_(key), n_(n) {
  OSTRO_CHECK(n >= 1, "an order of {} sequences", n);
  if (const auto* whole = std::get_if<bool>(&shuffle.value)) {
    if (*whole) kind_ = Kind::kEras;
    era_ = n;
  } else if (const auto* era = std::get_if<int64_t>(&shuffle.value)) {
    kind_ = Kind::kEras;
    era_ = std::min(*era, n);
  } else {
    kind_ = Kind::kBlocks;
    block_ = std::get<data::BlockShuffle>(std::get<std::variant<data::BlockShuffle>>(shuffle.value));
    block_.io_block_size = std::min(block_.io_block_size, n);
    block_.window_blocks = std::min(block_.window_blocks, (n - 1) / block_.io_block_size + 1);
  }
}

SequenceOrder::Era SequenceOrder::era_of(int64_t example) const {
  const int64_t epoch = example / n_, era = example % n_ / era_, begin = era * era_;
  return {epoch * n_ + begin, begin, std::min(era_, n_ - begin),
          fold_in(fold_in(key_, static_cast<uint32_t>(epoch)), static_cast<uint32_t>(era))};
}

int64_t SequenceOrder::operator()(int64_t example) const {
  OSTRO_CHECK(example >= 0, "example {}", example);
  if (kind_ == Kind::kEras) {
    const Era era = era_of(example);
    return era.begin + Permutation(era.key, era.length)(example - era.first);
  }
  const int64_t epoch = example / n_, position = example % n_;
  if (kind_ == Kind::kStored) return position;
  return in_blocks(fold_in(key_, static_cast<uint32_t>(epoch)), position);
}

void SequenceOrder::map(std::span<int64_t> examples) const {
  if (kind_ != Kind::kEras) {
    for (int64_t& example : examples) example = (*this)(example);
    return;
  }
  while (!examples.empty()) {
    OSTRO_CHECK(examples[0] >= 0, "example {}", examples[0]);
    const Era era = era_of(examples[0]);
    size_t count = 0;
    for (;
         count < examples.size() && examples[count] >= era.first && examples[count] - era.first < era.length;
         ++count)
      examples[count] -= era.first;
    const std::span<int64_t> own = examples.first(count);
    Permutation(era.key, era.length).map(own);
    for (int64_t& sequence : own) sequence += era.begin;
    examples = examples.subspan(count);
  }
}

int64_t SequenceOrder::example_of(int64_t epoch, int64_t sequence) const {
  OSTRO_CHECK(epoch >= 0 && sequence >= 0 && sequence < n_, "epoch {}, sequence {} of {}", epoch, sequence,
              n_);
  const int64_t first = epoch * n_;
  if (kind_ == Kind::kStored) return first + sequence;
  if (kind_ == Kind::kBlocks)
    return first + out_of_blocks(fold_in(key_, static_cast<uint32_t>(epoch)), sequence);
  const Era era = era_of(first + sequence);  // its examples are the positions of its sequences
  return era.first + Permutation(era.key, era.length).inverse(sequence - era.begin);
}

Permutation SequenceOrder::inside(numerics::Key key, int64_t window) const {
  const int64_t length = block_.io_block_size * block_.window_blocks;
  return Permutation(fold_in(fold_in(key, "window"), static_cast<uint32_t>(window)),
                     std::min(length, n_ - window * length));
}

// Two permutations: one of the blocks of the whole set, and inside a window of the permuted blocks one of
// single sequences. So a window reads from window_blocks places of the store.
int64_t SequenceOrder::in_blocks(numerics::Key key, int64_t position) const {
  const int64_t length = block_.io_block_size * block_.window_blocks;
  const int64_t window = position / length, begin = window * length;
  return permute_blocks(fold_in(key, "blocks"), n_, block_.io_block_size,
                        begin + inside(key, window)(position - begin));
}

int64_t SequenceOrder::out_of_blocks(numerics::Key key, int64_t sequence) const {
  const int64_t length = block_.io_block_size * block_.window_blocks;
  const int64_t position = find_in_blocks(fold_in(key, "blocks"), n_, block_.io_block_size, sequence);
  const int64_t window = position / length, begin = window * length;
  return begin + inside(key, window).inverse(position - begin);
}

Subset::Subset(numerics::Key key, int64_t total, const data::DataOptions& options)
    : key_(fold_in(key, "budget")), total_(total), size_(total) {
  if (!options.target_budget) return;
  size_ =
      static_cast<int64_t>(static_cast<Wide>(total) * *options.experiment_budget / *options.target_budget);
  if (const auto* whole = std::get_if<bool>(&options.shuffle.value))
    block_ = *whole ? 1 : 0;
  else if (const auto* blocks = std::get_if<std::variant<data::BlockShuffle>>(&options.shuffle.value))
    block_ = std::get<data::BlockShuffle>(*blocks).io_block_size;
  block_ = std::min(block_, std::max<int64_t>(total, 1));
}

int64_t Subset::operator()(int64_t i) const {
  OSTRO_CHECK(i >= 0 && i < size_, "sequence {} of {}", i, size_);
  return block_ == 0 ? i : permute_blocks(key_, total_, block_, i);
}

std::optional<int64_t> Subset::find(int64_t sequence) const {
  OSTRO_CHECK(sequence >= 0 && sequence < total_, "sequence {} of {}", sequence, total_);
  const int64_t i = block_ == 0 ? sequence : find_in_blocks(key_, total_, block_, sequence);
  return i < size_ ? std::optional(i) : std::nullopt;
}

}  // namespace ostro::batches
