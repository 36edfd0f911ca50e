// The faults that the negative controls put into a step's gradients (base/test_fault.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "ostro/base/test_fault.h"
#include "ostro/runtime/buffer.h"

namespace ostro::train {

// What the faults of base/test_fault.h do to the gradients of a step; nothing when none is armed.
class FaultyGradients {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // Gradients of leaf `index` on their way into the tree over leaves; leaf 1 may have to wait for leaf 2.
  template <typename Push>
  void push(int64_t index, int64_t leaves, Buffers gradients, double weight, Push&& push_to_tree) {
    if (mean_of_means_)
      for (runtime::Buffer& b : gradients)
        for (float& x : b.mutable_as<float>()) x *= static_cast<float>(1.0 / weight);
    if (leaf_order_ && leaves > 2 && index == 1) {
      held_ = std::move(gradients);
      return;
    }
    push_to_tree(std::move(gradients));
    if (!held_.empty()) push_to_tree(std::exchange(held_, {}));
  }

  // The summed gradients of the step after `step`.
  void finish(int64_t step, Buffers& gradients) const {
    if (!gradient_bit_ || step != 5) return;
    const auto values = gradients[0].mutable_as<float>();
    float& largest = *std::max_element(values.begin(), values.end());
    largest = std::bit_cast<float>(std::bit_cast<uint32_t>(largest) ^ 1u);
  }

  // What the update divides by, and the sum of losses that gives the same loss.
  double weight(double sum, size_t leaves) const {
    return mean_of_means_ ? static_cast<double>(leaves) : sum;
  }
  double loss(double sum, double weight, size_t leaves) const {
    return mean_of_means_ ? sum / weight * static_cast<double>(leaves) : sum;
  }

 private:
  bool leaf_order_ = test_fault("leaf_order");
  bool mean_of_means_ = test_fault("mean_of_means");
  bool gradient_bit_ = test_fault("gradient_bit");
  Buffers held_;
};

}  // namespace ostro::train
