// RowMean: the mean of rows, as the rows come (numerics.md N22).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ostro::infer {

// The result depends on the rows and their order, not on how they are cut into calls of add(). Not
// thread-safe.
class RowMean {
 public:
  // `rows`: some whole rows of `width` values, one after the other.
  void add(std::span<const float> rows, size_t width);
  // Of at least one row.
  std::vector<float> mean() const;

 private:
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace ostro::infer
