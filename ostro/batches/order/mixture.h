// Mixture: chooses the component of each example of a run (docs/spec/numerics.md, N12; docs/guide/data.md,
// "Mixtures").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/batches/order/batch_schedule.h"
#include "ostro/data/options/options.h"
#include "ostro/numerics/threefry.h"

namespace ostro::batches {

// The number of `length` sequences that each component gets. Shares are in proportion to the weights, rounded
// down; the rest goes one by one to the largest remainders, and to the earlier component when two are equal.
// For example, weights {2, 1, 1} and length 10 give {5, 3, 2}. Exact: the sum is `length`, and only integers
// are compared. Weights must be at least 0, with a sum above 0.
std::vector<int64_t> exact_counts(const std::vector<double>& weights, int64_t length);

// Divides the examples of a run into blocks of data.mixture_block_size. Every block holds the components in
// their exact counts, in a random order drawn for that block. Blocks are counted from the beginning of each
// stage of weights. Where a stage ends inside a block, the rest of that block is not used, so no example
// depends on a later stage. Pure and thread-safe; only the blocks used last are kept in memory.
class Mixture {
 public:
  // Errors: a positive weight is too small to get one sequence in a block (names the block size that is
  // needed).
  static Result<Mixture> create(const data::DataOptions& options, const BatchSchedule& schedule,
                                numerics::Key key);

  struct Pick {
    size_t component = 0;  // index into components_of(options)
    int64_t number = 0;    // of the component's own examples: 0, 1, 2, ... in the order of the run
  };
  // The component of an example >= 0, and its number there.
  Pick operator()(int64_t example) const;

  // The example of a component's number, if all its examples up to there are in the run: the inverse of
  // (*this)(example). Looks into one block. Nothing: no stage has so many examples of the component.
  std::optional<int64_t> example_of(const Pick& pick) const;

  // The number of the examples [0, end) that belong to each component.
  std::vector<int64_t> counts_before(int64_t end) const;

 private:
  struct Stage {
    int64_t first_example = 0;
    std::vector<int64_t> before;    // examples of each component in earlier stages
    std::vector<int64_t> in_block;  // of each component in one block
  };
  struct Place {
    size_t stage = 0;
    int64_t block = 0, offset = 0;  // within the stage, within the block
  };
  // For each offset of a block: the component there, and how many examples of the same component come before
  // it in the block.
  struct Block {
    size_t stage = 0;
    int64_t number = 0;
    std::vector<uint32_t> components, ranks;
  };
  struct Cache;

  Place place_of(int64_t example) const;
  std::shared_ptr<const Block> block(size_t stage, int64_t number) const;

  numerics::Key key_;
  int64_t block_size_ = 0;
  std::vector<Stage> stages_;
  std::shared_ptr<Cache> cache_;
};

}  // namespace ostro::batches
