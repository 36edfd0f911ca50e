// test_fault: deliberate faults in the arithmetic or the collectives.
//
// Negative controls use them to prove that the equality tests notice an error (numerics.md, "Tests that keep
// it honest"; tests/controls). Results of a run with a fault are wrong.
//
// OSTRO_TEST_FAULT=NAME arms one fault for the life of the process:
//   leaf_order          the gradients of leaves 1 and 2 are swapped in the tree over leaves
//   mean_of_means       gradients are averaged within each leaf, then over the leaves
//   gradient_bit        in step 6 the lowest bit of one element of the summed gradient is flipped
//   ring_order          owners add partial sums in ring order, starting with the next worker's
//   round_order         with trainer.mesh.exchange layer, the leaves of a round are added up in another order
//   wrong_experts       the rows of a mixture go to the worker of the next expert
//   stale_replica       the copies of other workers' cells miss the update of step 6
//   denormals           the thread that starts a parallel job computes without flush-to-zero
//   contraction         generated code is compiled with -ffp-contract=fast
//   group_of_16         the bf16 product of the generic instruction set sums groups of 16, not 32
//   libm_exp            generated code takes exp from libm
#pragma once

#include <string_view>

namespace ostro {

// Returns whether OSTRO_TEST_FAULT names this fault. Thread-safe; the variable is read once. An unknown name
// aborts
// with a message at the first call, because a control without an armed fault would prove nothing.
bool test_fault(std::string_view name);

}  // namespace ostro
