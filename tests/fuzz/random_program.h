// random_case: random legal Programs with inputs, for comparing engines bit for bit. Everything follows from
// the seed.
//
// A program mixes all ops but collectives over all dtypes they take, inside and outside scans, with feature
// leaves; a third are differentiated, a third have axes of one element. Values are kept moderate, so that
// nearly all outputs are finite.
//
// Each holds a few of legal_combinations() by construction, in turn with the seed: any kSeedsForAll seeds in
// a row reach every one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/buffer.h"

namespace ostro::fuzz {

// The function that was differentiated to make a program.
struct Derivative {
  ir::Block function;         // result 0 is the loss
  std::vector<int64_t> wrt;   // its parameters with gradients
  size_t first_gradient = 0;  // the program's results from here on are gradients
};

struct RandomCase {
  ir::Program program;
  std::vector<runtime::Buffer> inputs;
  std::optional<Derivative> derivative;  // when the program is a function with its gradients
  bool give = false;                     // all inputs to the engine, which may write results over them
};

inline constexpr int64_t kSeedsForAll = 300;

RandomCase random_case(uint64_t seed);

}  // namespace ostro::fuzz
