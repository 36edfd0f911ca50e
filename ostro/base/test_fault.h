// Faults that a test puts into the arithmetic or the collectives, to see that the equality tests notice
// (numerics.md, "Tests that keep it honest"; tests/controls). Not for use: a run with one is wrong.
//
// OSTRO_TEST_FAULT=NAME arms one fault for the life of the process:
//   leaf_order          the gradients of leaves 1 and 2 change places in the tree over leaves
//   mean_of_means       gradients are averaged over each leaf's weight, then over leaves
//   gradient_bit        in step 6 the lowest bit of one element of the summed gradient is flipped
//   ring_order          owners add the workers' partials one after another, beginning with their neighbour
//   denormals           of several threads the one that starts a job computes without flush-to-zero
//   contraction         generated code is compiled with -ffp-contract=fast
//   group_of_16         the bf16 product of the generic instruction set sums groups of 16, not 32
//   libm_exp            generated code takes exp from libm
#pragma once

#include <string_view>

namespace ostro {

// Whether OSTRO_TEST_FAULT names this fault. Thread-safe; the variable is read once. An unknown name in it
// ends the process with a message at the first call: a control that arms nothing would prove nothing.
bool test_fault(std::string_view name);

}  // namespace ostro
