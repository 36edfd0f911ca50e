// Random plans, run with every buffer apart and with the planned places: the same values.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "ostro/compile/plan/memory.h"

namespace ostro::compile {
namespace {

const ir::Shape kRow{ir::DType::f32, {{"x", 64}}};
const ir::Shape kPair{ir::DType::f32, {{"y", 2}, {"x", 64}}};

// Grows a plan over two parameters and three results; pairs are written whole or half by half.
class RandomPlan {
 public:
  explicit RandomPlan(uint32_t seed) : rng_(seed) {
    plan_.params = {kRow, kPair};
    plan_.results = {kRow, kRow, kPair};
    for (int64_t i = 0; i < 2; ++i) ready_.push_back(add(BufferKind::kParam, i, plan_.params[size_t(i)]));
    for (int64_t i = 0; i < 3; ++i) results_.push_back(add(BufferKind::kResult, i, plan_.results[size_t(i)]));
  }

  Plan grow() {
    for (int i = 0; i < 12; ++i) grow_step(-1);
    std::shuffle(results_.begin(), results_.end(), rng_);
    while (!results_.empty()) {
      const int32_t result = results_.back();
      results_.pop_back();
      for (int i = below(3); i > 0; --i) grow_step(-1);
      grow_step(result);
    }
    return plan_;
  }

 private:
  int below(int n) { return static_cast<int>(rng_() % static_cast<uint32_t>(n)); }

  int32_t add(BufferKind kind, int64_t index, const ir::Shape& shape) {
    plan_.buffers.push_back({kind, index, shape.bytes()});
    shapes_.push_back(shape);
    return static_cast<int32_t>(plan_.buffers.size()) - 1;
  }

  static View half(int32_t pair, int at) { return {pair, kRow, at * 64, {1}}; }

  // A parameter, or something of the latest buffers, seen as `shape`.
  View operand(const ir::Shape& shape, int32_t param = -1) {
    const auto n = static_cast<int>(ready_.size());
    const int32_t b = param >= 0 ? param : ready_[static_cast<size_t>(n - 1 - below(std::min(n, 6)))];
    const ir::Shape& own = shapes_[static_cast<size_t>(b)];
    View v = View::whole(b, shape);
    if (shape == kRow && own == kPair) v = below(4) == 0 ? View{b, kRow, 0, {2}} : half(b, below(2));
    if (shape == kPair && own == kRow) v.strides = {0, 1};
    if (below(8) == 0) v.offset += v.strides.back() * 63, v.strides.back() = -1;
    return v;
  }

  // A step that writes `result`, or a new temporary; -1.
  void grow_step(int32_t result) {
    Step step;
    ir::Shape shape = below(3) == 0 ? kPair : kRow;
    if (result >= 0) shape = shapes_[static_cast<size_t>(result)];
    step.pointwise = below(3) > 0;
    for (int i = 1 + below(3); i > 0; --i) step.in.push_back(operand(shape));
    std::vector<int32_t> made{result >= 0 ? result : add(BufferKind::kTemp, 0, shape)};
    step.out.push_back(View::whole(made[0], shape));
    if (below(5) == 0) {
      made.push_back(add(BufferKind::kTemp, 0, shape));
      step.out.push_back(View::whole(made[1], shape));
    }
    if (result < 0 && shape == kRow && below(2) == 0) {  // half of a pair; another step makes the rest
      const int32_t pair = add(BufferKind::kTemp, 0, kPair);
      step.out[0] = half(pair, 0);
      Step rest = step;
      rest.in = {operand(kRow), half(pair, 0)};
      rest.pointwise = below(2) == 0;
      rest.out = {half(pair, 1)};
      plan_.steps.push_back(step);
      plan_.steps.push_back(rest);
      made[0] = pair;
    } else {
      if (below(6) == 0) {
        Step epilogue;
        made.push_back(add(BufferKind::kTemp, 0, kRow));
        epilogue.in = {operand(kRow, below(4) - 2), step.out[0]};
        epilogue.out = {View::whole(made.back(), kRow)};
        step.epilogues.push_back(epilogue);
      }
      plan_.steps.push_back(step);
    }
    ready_.insert(ready_.end(), made.begin(), made.end());
  }

  std::mt19937 rng_;
  Plan plan_;
  std::vector<ir::Shape> shapes_;
  std::vector<int32_t> ready_, results_;
};

class Machine {
 public:
  Machine(const Plan& plan, bool planned) : plan_(plan), planned_(planned) {
    for (size_t b = 0; b < plan.buffers.size(); ++b)
      memory_[static_cast<int32_t>(b)].assign(static_cast<size_t>(plan.buffers[b].bytes / 4), 7);
    memory_[-1].assign(static_cast<size_t>(plan.arena_bytes / 4), 7);
    for (int32_t b = 0; b < 2; ++b)
      for (size_t i = 0; i < memory_[b].size(); ++i)
        memory_[b][i] = static_cast<uint32_t>(i * 31 + static_cast<size_t>(b));
    for (size_t s = 0; s < plan.steps.size(); ++s) run(plan.steps[s], static_cast<uint32_t>(s));
  }

  std::vector<std::vector<uint32_t>> results() {
    std::vector<std::vector<uint32_t>> values;
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].kind != BufferKind::kResult) continue;
      values.emplace_back();
      for (int64_t i = 0; i < plan_.buffers[b].bytes / 4; ++i)
        values.back().push_back(at(View::whole(static_cast<int32_t>(b), kRow), i));
    }
    return values;
  }

 private:
  uint32_t& at(const View& v, int64_t index) {
    const PlanBuffer& b = plan_.buffers[static_cast<size_t>(v.buffer)];
    int64_t place = v.offset;
    for (size_t k = v.strides.size(); k-- > 0; index /= v.shape.axes[k].size)
      place += (k == 0 ? index : index % v.shape.axes[k].size) * v.strides[k];
    int32_t memory = v.buffer;
    if (planned_ && b.kind == BufferKind::kTemp) memory = b.host, place += b.offset / 4;
    if (planned_ && b.kind == BufferKind::kResult && b.reuses_param >= 0)
      memory = static_cast<int32_t>(b.reuses_param);
    return memory_.at(memory).at(static_cast<size_t>(place));
  }

  static uint32_t mix(uint32_t a, uint32_t b) { return (a ^ b) * 2654435761u + (a >> 15); }

  void spoil(const Step& step) {
    for (const View& v : step.out)
      for (int64_t i = 0; i < v.shape.count(); ++i) at(v, i) = 99;
    for (const Step& epilogue : step.epilogues) spoil(epilogue);
  }

  // Element by element where the step says that it is; otherwise nothing of the results may hold an operand.
  void run(const Step& step, uint32_t salt) {
    const int64_t n = step.out[0].shape.count();
    for (const Step& epilogue : step.epilogues) spoil(epilogue);
    if (!step.pointwise) spoil(step);
    uint32_t all = salt;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t index = salt % 2 == 0 ? i : n - 1 - i;
      uint32_t value = step.pointwise ? salt : all;
      for (const View& v : step.in) value = mix(value, at(v, index % v.shape.count()));
      all = value;
      for (size_t k = 0; k < step.out.size() && step.pointwise; ++k)
        at(step.out[k], index) = value + static_cast<uint32_t>(k);
    }
    if (!step.pointwise)
      for (const View& v : step.out)
        for (int64_t i = 0; i < v.shape.count(); ++i) at(v, i) = mix(all, static_cast<uint32_t>(i));
    for (const Step& epilogue : step.epilogues) run(epilogue, salt + 1000);
  }

  const Plan& plan_;
  bool planned_;
  std::map<int32_t, std::vector<uint32_t>> memory_;  // by buffer; -1: the arena
};

TEST_CASE("random plans give the same values in the planned places") {
  int hosted = 0, given = 0, in_place = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Plan plan = RandomPlan(seed).grow();
    const auto expected = Machine(plan, false).results();
    plan_memory(plan);
    plan_donation(plan, {0, 1});
    plan_memory(plan, /*in_results=*/true);
    INFO("seed ", seed);
    REQUIRE(Machine(plan, true).results() == expected);
    for (const PlanBuffer& b : plan.buffers) {
      hosted += b.host >= 0 ? 1 : 0;
      given += b.reuses_param >= 0 ? 1 : 0;
    }
    // Steps that would not do it element by element.
    for (Step& step : plan.steps) step.pointwise = false;
    const auto apart = Machine(plan, false).results();
    in_place += Machine(plan, true).results() == apart ? 0 : 1;
  }
  CHECK(hosted > 300);
  CHECK(given > 100);
  CHECK(in_place > 150);
}

}  // namespace
}  // namespace ostro::compile
