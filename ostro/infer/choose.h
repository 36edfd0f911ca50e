// choose: which token comes next, of one row of logits (docs/spec/numerics.md, N19). Every generator chooses
// with it, and so does the check of an answer.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ostro::infer {

struct ChoiceOptions {
  double temperature = 0;  // 0: always the most likely token; of equal ones the lower id
  uint64_t seed = 0;
  int64_t choice = 0;  // number of the answer, where one request gets several
  int64_t top_k = 0;   // only the k most likely; 0: all
  double top_p = 1;    // only the most likely that have this share of the probability together
  double min_p = 0;    // only those with at least this share of the most likely one's probability
  // Taken off the logit of a token that was made: once, and for each time.
  double presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<int32_t, double>> bias = {};  // added to the logit of an id
};

// One of the ids 0 to logits.size() - 1, which is at least 1. `made`: the tokens of the answer so far;
// `position`: the number of tokens before the chosen one, the prompt's included.
int32_t choose(std::span<const float> logits, const ChoiceOptions& options, std::span<const int32_t> made,
               int64_t position);

}  // namespace ostro::infer
