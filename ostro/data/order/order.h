// In which order a run sees the sequences of a data set (docs/numerics.md, N12; docs/data.md, "Order").
#pragma once

#include <cstdint>
#include <span>

#include "ostro/data/options/options.h"
#include "ostro/numerics/threefry.h"

namespace ostro::data {

// The key of everything that is drawn about data: trainer.seed and the path "data".
numerics::Key data_key(uint64_t seed);

// Maps the examples of an endless run to sequences: example e is position e mod n of epoch e / n, and every
// epoch is a permutation of its own. Pure and thread-safe; nothing is stored per sequence.
class SequenceOrder {
 public:
  // n sequences, at least 1; `shuffle` as data.shuffle.
  SequenceOrder(numerics::Key key, int64_t n, const Shuffle& shuffle);

  int64_t sequences() const { return n_; }
  // The sequence, in [0, n), that example e >= 0 of the run is.
  int64_t operator()(int64_t example) const;
  // The sequences of many examples, in their places; cheaper than one by one where they are neighbours.
  void map(std::span<int64_t> examples) const;

 private:
  enum class Kind { kStored, kEras, kBlocks };
  // The sequences that example e is permuted among: [begin, begin + length), which the examples from `first`
  // on are.
  struct Era {
    int64_t first, begin, length;
    numerics::Key key;
  };
  Era era_of(int64_t example) const;
  int64_t in_blocks(numerics::Key key, int64_t position) const;

  numerics::Key key_;
  int64_t n_;
  Kind kind_ = Kind::kStored;
  int64_t era_ = 0;  // kEras: sequences that are permuted among themselves
  BlockShuffle block_;
};

// Simulated epoching: which n of N sequences stand for all, without being stored. With a full shuffle a
// keyed choice of sequences, with a block shuffle of whole blocks, otherwise the first ones.
class Subset {
 public:
  // floor(total * experiment / target) of `total` sequences; all of them without budgets.
  Subset(numerics::Key key, int64_t total, const DataOptions& options);

  int64_t size() const { return size_; }
  // The sequence in [0, total) that number i in [0, size()) is.
  int64_t operator()(int64_t i) const;

 private:
  numerics::Key key_;
  int64_t total_, size_;
  int64_t block_ = 0;  // sequences that are chosen together; 0: the first `size_` are taken
};

}  // namespace ostro::data
