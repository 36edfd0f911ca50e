// LogProbs: log-probabilities of tokens, of one row of logits: the loss of numerics.md N11, negated, to the
// bit. And the most likely tokens of the row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ostro::infer {

class LogProbs {
 public:
  // The whole row of the head, also ids that the tokenizer does not have. `vocab_leaves`: the parts in which
  // the model's programs sum over it (LeafTable::count). The row must outlive this.
  LogProbs(std::span<const float> logits, int64_t vocab_leaves);

  float of(int32_t token) const;
  // The `count` most likely of the first `tokens` ids, descending; of equal ones the lower id first.
  std::vector<int32_t> most_likely(int64_t count, int64_t tokens) const;

 private:
  std::span<const float> logits_;
  float lse_;
};

}  // namespace ostro::infer
