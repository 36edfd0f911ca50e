// Which memory each step of a plan gets. The pointers are numbers: nothing is read or written.
#include "ostro/compile/plan/walk.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>

namespace ostro::compile {
namespace {

const ir::Shape kCell{ir::DType::f32, {{"a", 1}}};             // 4 bytes
const ir::Shape kThree{ir::DType::f32, {{"i", 3}, {"a", 1}}};  // 12 bytes

// Writes down what it is told: "0 1 -> 2" for a step with operands at 0 and 1 and its result at 2.
class Noting : public PlanWalk<Noting, int64_t> {
 public:
  Noting(const Plan& plan, std::string& notes) : PlanWalk(plan, constants(plan)), notes_(notes) {
    for (const Step& step : plan.steps) {
      regions_.emplace_back();
      for (const Plan& region : step.regions)
        regions_.back().push_back(std::make_unique<Noting>(region, notes));
    }
  }
  class LoopPlace {
   public:
    void set(int64_t) {}
  };
  Status run_step(size_t index, const int& truth) {
    truth_ = truth;
    const Step& step = plan().steps[index];
    if (!step.regions.empty()) return run_nested(index, truth);
    for (const View& v : step.in) notes_ += fmt::format("{} ", data(v));
    notes_ += "->";
    for (const View& v : step.out) notes_ += fmt::format(" {}", data(v));
    notes_ += go_on() ? " on\n" : "\n";
    return truth < 0 ? invalid_argument("a step fails") : Status();
  }
  Noting& region(size_t step, size_t number) { return *regions_[step][number]; }
  Status move(int64_t to, int64_t from, int64_t bytes) {
    notes_ += fmt::format("move {} to {}: {}\n", from, to, bytes);
    return Status();
  }
  Result<bool> is_true(int64_t at) const {
    notes_ += fmt::format("? {}\n", at);
    return truth_ != 0;
  }

 private:
  static std::vector<int64_t> constants(const Plan& plan) {
    return std::vector<int64_t>(plan.constants.size(), 7000);
  }
  std::string& notes_;
  int truth_ = 0;
  std::vector<std::vector<std::unique_ptr<Noting>>> regions_;
};

// Parameters lie at 1000, 1100, ..., results at 2000, 2100, ..., the arena at 5000.
std::string notes_of(const Plan& plan, int truth = 0, bool fails = false) {
  std::string notes;
  std::vector<int64_t> params, results;
  for (const PlanBuffer& b : plan.buffers) {
    if (b.kind == BufferKind::kParam) params.push_back(1000 + 100 * static_cast<int64_t>(params.size()));
    if (b.kind == BufferKind::kResult) results.push_back(2000 + 100 * static_cast<int64_t>(results.size()));
  }
  CHECK(Noting(plan, notes).run(params, results, 5000, truth).ok() == !fails);
  return notes;
}

Step op_of(std::vector<View> in, std::vector<View> out) {
  Step step;
  step.in = std::move(in);
  step.out = std::move(out);
  return step;
}

View part(int32_t buffer, const ir::Shape& shape) { return View::whole(buffer, shape); }

// A region of one step: parameters 0 .. params - 1 in, one result for each of `results` out.
Plan region_of(int32_t params, int32_t results) {
  Plan plan;
  Step step;
  for (int32_t i = 0; i < params; ++i) {
    plan.buffers.push_back({BufferKind::kParam, i, 4});
    step.in.push_back(part(i, kCell));
  }
  for (int32_t i = 0; i < results; ++i) {
    plan.buffers.push_back({BufferKind::kResult, i, 4});
    step.out.push_back(part(params + i, kCell));
  }
  plan.steps = {step};
  return plan;
}

// A carry and an array in, a carry and an array out. Slots at 5000 and 5064, the region's arena at 5128.
Plan loop_of(int64_t length, int64_t reverse) {
  Plan plan;
  plan.buffers = {{BufferKind::kParam, 0, 4},    {BufferKind::kParam, 1, 12},  {BufferKind::kResult, 0, 4},
                  {BufferKind::kResult, 1, 12},  {BufferKind::kTemp, 0, 4, 0}, {BufferKind::kTemp, 0, 4, 64},
                  {BufferKind::kTemp, 0, 0, 128}};
  Step step = op_of({part(0, kCell), part(1, kThree)}, {part(2, kCell), part(3, kThree)});
  step.kind = StepKind::kLoop;
  step.attrs = {{"length", length}, {"consts", int64_t{0}}, {"carries", int64_t{1}}, {"reverse", reverse}};
  step.slots = {4, 5};
  step.arena = 6;
  step.regions = {region_of(2, 2)};
  plan.steps = {step};
  return plan;
}

TEST_CASE("a loop's carry goes from its operand over two slots to its result, arrays move on") {
  CHECK(notes_of(loop_of(3, 0)) ==
        "1000 1100 -> 5000 2100\n5000 1104 -> 5064 2104\n5064 1108 -> 2000 2108\n");
  CHECK(notes_of(loop_of(3, 1)) ==
        "1000 1108 -> 5000 2108\n5000 1104 -> 5064 2104\n5064 1100 -> 2000 2100\n");
  CHECK(notes_of(loop_of(0, 0)) == "move 1000 to 2000: 4\n");
}

TEST_CASE("tiles advance, the last one by another region, and go on from the second tile") {
  Plan plan;
  plan.buffers = {{BufferKind::kParam, 0, 12}, {BufferKind::kResult, 0, 4}, {BufferKind::kTemp, 0, 0, 0}};
  Step step = op_of({part(0, kThree)}, {part(1, kCell)});
  step.kind = StepKind::kTiles;
  step.extent = 2;
  step.in_advance = {4};
  step.out_advance = {0};
  step.arena = 2;
  step.regions = {region_of(1, 1), region_of(1, 1)};
  step.regions[1].steps.push_back(step.regions[1].steps[0]);  // so that its run is told apart
  plan.steps = {step};
  CHECK(notes_of(plan) == "1000 -> 2000\n1004 -> 2000 on\n1008 -> 2000 on\n1008 -> 2000 on\n");
}

TEST_CASE("a branch runs its first region when the value is true, with the operands after it") {
  Plan plan;
  plan.buffers = {{BufferKind::kParam, 0, 1},
                  {BufferKind::kParam, 1, 4},
                  {BufferKind::kResult, 0, 4},
                  {BufferKind::kTemp, 0, 0, 0}};
  Step step = op_of({part(0, ir::scalar(ir::DType::boolean)), part(1, kCell)}, {part(2, kCell)});
  step.kind = StepKind::kBranch;
  step.arena = 3;
  step.regions = {region_of(1, 1), region_of(1, 1)};
  step.regions[1].steps.clear();
  plan.steps = {step};
  CHECK(notes_of(plan, 1) == "? 1000\n1100 -> 2000\n");
  CHECK(notes_of(plan, 0) == "? 1000\n");
}

TEST_CASE(
    "a temporary lies in the arena or in a result, a view begins at its offset, a failure ends the run") {
  Plan plan;
  plan.constants.resize(1);
  plan.buffers = {{BufferKind::kResult, 0, 64},
                  {BufferKind::kTemp, 0, 4, 32},
                  {BufferKind::kTemp, 0, 4, 16, 0},
                  {BufferKind::kConstant, 0, 4}};
  View second = part(0, kCell);
  second.offset = 1;
  plan.steps = {op_of({part(3, kCell)}, {part(1, kCell)}), op_of({part(1, kCell)}, {part(2, kCell), second})};
  CHECK(notes_of(plan) == "7000 -> 5032\n5032 -> 2016 2004\n");
  CHECK(notes_of(plan, -1, true) == "7000 -> 5032\n");
}

}  // namespace
}  // namespace ostro::compile
