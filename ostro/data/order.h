// In which order a run sees the sequences of its data set (docs/data.md, "Order").
#pragma once

#include <cstdint>

#include "ostro/config/codec.h"
#include "ostro/numerics/threefry.h"

namespace ostro::data {

// Maps the examples of an endless run to sequences: example e is position e mod n of epoch e / n, and every
// epoch is a permutation of its own. Pure and thread-safe; nothing is stored per sequence.
class SequenceOrder {
 public:
  // n sequences, at least 1; `shuffle` as data.shuffle.
  SequenceOrder(uint64_t seed, int64_t n, const config::Alternatives<bool, int64_t>& shuffle);

  int64_t sequences() const { return n_; }
  // The sequence, in [0, n), that example e >= 0 of the run is.
  int64_t operator()(int64_t example) const;

 private:
  numerics::Key key_;
  int64_t n_;
  int64_t era_;  // sequences that are permuted among themselves; 0: stored order
};

}  // namespace ostro::data
