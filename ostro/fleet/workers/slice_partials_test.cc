// numerics.slice_partials: another arithmetic, which any workers in any slices have, and half of the bytes of
// partials where slices are its groups.
#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

using train::ExchangeSchedule;

train::TrainConfig config_of(int64_t groups, int64_t leaves, ExchangeSchedule exchange, bool overlap) {
  train::TrainConfig c = tiny_config(leaves, {{"embed", 12}});
  c.numerics.slice_partials = groups;
  c.chain.leaf_gradients = true;
  c.trainer.sharding.mesh.axes = {{"replica", exchange == ExchangeSchedule::kLayer ? 2 : 1}, {"data", -1}};
  c.trainer.sharding.mesh.exchange = exchange;
  c.trainer.sharding.mesh.slice_overlap = overlap;
  c.trainer.sharding.mesh.state_replicas = 0;
  return c;
}

Setup setup_of(int64_t groups, int64_t leaves, ExchangeSchedule exchange, bool overlap) {
  return make_setup(config_of(groups, leaves, exchange, overlap));
}

int64_t partials_sent(const train::StepRunner& runner, int64_t leaves) {
  int64_t bytes = 0;
  for (const train::WorkerLoad& load : runner.loads(leaves))
    for (const train::Sent& sent : load.sent)
      if (sent.what.starts_with("sums of gradients to other slices")) bytes += sent.between;
  return bytes;
}

TEST_CASE(
    "slice partials: one worker, and workers in slices that are its groups or not, have the same bits") {
  const auto engine = compiled_engine(1);
  const auto alone = [&](const Setup& s) {
    return train(
        s, *train::make_step_runner(s.programs, *engine, "none", s.config.numerics.slice_partials).value(),
        *engine, 2);
  };
  for (const int64_t leaves : {4, 7}) {
    const Setup exact = setup_of(0, leaves, ExchangeSchedule::kStep, true);
    const Setup two = setup_of(2, leaves, ExchangeSchedule::kStep, true);
    const Trail expected = alone(two), unrounded = alone(exact);
    CHECK(!same(expected, unrounded));
    // Fingerprints are those of the leaves themselves, which begin with the same parameters.
    REQUIRE(!expected.steps[0].leaves[0].gradient_prints.empty());
    for (size_t i = 0; i < static_cast<size_t>(leaves); ++i)
      CHECK(expected.steps[0].leaves[i].gradient_prints == unrounded.steps[0].leaves[i].gradient_prints);
    CHECK(!same(expected, alone(setup_of(3, leaves, ExchangeSchedule::kStep, true))));
    for (const ExchangeSchedule exchange : {ExchangeSchedule::kStep, ExchangeSchedule::kLayer})
      for (const bool overlap : {true, false})
        for (const std::vector<std::string>& slices : std::vector<std::vector<std::string>>{
                 {"a", "b"}, {"a", "a", "b", "b"}, {"a", "a", "a", "b"}, {"a", "b", "c", "c"}}) {
          const Setup s = setup_of(2, leaves, exchange, overlap);
          const auto workers = static_cast<int64_t>(slices.size());
          auto runner = make_worker_runner(s.programs, *engine, "none",
                                           worker_options(s.config, workers, slices).value())
                            .value();
          const Trail got = train(s, *runner, *engine, 2);
          CHECK_MESSAGE(same(got, expected), workers, " workers, overlap ", overlap);
          int64_t total = 0;
          for (const train::WorkerLoad& load : runner->loads(leaves)) total += load.total_sent();
          CHECK(got.bytes == 2 * total);
        }
  }
}

TEST_CASE("slice partials: leaves that are computed twice, and unequal shares, change no bit") {
  const auto engine = compiled_engine(1);
  train::TrainConfig checked = config_of(2, 7, ExchangeSchedule::kStep, true), measured = checked;
  checked.trainer.cross_check = 1;
  checked.trainer.sharding.mesh.state_replicas = 1;
  measured.trainer.sharding.shares = train::LeafSharing::kMeasured;
  const Setup s = make_setup(std::move(checked)), other = make_setup(std::move(measured));
  const Trail expected =
      train(s, *train::make_step_runner(s.programs, *engine, "none", 2).value(), *engine, 2);
  const std::vector<std::string> slices{"a", "a", "b", "b"};
  WorkerOptions moved = worker_options(other.config, 4, slices).value();
  moved.shares = LeafShares({1, 4, 1, 1});  // groups are 0 to 2, and 3 to 6
  for (const WorkerOptions& options : {worker_options(s.config, 4, slices).value(), moved}) {
    const auto runner = make_worker_runner(s.programs, *engine, "none", options).value();
    CHECK(same(train(s, *runner, *engine, 2), expected));
  }
}

TEST_CASE("slice partials: between two slices partials take half of the bytes") {
  const auto engine = compiled_engine(1);
  constexpr int64_t kLeaves = 4, kSteps = 2;
  for (const bool overlap : {true, false}) {
    int64_t planned[2] = {0, 0}, sent[2] = {0, 0};
    for (const int64_t groups : {0, 2}) {
      const Setup s = setup_of(groups, kLeaves, ExchangeSchedule::kStep, overlap);
      const auto runner = make_worker_runner(s.programs, *engine, "none",
                                             worker_options(s.config, 4, {"a", "a", "b", "b"}).value())
                              .value();
      planned[groups / 2] = partials_sent(*runner, kLeaves);
      train(s, *runner, *engine, kSteps);
      sent[groups / 2] = runner->bytes_between_slices();
    }
    CHECK(planned[0] > 0);
    CHECK(planned[1] * 2 == planned[0]);
    CHECK(sent[0] - sent[1] == kSteps * planned[1]);
  }
}

}  // namespace
}  // namespace ostro::fleet
