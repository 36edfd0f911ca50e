// Hours of runs that fail: what is lost, what survives, and that a seed decides all of it.
#include "ostro/simulate/run_history.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "ostro/fleet/processes/recovery.h"
#include "ostro/simulate/simulate.h"
#include "ostro/simulate/step/model_for_test.h"

namespace ostro::simulate {
namespace {

RunModel tiny_model(int64_t copies) {
  train::TrainConfig c = fleet::tiny_config(8, {{"embed", 12}});
  c.trainer.sharding.mesh.state_replicas = copies;
  c.trainer.checkpointer.save_interval = config::Duration{600};
  return model_of(fleet::make_setup(std::move(c)));
}

// Steps of some 10 s on eight hosts in two slices; a host fails every two hours, on average.
SimulateOptions failing() {
  SimulateOptions o;
  o.hosts = 8, o.slices = 2;
  o.leaf_seconds = 10;
  o.mtbf_hours = 16;
  o.hours = 48;
  return o;
}

TEST_CASE("run: every second has one cause, and the seed decides what happens") {
  const auto engine = test_engine();
  const Simulation a = simulate(tiny_model(1), *engine, failing()).value();
  CHECK(report_json(a) == report_json(simulate(tiny_model(1), *engine, failing()).value()));
  SimulateOptions other = failing();
  other.seed = 2;
  CHECK(report_json(a) != report_json(simulate(tiny_model(1), *engine, other).value()));
  const RunHistory& r = *a.run;
  CHECK(std::accumulate(r.uses.begin(), r.uses.end(), 0.0) == doctest::Approx(48 * 3600));
  CHECK(r.host_losses > 5);
  CHECK(r.joins > 5);
  CHECK(r.epochs > r.host_losses);
  CHECK(r.checkpoints > 100);
  CHECK(r.goodput() > 0.5);
  CHECK(r.goodput() < 1);
  // A hand that loses all that was prepared, the wait for a leaf and the connections: less than a minute.
  for (const Recovery& x : r.recoveries) CHECK(x.seconds < 60);
  CHECK(r.steps * a.step.seconds < 48 * 3600);
  CHECK(report_text(a).find("what limits a step: computing") != std::string::npos);
  CHECK(report_text(a).find("in two levels, beside the leaves") != std::string::npos);
  CHECK(report_json(a).find("\"slice_overlap\": true") != std::string::npos);
  RunModel after = tiny_model(1);
  after.config.trainer.sharding.mesh.slice_overlap = false;
  SimulateOptions step = failing();
  step.hours = 0;
  const Simulation b = simulate(after, *engine, step).value();
  CHECK(report_text(b).find("beside the leaves") == std::string::npos);
  CHECK(report_text(b).find("note: what goes between slices is sent before and after") != std::string::npos);
  CHECK(report_json(b).find("\"slice_overlap\": false") != std::string::npos);
}

TEST_CASE("run: without failures nothing is lost") {
  const auto engine = test_engine();
  SimulateOptions o = failing();
  o.mtbf_hours = 0;
  const RunHistory r = *simulate(tiny_model(1), *engine, o)->run;
  CHECK(r.epochs == 1);
  CHECK(r.recoveries.empty());
  CHECK(r.goodput() > 0.999);
}

TEST_CASE("run: with --min_workers a run waits for the host that comes in place of a lost one") {
  const auto engine = test_engine();
  SimulateOptions o = failing();
  const RunHistory goes_on = *simulate(tiny_model(1), *engine, o)->run;
  o.min_workers = 8;
  const RunHistory waits = *simulate(tiny_model(1), *engine, o)->run;
  REQUIRE(!waits.recoveries.empty());
  for (const Recovery& x : waits.recoveries) {
    CHECK(x.after == 8);
    CHECK(x.seconds > o.replace_minutes * 60);
  }
  CHECK(waits.goodput() < goes_on.goodput());
}

TEST_CASE("run: slices stay of one size after a loss, so layers go on in two levels") {
  const auto engine = test_engine();
  RunModel model = tiny_model(1);
  model.config.trainer.sharding.mesh.exchange = train::ExchangeSchedule::kLayer;
  model.config.trainer.sharding.mesh.axes = {{"replica", 2}, {"data", -1}};
  SimulateOptions o = failing();
  o.leaf_seconds = 0.1, o.outer_gbit = 1e-5;  // a step is what crosses
  const Simulation two = simulate(model, *engine, o).value();
  REQUIRE(two.plan.two_levels);
  REQUIRE(!two.run->recoveries.empty());
  // Of equal slices the smallest may have the longest steps; two of four hosts are left at least.
  Random random(1);
  double longest = 0;
  for (const int64_t hosts : {4, 3, 2}) {
    const StepPlan equal = plan_step(model, *engine, {hosts, hosts}).value();
    CHECK(equal.two_levels);
    longest = std::max(longest, time_step(model, equal, o, {}, random).seconds);
  }
  CHECK_MESSAGE(two.run->longest_step < 1.1 * longest, two.run->longest_step, " s; equal slices: ", longest);
  // What such a step takes when slices differ: five hosts of one and three of the other.
  const StepPlan unequal = plan_step(model, *engine, {5, 3}).value();
  CHECK(!unequal.two_levels);
  CHECK(time_step(model, unequal, o, {}, random).seconds > 2 * longest);
}

TEST_CASE("run: so many steps that their events would take days are refused, with hours that do") {
  const auto engine = test_engine();
  SimulateOptions o = failing();
  o.mtbf_hours = 0;
  o.leaf_seconds = 1e-4, o.hours = 8000;
  const auto refused = simulate(tiny_model(1), *engine, o);
  REQUIRE(!refused.ok());
  const std::string& message = refused.error().message();
  CHECK_MESSAGE(message.find("--hours 8000: a step takes ") == 0, message);
  CHECK_MESSAGE(message.find("1e+08 are simulated at most; use --hours ") != std::string::npos, message);
  o.leaf_seconds = 10, o.hours = 48;
  const Simulation done = simulate(tiny_model(1), *engine, o).value();
  CHECK(done.run->steps > done.model.config.trainer.num_train_steps);
  CHECK(done.notes.back().find("the run would end after its ") == 0);
}

TEST_CASE("run: a lost slice costs a step where copies are in other slices, else the way to a checkpoint") {
  const auto engine = test_engine();
  SimulateOptions o = failing();
  o.mtbf_hours = 0;
  o.slice_mtbf_hours = 20;
  const RunHistory with = *simulate(tiny_model(1), *engine, o)->run;
  CHECK(with.slice_losses > 0);
  CHECK(with.restarts == 0);
  CHECK(with.uses[static_cast<size_t>(TimeUse::kLost)] == 0);
  const RunHistory without = *simulate(tiny_model(0), *engine, o)->run;
  CHECK(without.slice_losses == with.slice_losses);
  CHECK(without.restarts > 0);
  CHECK(without.uses[static_cast<size_t>(TimeUse::kLost)] > 0);
}

TEST_CASE("run: a state survives where the recovery of workers finds all its cells") {
  const auto engine = test_engine();
  for (const int64_t copies : {0, 1})
    for (const auto& axes : std::vector<config::IntMap>{{{"data", -1}}, {{"replica", 2}, {"data", -1}}}) {
      train::TrainConfig c = fleet::tiny_config(8, {{"embed", 12}});
      c.trainer.sharding.mesh.state_replicas = copies;
      c.trainer.sharding.mesh.axes = axes;
      const fleet::Setup s = fleet::make_setup(std::move(c));
      const StepPlan plan = plan_step(model_of(s), *engine, {3, 3}).value();
      const auto options = fleet::worker_options(s.config, 6, names_of({3, 3})).value();
      const fleet::WorkerPlan workers = fleet::make_worker_plan(s.programs, *engine, "none", options).value();
      int survived = 0;
      for (int which = 0; which < 63; ++which) {  // all sets of lost hosts but all of them
        std::vector<bool> lost;
        std::vector<fleet::Brought> brought;
        for (int64_t rank = 0; rank < 6; ++rank) {
          lost.push_back((which >> rank & 1) != 0);
          if (lost.back()) continue;
          fleet::Brought b;
          b.epoch = 1, b.size = 6, b.rank = rank, b.mirror_of = workers.mirror_of(rank).value_or(-1);
          brought.push_back(b);
        }
        const fleet::Recovery recovery = fleet::plan_recovery(brought);
        bool whole = true;
        for (size_t k = 0; k < workers.arrays.size(); ++k)
          for (const fleet::OldCells& cells : fleet::old_cells(k, brought, recovery, workers.state))
            whole = whole && !cells.holders.empty();
        CHECK(state_survives(plan, lost) == whole);
        survived += whole ? 1 : 0;
      }
      CHECK(survived > 0);
      CHECK(survived < 63);
    }
}

TEST_CASE("options: an error names the option, its value and what to use") {
  const auto message = [](auto change) {
    SimulateOptions o;
    o.hosts = 8;
    change(o);
    const Status checked = check_options(o);
    return checked.ok() ? std::string("ok") : checked.error().message();
  };
  CHECK(message([](SimulateOptions&) {}) == "ok");
  CHECK(message([](SimulateOptions& o) { o.slices = 3; }) ==
        "--hosts 8 cannot be divided into --slices 3 of one size; use 6 or 9 hosts, or a number of slices "
        "that divides 8");
  const auto on_machines = [](int64_t slices, int64_t each) {
    return [=](SimulateOptions& o) { o.slices = slices, o.hosts_per_machine = each; };
  };
  CHECK(message(on_machines(2, 3)) ==
        "--hosts_per_machine 3 does not divide the 4 hosts of a slice, so that a machine would be in two "
        "slices; "
        "use a number that divides 4, or 8 for all on one machine");
  CHECK(message(on_machines(2, 2)) == "ok");
  CHECK(message(on_machines(2, 8)) == "ok");
  CHECK(message(on_machines(1, 3)) == "ok");
  CHECK(message([](SimulateOptions& o) { o.min_workers = 9; }) ==
        "--min_workers: 9; use 1 to the number of hosts, 8");
  CHECK(message([](SimulateOptions& o) { o.inner_gbit = 0; }) == "--inner_gbit: 0; use a number above 0");
  CHECK(message([](SimulateOptions& o) { o.hosts = 0; }) == "--hosts: 0; use 1 to 16384");
  CHECK(message([](SimulateOptions& o) { o.jitter = 2; }) == "--jitter: 2; use at most 1");
}

}  // namespace
}  // namespace ostro::simulate
