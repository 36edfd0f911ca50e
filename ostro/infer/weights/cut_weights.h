// take_cut_weights: a program of a layer takes weights whose products are of integers (numerics.md N20) as
// integers that were cut before, so that a step need not cut them again. The bits are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

// The integers of a weight and their scales, as `quantize` gives them.
struct CutWeight {
  runtime::Buffer q, scales;
};

// Each of these inputs of `p` that is read by one `quantize` and by nothing else becomes an input of that
// op's integers; their scales become the last inputs. Returns those inputs, in the order of the scales. An
// input that nothing reads becomes one of the shape in `given`. Aborts for one that is read otherwise.
std::vector<size_t> take_cut_weights(ir::Program& p, const std::vector<size_t>& inputs,
                                     const std::vector<ir::Shape>& given);

// The program that cuts weights of this shape over these of their axes; its results are q and scales.
Result<std::unique_ptr<runtime::Executable>> cut_program(runtime::Engine& engine, const ir::Shape& weight,
                                                         const std::vector<std::string>& over, int64_t block);

}  // namespace ostro::infer
