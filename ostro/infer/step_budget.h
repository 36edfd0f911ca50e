// StepBudget: how many rows a step may have, by the time that steps took. It decides only when an answer
// comes, never what it is.
#pragma once

#include <array>
#include <cstdint>

namespace ostro::infer {

// Steps are padded to powers of two, so a time is kept for each of them. Not thread-safe.
class StepBudget {
 public:
  // A step is to take at most `seconds`, if it has more rows than it must have; `most_rows` of any step.
  StepBudget(double seconds, int64_t most_rows) : seconds_(seconds), most_rows_(most_rows) {}

  // Rows of the next step: as many as keep it under the time, so far as it is known, and one power of two
  // more than what was measured. At least 16: a step of fewer costs about as much, since the weights are
  // read. Where 16 rows take long, the time is kLeastSteps times as long as theirs: pieces of a prompt that
  // are small beside the price of a step hold up its answers for several times as long in all.
  int64_t rows() const;
  // Rows of a step in which no answer waits for its next token: it may take kAlone times as long. Then the
  // weights, which a step reads and packs once, cost little beside what is done with them.
  int64_t rows_alone() const { return rows_within(kAlone * seconds_); }
  // How many of `rows` the next step takes: all, or the largest power of two below them, where this step and
  // one for the rest take less time than one in which much is padding. `again` of them, each an answer's next
  // token, come back in the step for the rest, which is never less than they are.
  int64_t less_padding(int64_t rows, int64_t again) const;
  void measured(int64_t rows, double seconds);

 private:
  static constexpr double kLeastSteps = 4, kAlone = 40;

  int64_t rows_within(double seconds) const;
  // What a step of so many rows took; 0: not known. A size below 16 that was never seen is taken to cost what
  // a smaller one does, until it is tried.
  double time_of(int64_t rows) const;

  double seconds_;
  int64_t most_rows_;
  std::array<double, 32> times_ = {};  // of 2^i rows; 0: not known
};

}  // namespace ostro::infer
