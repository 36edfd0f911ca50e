// difference: compares two engines on a program, or a program with its rewritings on one engine, bit for bit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/runtime/engine.h"
#include "random_program.h"

namespace ostro::fuzz {

// Counts of the outputs of the runs by what they hold and what made them, because equal NaNs prove nothing.
struct OutputStats {
  int64_t outputs = 0;
  int64_t finite = 0;      // all elements finite (or not floating)
  int64_t meaningful = 0;  // finite, and with more than one value or one element only
  int64_t kernels = 0;     // generated kernels of engine b's programs
  int64_t fallback_ops = 0;
  std::map<std::string, int64_t> dull;           // outputs that are not meaningful, by the op that made them
  std::map<std::string, int64_t> lone_policies;  // programs that a policy of rematerialisation alone made so

  void add(const OutputStats& other);
};

// The difference between engine `a` on the program and engine `b` on the program after a round trip through
// its text: an error, or the first differing element with both values and the op that made it. Two NaNs are
// equal whatever their payload (numerics.md N0). nullopt: the same bits.
std::optional<std::string> difference(runtime::Engine& a, runtime::Engine& b, const RandomCase& c,
                                      OutputStats* stats = nullptr);

// A rewriting of a program with the same parameters and results, and what made it.
struct Rewriting {
  std::string name;
  ir::Program program;
};

// The first rewriting that gives other bits than the program, on one engine. Those that changed nothing are
// not run.
std::optional<std::string> difference(runtime::Engine& engine, const RandomCase& c,
                                      const std::vector<Rewriting>& rewritings);

// The program of c returning every value of its body, to name the first op that differs.
RandomCase returning_everything(const RandomCase& c);

}  // namespace ostro::fuzz
