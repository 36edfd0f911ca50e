// pair_loss: traces the loss of preference pairs (numerics.md N17): from the model's loss of both texts of
// every pair, and from the log-probabilities that the weights at the beginning of the run gave to both
// answers. The functions are called while tracing.
#pragma once

#include <vector>

#include "ostro/models/loss.h"
#include "ostro/train/options/objective_options.h"

namespace ostro::train {

// Returns the texts of pairs, [batch, side, pos], in the form that the model takes: [batch, pos], the chosen
// text of a pair and then the rejected one.
models::Batch texts_of_pairs(const models::Batch& pairs);

// f64 [batch, side]: the sum of the log-probabilities of an answer's tokens, in nats, and the number of these
// tokens.
struct AnswerScores {
  Array log_prob, tokens;
};
// Returns the scores of both answers of each pair, from the model's loss of texts_of_pairs().
AnswerScores answer_scores(const models::Loss& texts);

struct PairLoss {
  models::Loss loss;  // f32 [batch], of pairs; weight 0 where an answer has no token
  // f64 [batch]: beta * (log-probability of the chosen answer, less that of the other, each less its
  // reference)
  Array margin;
};
// Returns the loss of pairs with these scores. `reference` is f64 [batch, side], the log_prob of the weights
// that the run began with.
PairLoss pair_loss(const DpoObjective& objective, const AnswerScores& scores, const Array& reference);

// The measures that are reported beside the loss: f64 sums over pairs of weight times ...
inline const std::vector<std::string> kPairMeasures = {
    "accuracy",  // 1 if the margin is above 0
    "margin",
};
std::vector<Array> pair_measures(const PairLoss& pairs);

}  // namespace ostro::train
