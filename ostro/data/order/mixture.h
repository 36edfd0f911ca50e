// Which component each example of a run comes from (docs/numerics.md, N12; docs/data.md, "Mixtures").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/options/options.h"
#include "ostro/data/order/batch_schedule.h"
#include "ostro/numerics/threefry.h"

namespace ostro::data {

// How many of `length` sequences each component gets: shares in proportion to the weights, rounded down, and
// the rest one by one to the largest remainders, earlier components first when equal. Exact: the sum is
// `length`, and integers alone decide. Weights are at least 0, with a sum above 0.
std::vector<int64_t> exact_counts(const std::vector<double>& weights, int64_t length);

// The examples of a run in blocks of data.mixture_block_size, counted from the beginning of each stage of
// weights. Every block holds the components in their exact counts, in an order drawn for the block; where a
// stage ends within a block, the rest of the block is not used. So no example depends on what comes later.
// Pure and thread-safe; nothing is stored but the blocks used last.
class Mixture {
 public:
  // Errors: a positive weight that gets no sequence of a block (it names the block size that would do).
  static Result<Mixture> create(const DataOptions& options, const BatchSchedule& schedule, numerics::Key key);

  struct Pick {
    size_t component = 0;  // index into components_of(options)
    int64_t number = 0;    // which of the component's own examples: 0, 1, 2, ... in the order of the run
  };
  Pick operator()(int64_t example) const;

  // How many of the examples [0, end) are of each component.
  std::vector<int64_t> counts_before(int64_t end) const;

 private:
  struct Stage {
    int64_t first_example = 0;
    std::vector<int64_t> before;    // examples of each component in the stages before
    std::vector<int64_t> in_block;  // counts of a block
  };
  struct Place {
    size_t stage = 0;
    int64_t block = 0, offset = 0;  // within the stage, within the block
  };
  // What stands at each offset of a block, and how many of its component stand before it.
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

}  // namespace ostro::data
