// The canonical programs of a run: what trace and grad return, before any pass, mesh or engine
// (docs/design.md). Their text is program.ir, which `ostro verify` replays; its hash stands in the
// chain's genesis.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/models/model_functions.h"
#include "ostro/optim/adamw.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// n parameters, in the order of the model's tree. Names are in param_names and result_names.
struct CanonicalPrograms {
  // key u32[word:2] -> parameters.
  ir::Program init;
  // parameters, tokens, targets, loss_mask [, segments] of one leaf -> loss sum f64, weight f64, n gradients
  // [, with chain.leaf_gradients: n fingerprints of the gradients].
  ir::Program leaf;
  // parameters, first moments, second moments, gradients (sums over all leaves), loss sum, weight, lr, k1, k2
  // -> parameters, first, second moments, loss f32, gradient norm f64, ok bool, n fingerprints of the new
  // parameters.
  ir::Program update;
};

// Traces and differentiates. The vocabulary is the tokenizer's.
Result<CanonicalPrograms> make_programs(const TrainConfig& config, const models::ModelFunctions& model);

// program.ir: the three texts, one behind another; and its parser.
std::string print_programs(const CanonicalPrograms& programs);
Result<CanonicalPrograms> parse_programs(std::string_view text);
// The three texts without names, regions and places: what a run's identity is taken of, and its SHA-256.
std::string canonical_text(const CanonicalPrograms& programs);
std::string programs_hash(const CanonicalPrograms& programs);

// Losses of a batch of rows without derivatives: parameters, batch -> loss per token f32 [batch, pos], loss
// sum f64, weight f64. The same bits per row as the training loss (numerics.md N16).
ir::Program make_eval_program(const TrainConfig& config, const models::ModelFunctions& model);

// The fixed seed's key, u32[word:2], as the init program wants it.
runtime::Buffer init_key(int64_t seed);

DType compute_dtype(const TrainConfig& config);
numerics::LeafTable leaf_table(const TrainConfig& config);
optim::Boxes cell_boxes(const TrainConfig& config);

}  // namespace ostro::train
