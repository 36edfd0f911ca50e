// Inspector: shows what an engine would run for a program, and how fast the machine could run it. It is for
// tools
// (`ostro program`); no run depends on it. One thread at a time.
#pragma once

#include <functional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::runtime {

struct CompileOptions;

// The highest rates that the machine reaches.
struct MachineLimits {
  double f32_flops = 0, bf16_flops = 0;  // a second
  double bytes = 0;                      // a second, to and from memory
};

// Times of the steps of a program, measured by a profile of its runs.
struct Measured {
  MachineLimits limits;
  // Seconds of a run of the step at a place ("12.0.3": step 3 of region 0 of step 12) with that name, the
  // median; negative: it did not run. Place and name are those of the step's spans in a profile.
  std::function<double(const std::string& place, const std::string& name)> seconds;
};

class Inspector {
 public:
  virtual ~Inspector() = default;
  // The plan of the program as text: its steps, kernels and memory. Error: the program cannot be compiled.
  virtual Result<std::string> plan(const ir::Program& program, const CompileOptions& options) = 0;
  // The plan with the cost of each step, the ops that were fused into it, and why others were not. With
  // `measured` also how near the steps come to the machine's limits; it may be null.
  virtual Result<std::string> explain(const ir::Program& program, const CompileOptions& options,
                                      const Measured* measured) = 0;
  // Measures for about a second, on the threads that the engine uses.
  virtual Result<MachineLimits> limits() = 0;
};

}  // namespace ostro::runtime
