// What goes between slices is on its way while leaves are computed, and no bit depends on when it arrives.
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/spmd/late_collectives_for_test.h"

namespace ostro::fleet {
namespace {

// `watched`: leaves are timed, and half of them are computed twice.
Setup overlap_setup(const char* precision, int64_t leaves, int64_t copies, bool watched = false) {
  train::TrainConfig c = tiny_config(leaves, {{"embed", 12}});
  train::llama(c).num_layers = 3;
  c.trainer.mp = precision;
  c.trainer.sharding.mesh.axes = {{"data", -1}};
  c.trainer.sharding.mesh.state_replicas = copies;
  if (watched) c.trainer.sharding.shares = train::LeafSharing::kMeasured, c.trainer.cross_check = 0.5;
  return make_setup(std::move(c));
}

// Brings an input when it is asked for, and notes what it is told.
class Lazy final : public runtime::RunWatch {
 public:
  struct Told {
    size_t result;
    int64_t begin;
    std::vector<std::byte> bytes;
  };
  Lazy(const std::vector<Buffer>& from, std::vector<Buffer>& to) : asked(from.size()), from_(from), to_(to) {}

  void begin(const std::vector<Buffer>& results) override { results_ = results; }
  Status before_read(size_t param, int64_t begin, int64_t end) override {
    asked[param] += end - begin;
    if (rows_first == 0 && from_[param].shape().has("layers"))
      rows_first = from_[param].shape().bytes() / (end - begin);
    std::memcpy(to_[param].mutable_bytes().data() + begin, from_[param].bytes().data() + begin,
                static_cast<size_t>(end - begin));
    return Status();
  }
  Status made(size_t result, int64_t begin, int64_t end) override {
    const auto bytes = results_[result].bytes();
    told.push_back({result, begin, {bytes.begin() + begin, bytes.begin() + end}});
    return Status();
  }

  std::vector<int64_t> asked;  // bytes, by input
  int64_t rows_first = 0;      // of how many such questions the first for a stacked parameter is one
  std::vector<Told> told;

 private:
  const std::vector<Buffer>& from_;
  std::vector<Buffer>& to_;
  std::vector<Buffer> results_;
};

TEST_CASE(
    "overlap: a leaf asks for its parameters layer by layer, and tells each gradient when it is final") {
  const auto engine = compiled_engine(1);
  for (const char* precision : {"f32", "p=f32,c=bfloat16"}) {
    const Setup s = overlap_setup(precision, 1, 0);
    auto leaf = engine->compile(s.programs.leaf, train::leaf_options("none")).value();
    std::vector<Buffer> inputs = train::initial_state(s.programs, *engine, 0).value().params;
    const size_t parameters = inputs.size();
    for (const Buffer& rows : batch_of(1, 0)) inputs.push_back(rows);
    const auto expected = leaf->run(inputs).value();
    std::vector<Buffer> late;
    for (const Buffer& b : inputs) {
      late.push_back(Buffer::empty(b.shape()));
      std::fill(late.back().mutable_bytes().begin(), late.back().mutable_bytes().end(), std::byte{0x5a});
    }
    Lazy watch(inputs, late);
    const auto got = leaf->run(late, {nullptr, &watch}).value();
    CHECK(same(got, expected));
    for (size_t k = 0; k < parameters; ++k) CHECK(watch.asked[k] >= inputs[k].shape().bytes());
    const train::Signatures at = train::signatures_of(s.programs);
    std::vector<int64_t> rows(expected.size(), 0);
    for (const Lazy::Told& told : watch.told) {
      const auto bytes = expected[told.result].bytes();
      CHECK(std::memcmp(bytes.data() + told.begin, told.bytes.data(), told.bytes.size()) == 0);
      ++rows[told.result];
    }
    size_t stacked = 0;
    for (const size_t result : at.leaf_results.gradients) {
      const bool layers = expected[result].shape().has("layers");
      CHECK(rows[result] == (layers ? 3 : 1));
      stacked += layers ? 1 : 0;
    }
    CHECK(stacked >= 4);
    CHECK(watch.rows_first == 3);
    // The control: without its parameters a leaf gives other numbers.
    for (Buffer& b : late) std::fill(b.mutable_bytes().begin(), b.mutable_bytes().end(), std::byte{0x5a});
    for (size_t k = parameters; k < late.size(); ++k) late[k] = inputs[k];
    CHECK(!same(leaf->run(late).value(), expected));
  }
}

// Calls come at drawn times, so what workers send arrives in another order in every run.
class Drawn final : public runtime::ForwardedCollectives {
 public:
  Drawn(runtime::Collectives& group, uint32_t seed) : ForwardedCollectives(group), rng_(seed) {}
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    pause();
    return ForwardedCollectives::start(peers, send, receive);
  }
  Status wait(int64_t ticket) override {
    pause();
    return ForwardedCollectives::wait(ticket);
  }

 private:
  // Without the scheduler: what yields on a busy machine waits for all others.
  void pause() {
    for (uint32_t n = rng_() % 20000; n > 0; --n) (void)spun_.fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic<uint32_t> spun_ = 0;
  std::mt19937 rng_;
};

struct Outcome {
  std::vector<train::StepResult> steps;
  size_t most = 0;  // exchanges on their way at a time, at one worker
};

// Of workers in slices of these sizes.
WorkerPlan plan_of(const Setup& s, runtime::Engine& engine, const std::vector<int64_t>& sizes,
                   const LeafShares& shares = {}) {
  std::vector<std::string> slices;
  for (size_t i = 0; i < sizes.size(); ++i)
    slices.insert(slices.end(), static_cast<size_t>(sizes[i]), std::to_string(i));
  const auto workers = static_cast<int64_t>(slices.size());
  WorkerOptions options = worker_options(s.config, workers, slices).value();
  options.shares = shares;
  return make_worker_plan(s.programs, engine, "none", options).value();
}

// One worker has all leaves but one for each of the others.
LeafShares unequal_shares(int64_t leaves, const std::vector<int64_t>& sizes, uint32_t seed) {
  std::vector<int64_t> counts(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})),
                              1);
  counts[seed % counts.size()] += leaves - std::ssize(counts);
  return LeafShares(counts);
}

// Two steps of workers in slices of these sizes.
Outcome run_slices(const Setup& s, runtime::Engine& engine, const std::vector<int64_t>& sizes,
                   spmd::Delivery delivery, uint32_t seed, const LeafShares& shares = {}) {
  const WorkerPlan plan = plan_of(s, engine, sizes, shares);
  CHECK(plan.overlaps());
  const int64_t workers = plan.mesh().size();
  std::vector<std::unique_ptr<Worker>> all;
  const train::State state = train::initial_state(s.programs, engine, s.config.trainer.seed).value();
  for (int64_t rank = 0; rank < workers; ++rank) {
    all.push_back(std::make_unique<Worker>(plan, rank));
    check_ok(all.back()->adopt(state));
  }
  Outcome out;
  for (int i = 0; i < 2; ++i) {
    const auto scalars = optim::step_scalars(s.config.optimizer, i, s.config.trainer.num_train_steps);
    const Status status = dist::run_workers(plan.mesh(), [&](runtime::Collectives& c) -> Status {
      const auto rank = static_cast<size_t>(c.rank());
      Drawn drawn(c, seed + 100 * static_cast<uint32_t>(i) + static_cast<uint32_t>(rank));
      spmd::Late late(drawn, delivery);
      ASSIGN_OR_RETURN(
          train::StepResult result,
          all[rank]->step(late, batch_of(s.config.trainer.train_batch_size.at(0), i % 2), scalars));
      if (rank == 0) out.steps.push_back(std::move(result)), out.most = std::max(out.most, late.most);
      return Status();
    });
    REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
  }
  return out;
}

TEST_CASE("overlap: messages that arrive late and in drawn orders give the bits of one worker") {
  const auto engine = compiled_engine(1);
  uint32_t seed = 1;
  for (const char* precision : {"f32", "p=f32,c=bfloat16"})
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1, 1}, {2, 2}, {2, 1, 1}})
      for (const int64_t copies : {0, 1}) {
        const bool watched = copies == 1;
        const Setup s = overlap_setup(precision, 5, copies, watched);
        const Trail alone = train_alone(s, 2);
        const LeafShares shares = watched ? unequal_shares(5, sizes, ++seed) : LeafShares();
        const Outcome got = run_slices(s, *engine, sizes, spmd::Delivery::kLate, ++seed, shares);
        // More than an exchange for each layer at a time.
        CHECK(got.most > 3);
        int64_t checked = 0;
        for (size_t i = 0; i < 2; ++i) {
          CHECK(same(got.steps[i], alone.steps[i]));
          checked += got.steps[i].checked_leaves;
        }
        CHECK((checked > 0) == watched);
      }
  // The control: what is never delivered is seen.
  const Setup s = overlap_setup("f32", 2, 0);
  CHECK(
      !same(run_slices(s, *engine, {1, 1}, spmd::Delivery::kNever, 1).steps[0], train_alone(s, 1).steps[0]));
}

// The exchange with this number, from 1, is not begun: something else went wrong in this worker.
class Failing final : public runtime::ForwardedCollectives {
 public:
  Failing(runtime::Collectives& group, int number) : ForwardedCollectives(group), left_(number) {}
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    if (--left_ == 0) return io_error("no room");
    return ForwardedCollectives::start(peers, send, receive);
  }

 private:
  int left_;
};

TEST_CASE("overlap: a worker that fails in mid-step is waited for by nobody, and waits for nobody") {
  const auto engine = compiled_engine(1);
  const Setup s = overlap_setup("f32", 3, 0);
  const WorkerPlan plan = plan_of(s, *engine, {2, 1});
  const train::State state = train::initial_state(s.programs, *engine, 0).value();
  for (const int number : {0, 1, 4, 9, 14, 19}) {  // 0: the control, which does not fail
    const Status status = dist::run_workers(plan.mesh(), [&](runtime::Collectives& c) -> Status {
      Worker worker(plan, c.rank());
      RETURN_IF_ERROR(worker.adopt(state));
      Failing failing(c, c.rank() == 1 ? number : 0);
      const auto done =
          worker.step(failing, batch_of(3, 0),
                      optim::step_scalars(s.config.optimizer, 0, s.config.trainer.num_train_steps));
      return done.ok() ? Status() : Status(done.error());
    });
    CHECK(status.ok() == (number == 0));
    if (!status.ok()) CHECK(status.error().message().find("no room") != std::string::npos);
  }
}

// A worker whose link is slow: it waits so much longer for each exchange than for its messages.
class SlowLink final : public runtime::ForwardedCollectives {
 public:
  SlowLink(runtime::Collectives& group, std::chrono::milliseconds longer)
      : ForwardedCollectives(group), longer_(longer) {}
  Status wait(int64_t ticket) override {
    std::this_thread::sleep_for(longer_);
    waited += std::chrono::duration<double>(longer_).count();
    return ForwardedCollectives::wait(ticket);
  }
  double waited = 0;  // seconds, at least

 private:
  const std::chrono::milliseconds longer_;
};

TEST_CASE("overlap: a slow link makes no leaf slow, neither of its worker nor of those that wait for it") {
  const auto engine = compiled_engine(1);
  const Setup s = overlap_setup("f32", 2, 0, true);
  const WorkerPlan plan = plan_of(s, *engine, {1, 1});
  const train::State state = train::initial_state(s.programs, *engine, 0).value();
  // The least time of a leaf of the slow worker, and of the other, and the least that the slow one waited.
  struct Times {
    double slow = 1e9, other = 1e9, waited = 1e9;
  };
  const auto run = [&](int steps, std::chrono::milliseconds longer) {
    std::vector<std::unique_ptr<Worker>> all;
    for (int64_t rank = 0; rank < 2; ++rank) {
      all.push_back(std::make_unique<Worker>(plan, rank));
      check_ok(all.back()->adopt(state));
    }
    Times least;
    for (int i = 0; i < steps; ++i)
      check_ok(dist::run_workers(plan.mesh(), [&](runtime::Collectives& c) -> Status {
        SlowLink link(c, longer);
        runtime::Collectives& used = c.rank() == 0 ? static_cast<runtime::Collectives&>(link) : c;
        Worker& worker = *all[static_cast<size_t>(c.rank())];
        RETURN_IF_ERROR(
            worker.step(used, batch_of(2, i % 2), optim::step_scalars(s.config.optimizer, i, 20)));
        if (c.rank() > 0) return Status();
        const std::vector<double>& times = worker.leaf_times().all;
        if (times.size() != 2) return invalid_argument("no times of leaves");
        CHECK((times[0] > 0 && times[1] > 0));
        least.slow = std::min(least.slow, times[0]), least.other = std::min(least.other, times[1]);
        least.waited = std::min(least.waited, link.waited);
        return Status();
      }));
    return least;
  };
  // Longer together than a leaf takes where the machine is busy, or every access of memory is watched. The
  // least of four steps counts, since leaves may be interrupted.
  const Times times = run(4, std::chrono::milliseconds(20));
  CHECK(times.waited > 0.75);
  CHECK_MESSAGE(times.slow < times.waited / 4, times.slow, " s a leaf, and ", times.waited, " s of waiting");
  CHECK_MESSAGE(times.other < times.waited / 4, times.other, " s a leaf, and ", times.waited,
                " s of waiting");
  // The control: a worker that computes slowly is slow.
  ::setenv("OSTRO_SIM_SLOW", "1:100ms", 1);
  const Times computing = run(1, std::chrono::milliseconds(1));
  ::unsetenv("OSTRO_SIM_SLOW");
  CHECK(computing.other == doctest::Approx(0.1));
}

}  // namespace
}  // namespace ostro::fleet
