// The rows of a step follow the time that steps take.
#include "ostro/infer/step_budget.h"

#include <doctest/doctest.h>

namespace ostro::infer {
namespace {

// Steps of as many rows as may be, at these prices. Returns the last number of rows.
int64_t settled(StepBudget& budget, double seconds_per_step, double seconds_per_row, int steps) {
  int64_t rows = 0;
  for (int i = 0; i < steps; ++i) {
    rows = budget.rows();
    budget.measured(rows, seconds_per_step + seconds_per_row * static_cast<double>(rows));
  }
  return rows;
}

TEST_CASE("as many rows as keep a step under its time, at least 16, at most all") {
  StepBudget fast(0.05, 512), middle(0.05, 512), slow(0.05, 512);
  CHECK(fast.rows() == 16);
  CHECK(settled(fast, 0.001, 1e-6, 10) == 512);
  CHECK(settled(middle, 0.01, 3e-4, 10) == 128);  // 256 would take 87 ms
  CHECK(settled(slow, 0.1, 0.06, 10) == 64);      // four times as long as 16 rows; 128 would take 7.8 s
}

TEST_CASE("where no answer waits for a token, steps are longer") {
  StepBudget slow(0.05, 512);
  int64_t rows = 0;
  for (int i = 0; i < 20; ++i) {
    rows = slow.rows_alone();
    slow.measured(rows, 0.1 + 0.01 * static_cast<double>(rows));
  }
  CHECK(rows == 128);        // 256 would take 2.7 s
  CHECK(slow.rows() == 64);  // 128 would take 1.4 s, 16 take 0.3 s
}

TEST_CASE("a step is cut at a power of two where padding would cost more than another step") {
  StepBudget budget(0.05, 512);
  const auto price = [&](int64_t rows) {  // the weights cost what 20 rows do
    budget.measured(rows, 0.02 + 0.001 * static_cast<double>(rows));
  };
  CHECK(budget.less_padding(130, 0) == 130);  // nothing is known
  for (int64_t rows = 16; rows <= 512; rows *= 2) price(rows);
  CHECK(budget.less_padding(130, 0) == 130);  // nor of two rows
  price(1);
  CHECK(budget.less_padding(130, 0) == 128);  // 276 ms, against 148 and, as of one row, 21
  CHECK(budget.less_padding(192, 0) == 128);  // 148 and 84
  CHECK(budget.less_padding(193, 0) == 193);  // 148 and 148
  CHECK(budget.less_padding(128, 0) == 128);
  CHECK(budget.less_padding(3, 1) == 3);        // all as dear as one row so far
  CHECK(budget.less_padding(300, 100) == 300);  // 276 and, with the 100 again, 276, against 532
  CHECK(budget.less_padding(130, 128) == 130);  // the answers' tokens alone fill the smaller step
}

TEST_CASE("a machine that was busy is tried again") {
  StepBudget budget(0.05, 512);
  CHECK(settled(budget, 0.5, 0.05, 20) == 64);     // 3.7 s; 128 would take 6.9 s, 16 take 1.3 s
  CHECK(settled(budget, 0.01, 1e-3, 50) == 64);    // what 16 took is no measure any more
  CHECK(settled(budget, 0.01, 1e-3, 700) == 256);  // 128 took 6.9 s, which is forgotten
}

}  // namespace
}  // namespace ostro::infer
