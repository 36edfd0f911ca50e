// Which bytes of its parameters a step reads, and which of its results are final after it.
#include "ostro/compile/plan/watched_steps.h"

#include <doctest/doctest.h>

namespace ostro::compile {
namespace {

const ir::Shape kOneRow{ir::DType::f32, {{"a", 1}}};               // 4 bytes
const ir::Shape kThreeRows{ir::DType::f32, {{"i", 3}, {"a", 1}}};  // 12 bytes

Step watched_step(StepKind kind, std::vector<View> in, std::vector<View> out) {
  Step step;
  step.kind = kind;
  step.in = std::move(in), step.out = std::move(out);
  return step;
}

// Buffers: 0 a parameter of three rows, 1 a parameter of one, 2 a result of three rows, 3 a result of one, 4
// a temporary.
Plan watched_plan(std::vector<Step> steps) {
  Plan plan;
  plan.buffers = {{.kind = BufferKind::kParam, .index = 0, .bytes = 12},
                  {.kind = BufferKind::kParam, .index = 1, .bytes = 4},
                  {.kind = BufferKind::kResult, .index = 0, .bytes = 12},
                  {.kind = BufferKind::kResult, .index = 1, .bytes = 4},
                  {.kind = BufferKind::kTemp, .bytes = 4}};
  plan.steps = std::move(steps);
  return plan;
}

// A loop of three iterations with one carry.
Step watched_loop(std::vector<View> in, std::vector<View> out) {
  Step step = watched_step(StepKind::kLoop, std::move(in), std::move(out));
  step.attrs = {{"length", int64_t{3}}, {"consts", int64_t{0}}, {"carries", int64_t{1}}};
  return step;
}

TEST_CASE("watched steps: a loop reads and makes a stacked array by iteration, a carry at once") {
  const auto seen =
      watched_steps(watched_plan({watched_loop({View::whole(1, kOneRow), View::whole(0, kThreeRows)},
                                               {View::whole(3, kOneRow), View::whole(2, kThreeRows)})}));
  REQUIRE(seen[0].reads.size() == 2);
  CHECK(seen[0].reads[0].index == 0);
  CHECK(seen[0].reads[0].each == 4);
  CHECK(seen[0].reads[1].index == 1);
  CHECK(seen[0].reads[1].each == 0);
  REQUIRE(seen[0].makes.size() == 2);
  CHECK(seen[0].makes[0].each == 4);
  CHECK(seen[0].makes[0].bytes == 12);
  CHECK(seen[0].makes[1].each == 0);
}

TEST_CASE("watched steps: a result that is written again later is final only then, and all at once") {
  const View carry = View::whole(4, kOneRow), rows = View::whole(2, kThreeRows),
             row = View::whole(2, kOneRow);
  const auto twice = watched_steps(
      watched_plan({watched_loop({carry}, {carry, rows}), watched_step(StepKind::kCopy, {carry}, {row})}));
  CHECK(twice[0].makes.empty());
  REQUIRE(twice[1].makes.size() == 1);
  CHECK(twice[1].makes[0].each == 0);
  // Two parts of one loop in one array, and an array that the loop reads as well.
  CHECK(watched_steps(watched_plan({watched_loop({carry}, {carry, rows, rows})}))[0].makes[0].each == 0);
  CHECK(watched_steps(watched_plan({watched_loop({carry, rows}, {carry, rows})}))[0].makes[0].each == 0);
  View second = View::whole(2, kOneRow);
  second.offset = 1;
  CHECK(watched_steps(watched_plan({watched_loop({carry}, {carry, second})}))[0].makes[0].each == 0);
}

}  // namespace
}  // namespace ostro::compile
