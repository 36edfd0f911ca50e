// Head, IntegerHead, program_of: programs that are a model's head: the product that makes the logits, their
// cross-entropy, its gradient, and the products that read it.
#pragma once

#include <cstdint>

#include "ostro/ir/program/program.h"

namespace ostro::testing {

struct Head {
  ir::DType dtype = ir::DType::f32;
  int64_t batch = 2, pos = 70, embed = 24, vocab = 83;
  bool tied = false;  // the weights lie [vocab, embed]
  bool gradient = true;
  double z = 0;
  numerics::LeafTable leaves;
  bool want_logits = false;
  bool round_weights = false;  // their gradient in bf16
};

// Its products are of integers (N20).
struct IntegerHead {
  int64_t batch = 2, pos = 70, embed = 24, vocab = 83, block = 32;
  bool tied = false;                // the weights lie [vocab, embed]
  int64_t first_token = 0;          // the origin of pos in the draws
  int64_t all_pos = 0;              // the size of pos in the draws; 0: pos
  bool want_rows = false;           // what is quantised along the tokens is a result, too
  bool round_weights = false;       // their gradient in bf16
  bool draws_move = false;          // the origin of pos is an input
  numerics::LeafTable leaves = {};  // they cut the loss, and no product
};

ir::Program program_of(const Head& head);
ir::Program program_of(const IntegerHead& head);

}  // namespace ostro::testing
