// FaultyGradients: puts a deliberate fault (base/test_fault.h) into the gradients of a step. Negative
// controls use it to prove that the equality tests notice an error. Faults are for engines whose memory is
// the host's. Not thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "ostro/base/test_fault.h"
#include "ostro/runtime/buffer.h"

namespace ostro::train {

// Applies the armed fault to the gradients of a step. Does nothing when no fault is armed.
class FaultyGradients {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // Passes the gradients of leaf `index` to the tree over leaves. With the fault leaf_order, leaf 1 is held
  // back until leaf 2 has been pushed.
  template <typename Push>
  void push(int64_t index, int64_t leaves, Buffers gradients, const runtime::Buffer& weight,
            Push&& push_to_tree) {
    if (mean_of_means_)
      for (runtime::Buffer& b : gradients)
        for (float& x : b.mutable_as<float>()) x *= static_cast<float>(1.0 / weight.item<double>());
    if (leaf_order_ && leaves > 2 && index == 1) {
      held_ = std::move(gradients);
      return;
    }
    push_to_tree(std::move(gradients));
    if (!held_.empty()) push_to_tree(std::exchange(held_, {}));
  }

  // Changes the summed gradients of the step that follows after `step` steps.
  void finish(int64_t step, Buffers& gradients) const {
    if (!gradient_bit_ || step != 5) return;
    const auto values = gradients[0].mutable_as<float>();
    float& largest = *std::max_element(values.begin(), values.end());
    largest = std::bit_cast<float>(std::bit_cast<uint32_t>(largest) ^ 1u);
  }

  // The weight that the update divides by, and the loss sum that gives the same mean loss with that weight.
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
