// check_code: whether losses are the lengths of a code: the loss of a target depends on nothing behind it,
// and exp(-loss) over all targets sums to 1 (docs/reference/formats/board.md, "Whether a score is a code").
//
// The scorer is asked about changed windows, at places that are drawn. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/board/evaluation.h"
#include "ostro/board/refusal.h"

namespace ostro::board {

// The losses f32 [rows, length] of `rows` rows of tokens and targets, each [rows, length]. Errors: those of
// running a program.
using Scorer = std::function<Result<std::vector<float>>(std::span<const int32_t> tokens,
                                                        std::span<const int32_t> targets)>;

struct CodeCheck {
  int64_t targets = 0;  // of the evaluation
  // Places whose later tokens were changed, and places where the losses of all targets were summed.
  int64_t cuts = 0, sums = 0;
  double loss = 0;  // nats, of all targets; the sum of the losses in f64
  double least_sum = 1, most_sum = 1;
  double allowed = 0;              // by which a sum may differ from 1: the largest that was applied
  std::optional<Refusal> refusal;  // the first rule that a place breaks
};

struct CodeOptions {
  int64_t vocab = 0;  // targets are 0 to vocab - 1
  // Places that are drawn of each kind; all, where there are no more.
  int64_t cuts = 0, sums = 0;
  std::string challenge;  // decides which
};

// Scores the windows, and checks the scorer: every loss against 0, and the rest at drawn places.
Result<CodeCheck> check_code(const Scorer& scorer, const Windows& windows, const CodeOptions& options);

// The most by which rounding in f32 lets a sum over `vocab` targets differ from 1, whose losses have the mean
// `entropy` (nats) under exp(-loss).
double allowed_difference(int64_t vocab, double entropy);

}  // namespace ostro::board
