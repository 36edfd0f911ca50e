// CanonicalPrograms: the programs of a run as tracing and differentiation give them, before any pass, mesh or
// engine (docs/inside/design.md). Their text is the file program.ir, which `ostro verify` runs again. The
// hash of this text is in the first entry (genesis) of the run's chain. Values; functions that trace must be
// called outside any trace.
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
#include "ostro/train/programs/leaf_io.h"
#include "ostro/train/programs/update_io.h"

namespace ostro::train {

// The programs for a model with n parameters, in the order of the model's functions: the trained ones
// first. The programs' param_names and result_names hold the names, which leaf_io.h and update_io.h declare.
struct CanonicalPrograms {
  // key u32[word:2] -> parameters.
  ir::Program init;
  // Forward and backward pass of one leaf (microbatch): LeafParams -> LeafResults.
  ir::Program leaf;
  // The optimizer step: UpdateParams -> UpdateResults. Frozen parameters pass through it: the fingerprints
  // are of all.
  ir::Program update;
  // For a run on preference pairs: (parameters, batch without `reference`) -> f64 [batch, side], the
  // log-probabilities of the answers. With the initial parameters it gives the `reference` of all batches.
  std::optional<ir::Program> reference = {};
};

// The places of the programs' parameters and results, by name.
struct Signatures {
  ParameterList model;
  LeafParams<size_t> leaf_params;
  LeafResults<size_t> leaf_results;
  UpdateParams<size_t> update_params;
  UpdateResults<size_t> update_results;

  size_t trained() const { return leaf_results.gradients.size(); }
};
// Compares the programs with the declarations of leaf_io.h and update_io.h, and returns the places. Error: a
// program, which is named, has other parameters or results.
Result<Signatures> check_signatures(const CanonicalPrograms& programs);
// The same for programs that come from make_programs or parse_programs, which have checked them.
Signatures signatures_of(const CanonicalPrograms& programs);

// Traces the model and differentiates its loss. `model` is made for the tokenizer's vocabulary size.
Result<CanonicalPrograms> make_programs(const TrainConfig& config, const models::ModelFunctions& model);

// The content of program.ir (the texts of the programs, one after another), and its parser. Errors of the
// parser: the text is none of these programs; those of check_signatures.
std::string print_programs(const CanonicalPrograms& programs);
Result<CanonicalPrograms> parse_programs(std::string_view text);
// The texts of print_programs() without names, regions and source places, and the SHA-256 of them. This is
// the part that identifies a run.
std::string canonical_text(const CanonicalPrograms& programs);
std::string programs_hash(const CanonicalPrograms& programs);

// The names of the leaf program's measures beside the loss, without the "measure/" of its result names.
std::vector<std::string> measure_names(const ir::Program& leaf);

// A program that computes losses only, without derivatives: LeafParams -> EvalResults. Every row gets the
// same bits as in the training loss (numerics.md N16).
ir::Program make_eval_program(const TrainConfig& config, const models::ModelFunctions& model);

// The random key of a seed, u32[word:2], as the init program takes it.
runtime::Buffer init_key(int64_t seed);

// The type of activations; with integer products bf16.
DType compute_dtype(const TrainConfig& config);
// The precision of products, from trainer.mp.
nn::Precision precision(const TrainConfig& config);
// The choices that numerics.md leaves to the run, for its genesis: a JSON object.
std::string numerics_options(const TrainConfig& config);
numerics::LeafTable leaf_table(const TrainConfig& config);
// The leaf table of generation and scores: that of the run's programs without the entry for the axis of
// positions. Only sums over a batch are cut into leaves along it, and neither of them sums over a batch.
numerics::LeafTable inference_leaf_table(const TrainConfig& config);
optim::Optimizer optimizer_of(const TrainConfig& config, const models::ModelFunctions& model);
optim::Boxes cell_boxes(const TrainConfig& config);

}  // namespace ostro::train
