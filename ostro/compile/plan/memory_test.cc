// Where temporaries lie: in the arena by lifetime, and in results that nothing has written yet.
#include "ostro/compile/plan/memory.h"

#include <doctest/doctest.h>

namespace ostro::compile {
namespace {

// x -> a -> b -> result 0, and b -> result 1: one step each, all of 64 floats.
Plan chain() {
  const ir::Shape shape{ir::DType::f32, {{"x", 64}}};
  Plan plan;
  plan.params = {shape};
  plan.results = {shape, shape};
  for (const BufferKind kind :
       {BufferKind::kParam, BufferKind::kTemp, BufferKind::kTemp, BufferKind::kResult})
    plan.buffers.push_back({kind, 0, shape.bytes()});
  plan.buffers.push_back({BufferKind::kResult, 1, shape.bytes()});
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}, {2, 4}}) {
    Step step;
    step.in = {View::whole(from, shape)};
    step.out = {View::whole(to, shape)};
    plan.steps.push_back(step);
  }
  return plan;
}

TEST_CASE("temporaries lie in results that nothing has written yet") {
  Plan plan = chain();
  plan_memory(plan);
  CHECK(plan.arena_bytes == 512);
  CHECK(plan.buffers[1].host == -1);
  // a ends before step 2, which writes result 0; b ends at step 3, the first of result 1, which reads it.
  plan_memory(plan, true);
  CHECK(plan.buffers[1].host == 3);
  CHECK(plan.buffers[2].host == -1);
  CHECK(plan.arena_bytes == 256);
  // A result in a parameter's memory holds nothing else.
  plan.buffers[3].reuses_param = 0;
  plan_memory(plan, true);
  CHECK(plan.buffers[1].host == 4);
}

TEST_CASE("a pointwise step writes over an operand that nothing reads later") {
  Plan plan = chain();
  plan.steps[1].pointwise = true;
  plan_memory(plan);
  CHECK(plan.arena_bytes == 256);
  // Not where it reads the operand at another place.
  plan.steps[1].in[0].offset = 1;
  plan_memory(plan);
  CHECK(plan.arena_bytes == 512);
}

TEST_CASE("a step may overwrite its first operand, and no other") {
  Plan plan = chain();
  plan.steps[1].overwrites = true;
  plan_memory(plan);
  CHECK(plan.arena_bytes == 256);
  CHECK(plan.buffers[2].offset == plan.buffers[1].offset);
  // Not where a later step reads the operand, or where it is the second.
  plan.steps[3].in[0] = plan.steps[1].in[0];
  plan_memory(plan);
  CHECK(plan.arena_bytes == 512);
  plan = chain();
  plan.steps[1].overwrites = true;
  plan.steps[1].in.insert(plan.steps[1].in.begin(), View::whole(0, plan.params[0]));
  plan_memory(plan);
  CHECK(plan.arena_bytes == 512);
}

TEST_CASE("a result is written over a parameter that was given away") {
  const ir::Shape shape{ir::DType::f32, {{"x", 64}}};
  Plan plan;
  plan.params = plan.results = {shape};
  plan.buffers = {{BufferKind::kParam, 0, shape.bytes()}, {BufferKind::kResult, 0, shape.bytes()}};
  Step step;
  step.in = {View::whole(0, shape)};
  step.out = {View::whole(1, shape)};
  const auto reused = [&](bool overwrites, const std::vector<View>& more) {
    Plan p = plan;
    p.steps = {step};
    p.steps[0].overwrites = overwrites;
    p.steps[0].in.insert(p.steps[0].in.end(), more.begin(), more.end());
    plan_donation(p, {0});
    return p.buffers[1].reuses_param;
  };
  CHECK(reused(true, {}) == 0);
  CHECK(reused(false, {}) == -1);
  CHECK(reused(true, {View::whole(0, shape)}) == -1);  // what is written is read from there, too
}

TEST_CASE("a parameter that was given away lives until an epilogue has read it") {
  Plan plan = chain();
  plan_donation(plan, {0});
  CHECK(plan.buffers[3].reuses_param == 0);
  plan = chain();
  Step epilogue;
  epilogue.in = {View::whole(0, plan.params[0])};
  plan.steps[3].epilogues = {epilogue};
  plan_donation(plan, {0});
  CHECK(plan.buffers[3].reuses_param == -1);
  CHECK(plan.buffers[4].reuses_param == -1);
}

}  // namespace
}  // namespace ostro::compile
