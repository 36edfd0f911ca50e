// decode_program, forward_hash: a model's cached step as a program: what every row of a runner computes.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"

namespace ostro::infer {

// The shapes of an empty cache of one sequence. Errors: the model has no cached step; fewer than 2 positions.
Result<std::vector<ir::Shape>> cache_shapes(const models::ModelFunctions& model, int64_t positions);
// (parameters, tokens i32 [batch = 1, pos = rows], start i32, cache) -> (f32 logits [batch, pos, vocab],
// cache). `leaves`: the leaf table of the model's programs, without a cut of positions.
Result<ir::Program> decode_program(const models::ModelFunctions& model, const std::vector<ir::Shape>& cache,
                                   int64_t rows, const numerics::LeafTable& leaves);
// SHA-256 of the text of the program of one row, in hexadecimal.
Result<std::string> forward_hash(const models::ModelFunctions& model, int64_t positions,
                                 const numerics::LeafTable& leaves);

}  // namespace ostro::infer
