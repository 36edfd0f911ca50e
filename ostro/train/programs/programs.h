// The canonical programs of a run. They are the result of tracing and differentiation, before any pass, mesh
// or engine (docs/inside/design.md). Their text is the file program.ir, which `ostro verify` runs again. The
// hash of this text is in the first entry (genesis) of the run's chain.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/models/model_functions.h"
#include "ostro/optim/norm.h"
#include "ostro/optim/optimizer.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// The programs for a model with n parameters, in the order of the model's functions: the trained ones
// first. The programs' param_names and result_names hold the names.
struct CanonicalPrograms {
  // key u32[word:2] -> parameters.
  ir::Program init;
  // Forward and backward pass of one leaf (microbatch).
  //
  // Inputs: parameters, tokens, targets, loss_mask, segments if documents are masked from each other, and
  // reference f64 [batch, side] if the objective compares with one. Results: loss sum f64, weight f64,
  // gradients of the trained parameters, with chain.leaf_gradients fingerprints of the gradients, and what is
  // measured besides (measure_names), f64 sums.
  ir::Program leaf;
  // The optimizer step. Frozen parameters pass through it: the fingerprints are of all.
  //
  // Inputs: parameters, the optimizer's arrays (optim::Optimizer::state), gradients (summed over all leaves),
  // loss sum, weight, the optimizer's scalars. Results: parameters, the optimizer's arrays, loss f32,
  // gradient norm f64, ok bool, the norm f64 of each set of parameters that is clipped by itself
  // (optim::Optimizer::clip_sets), n fingerprints of the new parameters.
  ir::Program update;
  // Of a run on preference pairs: (parameters, batch without `reference`) -> f64 [batch, side], the
  // log-probabilities of the answers. With the initial parameters it gives the `reference` of all batches.
  std::optional<ir::Program> reference = {};
};

// Traces the model and differentiates its loss. `model` is made for the tokenizer's vocabulary size.
Result<CanonicalPrograms> make_programs(const TrainConfig& config, const models::ModelFunctions& model);

// The content of program.ir (the texts of the programs, one after another), and its parser.
std::string print_programs(const CanonicalPrograms& programs);
Result<CanonicalPrograms> parse_programs(std::string_view text);
// The same texts without names, regions and source places, and the SHA-256 of them. This is the part that
// identifies a run.
std::string canonical_text(const CanonicalPrograms& programs);
std::string programs_hash(const CanonicalPrograms& programs);

// What the leaf program measures beside the loss, without the "measure/" of its result names.
std::vector<std::string> measure_names(const ir::Program& leaf);

// A program that computes losses only, without derivatives. Inputs: parameters and a batch. Results: loss per
// token f32 [batch, pos], of pairs instead their margins f64 [batch]; loss sum f64, weight f64, and what the
// leaf program measures. Every row gets the same bits as in the training loss
// (numerics.md N16).
ir::Program make_eval_program(const TrainConfig& config, const models::ModelFunctions& model);

// The random key of a seed, u32[word:2], as the init program takes it.
runtime::Buffer init_key(int64_t seed);

DType compute_dtype(const TrainConfig& config);
numerics::LeafTable leaf_table(const TrainConfig& config);
optim::Optimizer optimizer_of(const TrainConfig& config, const models::ModelFunctions& model);
optim::Boxes cell_boxes(const TrainConfig& config);

}  // namespace ostro::train
