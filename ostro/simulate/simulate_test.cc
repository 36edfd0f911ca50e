// The event queue, a machine's cores, steps that are worked out by hand, and bytes beside those that workers
// send.
#include <doctest/doctest.h>

#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/simulate/simulate.h"
#include "ostro/simulate/step/event_queue.h"
#include "ostro/simulate/step/machine.h"
#include "ostro/simulate/step/model_for_test.h"
#include "ostro/simulate/step/step_time.h"

namespace ostro::simulate {
namespace {

TEST_CASE("event queue: by time, then by the order in which actions were added") {
  EventQueue queue;
  std::string order;
  queue.at(2, [&] { order += 'c'; });
  queue.at(1, [&] {
    order += 'a';
    queue.after(1, [&] { order += 'd'; });
    queue.after(0, [&] { order += 'b'; });
  });
  while (queue.step()) {
  }
  CHECK(order == "abcd");
  CHECK(queue.now() == 2);
}

TEST_CASE("machine: pieces of work share its cores, and none uses more than one") {
  EventQueue queue;
  Machine machine(queue, 2);
  std::vector<double> ends(3);
  machine.work(2, [&] { ends[0] = queue.now(); });
  machine.work(1, [&] { ends[1] = queue.now(); });
  machine.work(3, [&] { ends[2] = queue.now(); });
  while (queue.step()) {
  }
  // Three on two cores until 1.5 s; then two, one core each.
  CHECK(ends[1] == doctest::Approx(1.5));
  CHECK(ends[0] == doctest::Approx(2.5));
  CHECK(ends[2] == doctest::Approx(3.5));
}

// Two hosts: one has two leaves, the other one.
StepPlan two_hosts(int64_t slices) {
  StepPlan plan;
  plan.hosts = 2, plan.slices = slices, plan.leaves = 3;
  plan.slice_of = slices == 2 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0, 0};
  plan.slice_sizes = slices == 2 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{2};
  plan.two_levels = slices == 2;
  plan.cells_of = {0, 1};
  HostWork one;
  one.leaves = 1, one.state = 600;
  HostWork two = one;
  two.leaves = 2, two.adds.leaves = 1;
  for (HostWork* w : {&one, &two}) {
    (slices == 2 ? w->parameters.between : w->parameters.inside) = 1'000'000'000;
    (slices == 2 ? w->gradients.between : w->gradients.inside) = 3'000'000'000;
    w->parameters.exchanges = w->gradients.exchanges = 1;
  }
  plan.kinds = {two, one};
  plan.kind_of = {0, 1};
  return plan;
}

SimulateOptions plain_options() {
  SimulateOptions o;
  o.hosts = 2;
  o.spread = o.jitter = o.message_us = o.inner_latency_us = o.outer_latency_us = 0;
  o.leaf_seconds = 5, o.add_seconds = 0.5, o.update_seconds = 2, o.print_seconds = 1;
  o.inner_gbit = 8;  // 1 GB/s
  o.outer_gbit = 4;
  return o;
}

double part(const StepTime& time, Part part) { return time.parts[static_cast<size_t>(part)]; }

TEST_CASE("step: two hosts, worked out by hand") {
  RunModel model;
  model.parameter_bytes = 400, model.state_bytes = 1200;
  Random none(1);
  const StepTime time = time_step(model, two_hosts(1), plain_options(), {}, none);
  // Parameters 1 s, leaves 10.5 s and 5 s, gradients 3 s, half of the update 1 s, half of the prints 0.5 s.
  CHECK(time.seconds == doctest::Approx(1 + 10.5 + 3 + 1 + 0.5));
  CHECK(part(time, Part::kCompute) == doctest::Approx((10.5 + 5) / 2));
  CHECK(part(time, Part::kWait) == doctest::Approx((10.5 - 5) / 2));
  CHECK(part(time, Part::kInside) == doctest::Approx(4));
  CHECK(part(time, Part::kBetween) == 0);
  CHECK(part(time, Part::kUpdate) == doctest::Approx(1));
  CHECK(part(time, Part::kPrint) == doctest::Approx(0.5));
  CHECK(time.leaves_begin == doctest::Approx(1));
  CHECK(time.leaves_end == doctest::Approx(11.5));
  CHECK(time.measured == doctest::Approx(14.5));
  // Two slices: the same bytes over links of half the rate.
  const StepTime apart = time_step(model, two_hosts(2), plain_options(), {}, none);
  CHECK(part(apart, Part::kBetween) == doctest::Approx(8));
  CHECK(apart.seconds == doctest::Approx(time.seconds + 4));
  // Connections that carry less than the link: two of 1 Gbit/s for each pair of hosts in different slices.
  SimulateOptions thin = plain_options();
  thin.connection_gbit = 1;
  StepPlan two = two_hosts(2);
  two.connections = 2;
  CHECK(part(time_step(model, two, thin, {}, none), Part::kBetween) == doctest::Approx(16));
  two.connections = 8;
  CHECK(part(time_step(model, two, thin, {}, none), Part::kBetween) == doctest::Approx(8));
  // On one machine with one core the leaves take turns, and no link is used.
  SimulateOptions shared = plain_options();
  shared.hosts_per_machine = 2;
  const StepTime together = time_step(model, two_hosts(1), shared, {}, none);
  CHECK(together.seconds == doctest::Approx(15.5 + 2 + 1));
  CHECK(time_step(model, two_hosts(1), plain_options(), {2, 1}, none).seconds > time.seconds + 10);
}

TEST_CASE("step: what carries nothing is no limit, and options without effect are named") {
  const auto engine = test_engine();
  const RunModel model = model_of(fleet::make_setup(fleet::tiny_config(4, {{"embed", 4}})));
  SimulateOptions o = plain_options();
  o.hours = 0, o.loopback_gbytes = 1, o.memory_gbytes = 1, o.flops = 1;
  const auto limits = [&] {
    std::string names;
    const Simulation done = simulate(model, *engine, o).value();
    for (const Limit& limit : done.limits) names += limit.what + ";";
    return names;
  };
  const auto notes = [&] {
    std::string all;
    const Simulation done = simulate(model, *engine, o).value();
    for (const std::string& note : done.notes) all += note + "\n";
    return all;
  };
  CHECK(limits().find("links;") != std::string::npos);
  CHECK(limits().find("copies by cores;") != std::string::npos);
  CHECK(notes().find("--flops has no effect beside --leaf_seconds") != std::string::npos);
  CHECK(notes().find("--memory_gbytes has no effect beside --add_seconds") != std::string::npos);
  CHECK(notes().find("--cores") == std::string::npos);
  CHECK(notes().find("on one machine") == std::string::npos);
  o.cores = 4;
  CHECK(notes().find("--cores 4 has no effect with one host on a machine") != std::string::npos);
  o.hosts_per_machine = 2;
  CHECK(notes().find("--cores") == std::string::npos);
  CHECK(notes().find("all hosts are on one machine") != std::string::npos);
  CHECK(limits().find("links") == std::string::npos);
  CHECK(limits().find("latency") == std::string::npos);
}

TEST_CASE("plan: the bytes are those that workers send, with both schedules, in slices and in one") {
  const auto engine = test_engine();
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{2}, {3}, {1, 1}, {2, 2}, {2, 1}})
    for (const auto exchange : {train::ExchangeSchedule::kStep, train::ExchangeSchedule::kLayer}) {
      train::TrainConfig c = fleet::tiny_config(7, {{"embed", 4}});
      c.trainer.sharding.mesh.exchange = exchange;
      const fleet::Setup s = fleet::make_setup(std::move(c));
      const RunModel model = model_of(s);
      const StepPlan plan = plan_step(model, *engine, sizes).value();
      auto options = fleet::worker_options(s.config, plan.hosts, names_of(sizes)).value();
      auto runner = fleet::make_worker_runner(s.programs, *engine, "none", options).value();
      const int64_t sent = fleet::train(s, *runner, *engine, 1).bytes;
      CHECK(plan.sent().bytes() == sent);
      CHECK(plan.sent().between == runner->bytes_between_slices());
      CHECK((plan.sent().between > 0) == (sizes.size() > 1));
      CHECK(plan.layered == (exchange == train::ExchangeSchedule::kLayer));
      CHECK((plan.kinds[0].in_leaves.bytes() > 0) == plan.layered);
      // Copies of what the other slice owns are read there: of two hosts each has all.
      const bool has_all = sizes == std::vector<int64_t>{1, 1};
      CHECK((plan.kinds[0].parameters.bytes() > 0) == (!plan.layered && !has_all));
    }
}

TEST_CASE("plan: the formulas of docs/spec/spmd.md, and hosts that stand for others") {
  const auto engine = test_engine();
  train::TrainConfig c = fleet::tiny_config(40, {{"embed", 40}});
  train::llama(c).hidden_dim = 80;
  train::llama(c).intermediate_dim = 160;
  c.trainer.watch_norms = {};
  c.trainer.sharding.mesh.state_replicas = 0;
  const fleet::Setup s = fleet::make_setup(std::move(c));
  const RunModel model = model_of(s);
  const auto parameters = static_cast<double>(model.parameter_bytes);
  // One slice: P (W - 1) (S + 1) with one subtree for each host of 8 with 5 leaves is more than one; of 40 it
  // is 1.
  const StepPlan one = plan_step(model, *engine, {40}).value();
  CHECK(one.sampled);
  CHECK(one.kinds.size() < 5);
  CHECK(static_cast<double>(one.sent().bytes()) == doctest::Approx(parameters * 39 * 2).epsilon(0.03));
  // Five slices of eight: each has one subtree of 8 leaves.
  const StepPlan five = plan_step(model, *engine, {8, 8, 8, 8, 8}).value();
  int64_t grows = 0;
  for (int64_t rank = 0; rank < five.hosts; ++rank)
    for (const Traffic HostWork::* kind : {&HostWork::parameters, &HostWork::gradients, &HostWork::joined})
      grows += (five.work(rank).*kind).between;
  CHECK(static_cast<double>(grows) == doctest::Approx(parameters * 4 * 2).epsilon(0.02));
  const auto options = fleet::worker_options(s.config, 40, names_of({8, 8, 8, 8, 8})).value();
  int64_t bytes = 0, between = 0;
  const fleet::MeshLoads loads = fleet::mesh_loads(s.programs, *engine, "none", options, 40).value();
  for (const train::WorkerLoad& load : loads.workers) {
    bytes += load.total_sent();
    between += load.total_between();
  }
  CHECK(static_cast<double>(five.sent().bytes()) ==
        doctest::Approx(static_cast<double>(bytes)).epsilon(0.01));
  CHECK(static_cast<double>(five.sent().between) ==
        doctest::Approx(static_cast<double>(between)).epsilon(0.01));
}

}  // namespace
}  // namespace ostro::simulate
