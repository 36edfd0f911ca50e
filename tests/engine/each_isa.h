// EachIsa, ProgramWithInputs: compare the compiled engine on every instruction set of this machine with the
// interpreter, on programs of random size and with inputs that fit them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/cpu/engine/engine.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::testing {

class EachIsa {
 public:
  // One engine for each instruction set; options.isa is ignored. With OSTRO_EXECUTOR=cuda_emulated instead of
  // them the engine of the emulated device.
  explicit EachIsa(cpu::CpuOptions options);

  // Empty when all engines give the interpreter's bits, else which one differs and where. Every second
  // program gets its inputs as views that are aligned to their elements only.
  std::string difference(const ir::Program& program, const std::vector<runtime::Buffer>& inputs);

  // Results so far, and those of them that are finite and hold more than one value (or one element only):
  // equal NaNs or zeros prove little.
  int64_t results() const { return results_; }
  int64_t telling() const { return telling_; }

 private:
  std::unique_ptr<runtime::Engine> reference_;
  std::vector<std::pair<std::string, std::unique_ptr<runtime::Engine>>> engines_;
  int64_t programs_ = 0, results_ = 0, telling_ = 0;
};

// A program whose inputs are random numbers (make_inputs), but for those of integers with a rule of their
// own.
class ProgramWithInputs {
 public:
  explicit ProgramWithInputs(std::string name) { program.name = std::move(name); }

  ir::ValueId param(ir::Shape shape) { return program.body.add_param(std::move(shape)); }
  // i32 or bool; value(e) of element e in row-major order.
  ir::ValueId param(ir::Shape shape, const std::function<int64_t(int64_t)>& value);

  std::vector<runtime::Buffer> inputs(uint64_t seed) const;

  ir::Program program;

 private:
  std::vector<std::pair<size_t, runtime::Buffer>> given_;  // by number of the parameter
};

}  // namespace ostro::testing
