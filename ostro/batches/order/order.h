// SequenceOrder, Subset: the order in which a run sees the sequences of a data set (docs/spec/numerics.md,
// N12; docs/guide/data.md, "Order").
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ostro/data/options/options.h"
#include "ostro/numerics/permutation.h"
#include "ostro/numerics/threefry.h"

namespace ostro::batches {

// The random key for all draws about data: from trainer.seed and the path "data".
numerics::Key data_key(uint64_t seed);

// Maps the examples of an endless run to sequences. With n sequences, example e is position e mod n of epoch
// e / n. Every epoch is a permutation of its own. Pure and thread-safe; stores nothing for each sequence.
class SequenceOrder {
 public:
  // `n` is the number of sequences, at least 1; `shuffle` is data.shuffle.
  SequenceOrder(numerics::Key key, int64_t n, const data::Shuffle& shuffle);

  int64_t sequences() const { return n_; }
  // The sequence in [0, n) of an example >= 0.
  int64_t operator()(int64_t example) const;
  // Replaces each example by its sequence. Cheaper than one by one when neighbours in the list are neighbours
  // in the run.
  void map(std::span<int64_t> examples) const;
  // The example of an epoch >= 0 that reads this sequence: the inverse of (*this)(example), without a search.
  int64_t example_of(int64_t epoch, int64_t sequence) const;

 private:
  enum class Kind { kStored, kEras, kBlocks };
  // An era is a stretch of sequences that are permuted only among themselves: sequences [begin, begin +
  // length). They are the examples from `first` on.
  struct Era {
    int64_t first, begin, length;
    numerics::Key key;
  };
  Era era_of(int64_t example) const;
  // The permutation inside a window of blocks.
  numerics::Permutation inside(numerics::Key key, int64_t window) const;
  int64_t in_blocks(numerics::Key key, int64_t position) const;
  int64_t out_of_blocks(numerics::Key key, int64_t sequence) const;

  numerics::Key key_;
  int64_t n_;
  Kind kind_ = Kind::kStored;
  int64_t era_ = 0;  // kEras: length of an era, in sequences
  data::BlockShuffle block_;
};

// Simulated epoching: chooses n of N sequences that stand for the whole set. The choice is computed, not
// stored. With a full shuffle it is a keyed choice of single sequences, with a block shuffle of whole blocks,
// otherwise it is the first n.
class Subset {
 public:
  // Chooses floor(total * experiment_budget / target_budget) of `total` sequences; all of them without
  // budgets.
  Subset(numerics::Key key, int64_t total, const data::DataOptions& options);

  int64_t size() const { return size_; }
  // Sequence i of the choice, for i in [0, size()), as a sequence in [0, total).
  int64_t operator()(int64_t i) const;
  // The place i of a sequence in [0, total) in the choice. Nothing: it was not chosen.
  std::optional<int64_t> find(int64_t sequence) const;

 private:
  numerics::Key key_;
  int64_t total_, size_;
  int64_t block_ = 0;  // sequences chosen together; 0: the first `size_` sequences are the choice
};

}  // namespace ostro::batches
