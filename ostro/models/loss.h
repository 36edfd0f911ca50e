// Batch, Loss: the inputs and results of a model in training.
#pragma once

#include "ostro/nn/integer_products.h"
#include "ostro/trace/tree.h"

namespace ostro::models {

// One leaf of a batch (the rows that one call of the loss function reads), as arrays.
struct Batch {
  Array tokens;          // i32 [batch, pos]
  Array targets;         // i32 [batch, pos]
  Array loss_mask;       // f32 [batch, pos]
  Array segments;        // i32 [batch, pos], or empty: attention over the whole row
  nn::Draws draws = {};  // needed where integer products are differentiated
  OSTRO_FIELDS(tokens, targets, loss_mask, segments)
};

// Losses are never averaged here: the trainer sums weight * per_token over all leaves and divides once.
struct Loss {
  Array per_token;  // f32 [batch, pos]; of text in nats
  Array weight;     // f32 [batch, pos]
  OSTRO_FIELDS(per_token, weight)
};

}  // namespace ostro::models
