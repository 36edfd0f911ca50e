// Leaves that two workers compute: the bits stay, no false alarm; a flipped bit is found, in the leaves that
// were drawn and in no others, and the worker that made it is named.
#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>

#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/check/detection_for_test.h"
#include "ostro/fleet/workers/leaf_checks.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/numerics/threefry.h"

namespace ostro::fleet {
namespace {

// A bit that flips in a gradient, when this worker computes the leaf that has these tokens.
struct Flip {
  int64_t rank = -1;
  std::vector<int32_t> tokens;
  int64_t times = 1;
};

// An engine whose leaves are hit by one Flip.
class FlippingEngine final : public runtime::Engine {
 public:
  explicit FlippingEngine(std::unique_ptr<runtime::Engine> right = interp::make_interpreter())
      : right_(std::move(right)) {}
  void arm(Flip flip) {
    const std::scoped_lock lock(mutex_);
    flip_ = std::move(flip);
    happened_ = 0;
  }
  int64_t happened() const { return happened_; }

  const runtime::EngineInfo& info() const override { return right_->info(); }
  runtime::Memory& memory() override { return right_->memory(); }
  runtime::Inspector* inspector() override { return right_->inspector(); }
  Result<runtime::ExecutableInfo> estimate(const ir::Program& program,
                                           const runtime::CompileOptions& options) override {
    return right_->estimate(program, options);
  }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions& options) override {
    ASSIGN_OR_RETURN(std::unique_ptr<runtime::Executable> right, right_->compile(program, options));
    if (program.name != "leaf") return right;
    const auto is_gradient = [](const std::string& name) { return name.starts_with("gradient/"); };
    const auto first = std::find_if(program.result_names.begin(), program.result_names.end(), is_gradient);
    const auto at = static_cast<size_t>(first - program.result_names.begin());
    return std::unique_ptr<runtime::Executable>(std::make_unique<FaultyProgram>(
        std::move(right),
        [this, at](runtime::Executable& leaf, FaultyBuffers in,
                   const runtime::RunContext& context) -> Result<FaultyBuffers> {
          // Behind the parameters come tokens, targets and weights.
          const Buffer tokens = in[in.size() - 3];
          ASSIGN_OR_RETURN(FaultyBuffers out, leaf.run(std::move(in), context));
          const std::scoped_lock lock(mutex_);
          const auto row = tokens.as<int32_t>();
          if (context.collectives->rank() == flip_.rank && happened_ < flip_.times &&
              std::equal(row.begin(), row.end(), flip_.tokens.begin(), flip_.tokens.end())) {
            ++happened_;
            // A low bit of the largest value, so that it is no denormal.
            const auto values = out[at].mutable_as<float>();
            float& largest = *std::max_element(values.begin(), values.end());
            largest = std::bit_cast<float>(std::bit_cast<uint32_t>(largest) ^ 1u);
          }
          return out;
        }));
  }

 private:
  std::unique_ptr<runtime::Engine> right_;
  std::mutex mutex_;
  Flip flip_;
  int64_t happened_ = 0;
};

WorkerOptions checked(int64_t workers, const Setup& s, double rate, int64_t seed = 5) {
  WorkerOptions options = data_parallel(workers, s.config.numerics.cells);
  options.check = {rate, seed};
  return options;
}

std::vector<int32_t> tokens_of(const train::BatchArrays& batch, int64_t leaf) {
  const Buffer row = train::rows_of(batch, leaf, 1)[0];
  return {row.as<int32_t>().begin(), row.as<int32_t>().end()};
}

// One step from the given state, whose number decides what is drawn; "" when no worker disagrees.
std::string step_text(const Setup& s, train::StepRunner& runner, const train::State& from,
                      const train::BatchArrays& batch) {
  train::State state = from;
  const auto done =
      runner.run(state, batch, optim::step_scalars(s.config.optimizer, 0, s.config.trainer.num_train_steps));
  return done.ok() ? "" : done.error().message();
}

TEST_CASE("checks change no bit, and honest workers agree") {
  const Setup s = tiny(7, {{"embed", 4}}, true);
  const Trail alone = train_alone(s, 3);
  for (const int64_t workers : {1, 2, 3, 4})
    for (const double rate : {1.0, 0.3}) {
      const Trail t = train_on(s, checked(workers, s, rate), 3);
      CHECK_MESSAGE(same(t, alone), workers, " workers");
      int64_t leaves = 0;
      for (const train::StepResult& r : t.steps) leaves += r.checked_leaves;
      CHECK((rate == 1.0 ? leaves == 21 : leaves > 0 && leaves < 21));
    }
  WorkerOptions replicas = checked(4, s, 1);
  replicas.sharding.mesh.axes = {{"replica", 2}, {"data", 2}};
  CHECK(same(train_on(s, replicas, 2).state.params, train_alone(s, 2).state.params));
}

TEST_CASE("one worker checks itself whatever the mesh") {
  train::TrainConfig c = tiny_config(4, {{"embed", 4}});
  c.trainer.cross_check = 1;
  c.trainer.sharding.mesh.axes = {{"replica", 2}, {"data", -1}};
  c.trainer.sharding.parameter_axis_resources = {{"mlp", "replica"}};
  const Setup s = make_setup(std::move(c));
  const auto engine = interp::make_interpreter();
  const auto runner = make_runner(s.programs, *engine, "none", s.config, 1);
  REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
  const Trail t = train(s, **runner, *engine, 2);
  CHECK(same(t, train_alone(s, 2)));
  CHECK(t.steps[0].checked_leaves == 4);
}

TEST_CASE("rows are read of what may have to be computed, and no more") {
  RowShare share{.rows = 2, .workers = 3, .place = 1, .check = {0.5, 5}};
  for (int64_t step = 1; step <= 5; ++step) {
    std::vector<std::pair<int64_t, int64_t>> wanted;
    const std::vector<CheckedLeaf> drawn = checked_leaves(share.check, step, 9, 3);
    for (int64_t leaf = 0; leaf < 9; ++leaf) {
      const bool asked = std::any_of(drawn.begin(), drawn.end(),
                                     [&](const CheckedLeaf& c) { return c.leaf == leaf && c.may_run(1); });
      if ((leaf >= 3 && leaf < 6) || asked) wanted.emplace_back(2 * leaf, 2 * leaf + 2);
    }
    std::vector<std::pair<int64_t, int64_t>> got;
    for (const auto& [begin, end] : share.of(18, step))
      for (int64_t row = begin; row < end; row += 2) got.emplace_back(row, row + 2);
    CHECK(got == wanted);
  }
}

// Forty steps, in each of which a leaf of its owner is hit: it is found if, and only if, it was drawn.
TEST_CASE("planted bits are found as often as leaves are drawn, and their worker is named") {
  const Setup s = tiny(6, {{"embed", 4}});
  constexpr int64_t kSteps = 40, kLeaves = 6;
  constexpr double kRate = 0.4;
  FlippingEngine engine;
  auto runner = make_worker_runner(s.programs, engine, "none", checked(3, s, kRate)).value();
  train::State from = train::initial_state(s.programs, engine, 0).value();
  const numerics::Key faults = numerics::key_from_seed(11);
  int64_t found = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    from.step = step - 1;
    const train::BatchArrays batch = batch_of(kLeaves, step);
    const int64_t leaf = numerics::random_bits(faults, static_cast<uint64_t>(step)) % kLeaves;
    const int64_t owner = leaf / 2;
    engine.arm({owner, tokens_of(batch, leaf)});
    const std::string text = step_text(s, *runner, from, batch);
    CHECK(engine.happened() == 1);
    const bool drawn = CheckDraw{kRate, 5}.leaf(step, leaf);
    CHECK(text.empty() == !drawn);
    found += text.empty() ? 0 : 1;
    const std::string named =
        fmt::format("step {}: worker {} computes what the others do not: leaf {}", step, owner, leaf);
    CHECK_MESSAGE((!drawn || text.find(named) != std::string::npos), text);
  }
  const auto interval = binomial_interval(kSteps, kRate, 0.999);
  CHECK((interval.first <= found && found <= interval.second));
}

TEST_CASE("who computes a leaf again may be wrong, too; two workers decide by computing once more") {
  const Setup s = tiny(4, {{"embed", 4}});
  FlippingEngine engine;
  const train::State from = train::initial_state(s.programs, engine, 0).value();
  const train::BatchArrays batch = batch_of(4, 1);
  const auto text_of_step = [&](int64_t workers, int64_t rank, int64_t leaf, int64_t times, double rate) {
    auto runner = make_worker_runner(s.programs, engine, "none", checked(workers, s, rate)).value();
    engine.arm({rank, tokens_of(batch, leaf), times});
    return step_text(s, *runner, from, batch);
  };
  const Checkers by = checkers_of({1, 5}, 1, 0, 0, 4);
  CHECK(text_of_step(4, by.second, 0, 1, 1)
            .find(fmt::format("step 1: worker {} computes what the others do not: leaf 0", by.second)) !=
        std::string::npos);
  // The third one is not asked when two agree.
  CHECK(text_of_step(4, by.deciders[0], 0, 1, 1).empty());
  // Of two, the one whose fault passes is named; a fault that stays is found, and none decides.
  CHECK(text_of_step(2, 1, 0, 1, 1).find("worker 1 computes what the others do not") != std::string::npos);
  CHECK(text_of_step(2, 1, 0, 9, 1).find("no majority says who is right") != std::string::npos);
  // One worker differs from itself.
  CHECK(text_of_step(1, 0, 2, 1, 1).find("worker 0 computes what the others do not: leaf 2") !=
        std::string::npos);
  // Without checks the fault is not seen.
  CHECK(text_of_step(2, 1, 0, 9, 0).empty());
}

TEST_CASE("copies of cells that differ are found: a copy misses an update; unchecked it stays") {
  const Setup s = tiny(6, {{"embed", 4}});
  const auto outcome = [&](double rate, const std::string& fault) {
    WorkerOptions options = checked(3, s, rate);
    options.state_replicas = 1;
    FaultyEngine engine(interp::make_interpreter(), fault);
    auto runner = make_worker_runner(s.programs, engine, "none", options).value();
    train::State state = train::initial_state(s.programs, engine, 0).value();
    std::string text;
    for (int i = 0; i < FaultyEngine::kFaultyStep && text.empty(); ++i) {
      const auto done =
          runner->run(state, batch_of(6, i % 2),
                      optim::step_scalars(s.config.optimizer, state.step, s.config.trainer.num_train_steps));
      if (!done.ok()) text = done.error().message();
    }
    return text;
  };
  CHECK(outcome(1, "").empty());
  CHECK(outcome(0, "stale_replica").empty());
  CHECK(outcome(1, "stale_replica").find("step 6: copies differ, and no majority says which is right") !=
        std::string::npos);
}

// Workers of which one can have a bit flipped in what it keeps of a state; and one step of them.
class KeptBits {
 public:
  KeptBits(const Setup& s, const WorkerOptions& options, runtime::Engine& engine)
      : s_(s), plan_(make_worker_plan(s.programs, engine, "none", options).value()) {
    for (int64_t rank = 0; rank < plan_.mesh().size(); ++rank)
      workers_.push_back(std::make_unique<Worker>(plan_, rank));
  }
  const WorkerPlan& plan() const { return plan_; }
  void adopt(const train::State& state) {
    for (const auto& worker : workers_) check_ok(worker->adopt(state));
  }

  // In the cells of parameter k that `rank` owns, or in its copy of those of another worker.
  void flip(int64_t rank, size_t k, bool in_copy) {
    Worker& worker = *workers_[static_cast<size_t>(rank)];
    Cells own = worker.own(), copies = worker.mirror();
    Buffer& cells = in_copy ? copies.params[plan_.mirrored_place(k).value()] : own.params[k];
    cells = Buffer::copy_of(cells.shape(), cells.bytes().data());
    const auto values = cells.mutable_as<float>();
    float& largest = *std::max_element(values.begin(), values.end());
    largest = std::bit_cast<float>(std::bit_cast<uint32_t>(largest) ^ (1u << 20));
    worker.adopt_cells(std::move(own), std::move(copies), worker.step_number());
  }

  // What all workers found; nothing when they agree, and then result() is that of the step.
  std::optional<Disagreement> step(const train::BatchArrays& batch) {
    const std::vector<float> scalars =
        optim::step_scalars(s_.config.optimizer, 0, s_.config.trainer.num_train_steps);
    (void)dist::run_workers(plan_.mesh(), [&](runtime::Collectives& c) -> Status {
      auto done = workers_[static_cast<size_t>(c.rank())]->step(c, batch, scalars);
      if (c.rank() == 0 && done.ok()) result_ = *done;
      return done.ok() ? Status() : Status(done.error());
    });
    const std::optional<Disagreement> first = workers_[0]->checks().disagreement;
    for (const auto& worker : workers_) {
      const std::optional<Disagreement>& found = worker->checks().disagreement;
      REQUIRE(found.has_value() == first.has_value());
      if (found) CHECK((found->text == first->text && found->differ == first->differ));
    }
    return first;
  }
  const train::StepResult& result() const { return result_; }
  int64_t steps_done() const { return workers_[0]->step_number(); }

 private:
  const Setup& s_;
  const WorkerPlan plan_;
  std::vector<std::unique_ptr<Worker>> workers_;
  train::StepResult result_;
};

// The last parameter of which only one worker has each element; if `of_all`, one that all workers have. (A
// row of the first one, the table of tokens, may be in no batch.)
size_t parameter_of(const WorkerPlan& plan, bool of_all) {
  for (size_t k = plan.n; k-- > 0;)
    if (plan.gathered(k) != of_all) return k;
  FAIL("no such parameter");
  return 0;
}

TEST_CASE("slices: a bit of a copy changes no leaf and expels nobody; without checks it would") {
  const Setup s = tiny(8, {{"embed", 4}});
  const auto engine = interp::make_interpreter();
  train::State from = train::initial_state(s.programs, *engine, 0).value();
  const train::BatchArrays batch = batch_of(8, 1);
  const auto options = [&](double rate) {
    WorkerOptions o = checked(4, s, rate);
    o.state_replicas = 1;
    o.slices = {"a", "a", "b", "b"};
    return o;
  };
  KeptBits honest(s, options(0), *engine), flipped(s, options(0.3), *engine);
  honest.adopt(from);
  REQUIRE_FALSE(honest.step(batch));
  const int64_t holder = honest.plan().holders[0];
  const size_t k = parameter_of(honest.plan(), false);
  int64_t seen = 0;
  for (int64_t step = 1; step <= 60; ++step) {
    from.step = step - 1;
    flipped.adopt(from);
    flipped.flip(holder, k, true);
    const std::optional<Disagreement> found = flipped.step(batch);
    CHECK(found.has_value() == flipped.plan().options.check.array(step, static_cast<int64_t>(k)));
    if (!found) CHECK(same(flipped.result(), honest.result()));
    if (!found) continue;
    ++seen;
    CHECK(found->differ.empty());
    CHECK(found->state_lost);
    CHECK_MESSAGE(found->text.find("copies differ, and no majority") != std::string::npos, found->text);
  }
  CHECK(seen > 0);
  KeptBits unchecked(s, options(0), *engine);
  unchecked.adopt(from);
  unchecked.flip(holder, k, true);
  REQUIRE_FALSE(unchecked.step(batch));
  CHECK_FALSE(same(unchecked.result(), honest.result()));  // slices read copies, so the bit matters
}

TEST_CASE("who reads a part that differs from the others' is not taken for one who computes wrongly") {
  const Setup s = tiny(8, {{"embed", 4}});
  const auto engine = interp::make_interpreter();
  train::State from = train::initial_state(s.programs, *engine, 0).value();
  const train::BatchArrays batch = batch_of(8, 1);
  int64_t before_the_update = 0;
  for (const bool in_slices : {false, true}) {
    // Two workers own each part, one for {0, 1} and one for {2, 3}: each vote of leaves would name either.
    WorkerOptions options = checked(4, s, 0.25);
    options.sharding.mesh.axes = {{"replica", 2}, {"data", 2}};
    if (in_slices) options.slices = {"a", "a", "b", "b"};
    KeptBits flipped(s, options, *engine);
    for (int64_t step = 1; step <= 40; ++step) {
      from.step = step - 1;
      flipped.adopt(from);
      flipped.flip(step % 4, parameter_of(flipped.plan(), false), false);
      const std::optional<Disagreement> found = flipped.step(batch);
      if (!found) continue;
      CHECK_MESSAGE(found->differ.empty(), found->text);
      CHECK(found->state_lost);
      CHECK(found->text.find("computes what the others do not") == std::string::npos);
      before_the_update += flipped.steps_done() < step ? 1 : 0;
    }
  }
  CHECK(before_the_update > 10);
  // With a third owner the majority decides.
  WorkerOptions three = checked(3, s, 1);
  three.sharding.mesh.axes = {{"replica", 3}, {"data", 1}};
  KeptBits flipped(s, three, *engine);
  flipped.adopt(from);
  flipped.flip(1, 0, false);
  const std::optional<Disagreement> found = flipped.step(batch);
  REQUIRE(found);
  CHECK(found->differ == std::vector<int64_t>{1});
  CHECK_MESSAGE(found->text.find("worker 1 has what the others have not") != std::string::npos, found->text);
}

TEST_CASE("slices: who computes wrongly is named when the gradients are on their way already") {
  const Setup s = tiny(8, {{"embed", 4}});
  for (const bool compiled : {true, false}) {  // an engine that tells what it makes, and one that does not
    FlippingEngine engine(compiled ? compiled_engine(1) : interp::make_interpreter());
    train::State from = train::initial_state(s.programs, engine, 0).value();
    const train::BatchArrays batch = batch_of(8, 1);
    WorkerOptions options = checked(4, s, 1);
    options.slices = {"a", "a", "b", "b"};
    options.shares = LeafShares({1, 3, 1, 3});
    KeptBits workers(s, options, engine);
    REQUIRE(workers.plan().overlaps());
    const auto found_with = [&](Flip flip) {
      workers.adopt(from);
      engine.arm(std::move(flip));
      return workers.step(batch);
    };
    CHECK_FALSE(found_with({}));  // the control
    const train::StepResult honest = workers.result();
    for (const int64_t leaf : {0, 3, 7}) {  // the only one of worker 0, and the last of others
      const int64_t owner = leaf / 4 * 2 + (leaf % 4 > 0 ? 1 : 0);
      const std::optional<Disagreement> found = found_with({owner, tokens_of(batch, leaf)});
      REQUIRE(found);
      CHECK(found->differ == std::vector<int64_t>{owner});
      CHECK_MESSAGE(found->text.find(fmt::format("leaf {} has", leaf)) != std::string::npos, found->text);
      // Nothing of it is left: the step is done again.
      CHECK_FALSE(found_with({}));
      CHECK(same(workers.result(), honest));
    }
  }
}

}  // namespace
}  // namespace ostro::fleet
