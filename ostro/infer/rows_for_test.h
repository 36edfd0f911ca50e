// losses: what a runner makes of a text, for tests.
#pragma once

#include <algorithm>
#include <vector>

#include "ostro/infer/log_probs.h"
#include "ostro/infer/row_runner.h"

namespace ostro::infer {

// The loss of every token but the first, given those before it. The first `prefill` tokens go through the
// model in one step, if it takes so many, the others one by one.
inline Result<std::vector<float>> losses(RowRunner& runner, const std::vector<int32_t>& tokens,
                                         int64_t prefill, int64_t vocab_leaves = 1) {
  std::vector<float> out;
  ASSIGN_OR_RETURN(const int64_t sequence, runner.open());
  const int64_t last = static_cast<int64_t>(tokens.size()) - 1;
  for (int64_t begin = 0; begin < last;) {
    const int64_t count =
        begin == 0 ? std::clamp<int64_t>(prefill, 1, std::min(last, runner.limits().rows)) : 1;
    const RowChunk chunk{
        sequence, std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(count)), count};
    const auto rows = runner.step({&chunk, 1});
    if (!rows.ok()) {
      runner.close(sequence);
      return rows.error();
    }
    const auto vocab = static_cast<size_t>(rows->shape().axes.back().size);
    for (int64_t i = 0; i < count; ++i)
      out.push_back(-LogProbs(rows->as<float>().subspan(static_cast<size_t>(i) * vocab, vocab), vocab_leaves)
                         .of(tokens[static_cast<size_t>(begin + i + 1)]));
    begin += count;
  }
  runner.close(sequence);
  return out;
}

}  // namespace ostro::infer
