// Faults that a test puts into the exchange between workers, so that the equality tests are seen to fail
// (numerics.md, "Tests that keep it honest").
#pragma once

#include "ostro/base/error.h"

namespace ostro::train {

enum class TestFault {
  kNone,
  kLeafOrderSwapped,  // the gradients of leaves 1 and 2 change places in the tree
  kRingOrder,         // owners add the workers' partials one after another, beginning with their neighbour
};

// OSTRO_TEST_FAULT = leaf_order_swapped | ring_order; unset or empty: none. Error: any other word.
Result<TestFault> test_fault();

}  // namespace ostro::train
