// Steps whose exchanges between slices go on beside leaves, worked out by hand, and the plan that says so.
#include <doctest/doctest.h>

#include <numeric>

#include "ostro/simulate/step/model_for_test.h"
#include "ostro/simulate/step/step_time.h"

namespace ostro::simulate {
namespace {

using Chunks = std::vector<LeafChunk>;

constexpr double kLeaf = 12;  // seconds

// Two slices of `each` hosts with one leaf each. In a step a slice sends parameters to the other one for
// `parameters` seconds and sums of gradients for `gradients` seconds, and a host inside its slice for the two
// others. What goes between slices is so little that links inside them do not notice it.
struct Apart {
  int64_t each = 1;
  double parameters = 0, gradients = 0, parameters_inside = 0, gradients_inside = 0;

  StepPlan plan(bool overlaps, Chunks read, Chunks made) const {
    StepPlan out;
    out.hosts = 2 * each, out.slices = 2, out.leaves = out.hosts;
    out.slice_sizes = {each, each};
    out.two_levels = true, out.overlaps = overlaps;
    out.chunks.read = std::move(read), out.chunks.made = std::move(made);
    HostWork work;
    work.leaves = 1;
    const auto fill = [&](Traffic& t, double between, double inside) {
      t.between = static_cast<int64_t>(1000 * between) / each;
      t.inside = static_cast<int64_t>(1e9 * inside);
      t.exchanges = 1;
    };
    fill(work.parameters, parameters, parameters_inside);
    fill(work.gradients, gradients, gradients_inside);
    out.kinds = {work};
    out.kind_of.assign(static_cast<size_t>(out.hosts), 0);
    for (int64_t rank = 0; rank < out.hosts; ++rank) {
      out.slice_of.push_back(rank / each);
      out.cells_of.push_back(rank);
    }
    return out;
  }
};

StepTime time_of(const StepPlan& plan, const std::vector<double>& speed = {}) {
  RunModel model;
  SimulateOptions o;
  o.hosts = plan.hosts, o.slices = plan.slices;
  o.spread = o.jitter = o.message_us = o.inner_latency_us = o.outer_latency_us = 0;
  o.leaf_seconds = kLeaf, o.add_seconds = 1;
  o.inner_gbit = 8;     // 1 GB/s
  o.outer_gbit = 8e-6;  // 1 kB/s
  Random none(1);
  return time_step(model, plan, o, speed, none);
}

double seconds_in(const StepTime& time, Part part) { return time.parts[static_cast<size_t>(part)]; }

TEST_CASE(
    "overlap: the larger of computing and sending where both can go on, and the sum where they cannot") {
  for (const double link : {8.0, 20.0}) {
    const double larger = std::max(link, kLeaf), sum = link + kLeaf;
    // Parameters that the leaf reads at its end, and gradients that it makes at its beginning: a chunk goes
    // between slices when the next one is made.
    const Apart in{.parameters = link}, out{.gradients = link};
    CHECK(time_of(in.plan(true, {{1, 1}}, {{1, 1}})).seconds == doctest::Approx(larger));
    CHECK(time_of(out.plan(true, {}, {{0, 1}, {0, 0}})).seconds == doctest::Approx(larger));
    // Parameters that it reads first, gradients that it makes last.
    CHECK(time_of(in.plan(true, {{0, 1}}, {{1, 1}})).seconds == doctest::Approx(sum));
    CHECK(time_of(out.plan(true, {}, {{1, 1}})).seconds == doctest::Approx(sum));
    // The control: without overlap it is the sum, whatever the chunks.
    CHECK(time_of(in.plan(false, {{1, 1}}, {{1, 1}})).seconds == doctest::Approx(sum));
    CHECK(time_of(out.plan(false, {}, {{0, 1}, {0, 0}})).seconds == doctest::Approx(sum));
    CHECK(time_of(in.plan(true, {{1, 1}}, {{1, 1}})).between_links == doctest::Approx(link));
  }
  // A host that computes twice as long is waited for.
  const StepTime slow = time_of(Apart{.parameters = 20}.plan(true, {{1, 1}}, {{1, 1}}), {2, 1});
  CHECK(slow.seconds == doctest::Approx(24));
  CHECK(seconds_in(slow, Part::kBetween) == doctest::Approx((20 - 12) / 2.0));
}

// Read at 0, 1, 2 and 3 s of the leaf; made at 6, 8, 10 and 12 s.
const Chunks kRead{{0, 0.25}, {1 / kLeaf, 0.25}, {2 / kLeaf, 0.25}, {3 / kLeaf, 0.25}};
const Chunks kMade{{6 / kLeaf, 0.25}, {8 / kLeaf, 0.25}, {10 / kLeaf, 0.25}, {1, 0.25}};

TEST_CASE("overlap: four chunks, worked out by hand") {
  // Parameters come at 2, 4, 6 and 8 s, and the host computes from 2 to 3, 4 to 5, 6 to 7 and from 8 on. It
  // makes gradients at 11, 13, 15 and 17 s. The first leave at 13 s, with the second; links are busy then
  // until 25 s.
  const Apart apart{.parameters = 8, .gradients = 12};
  const StepTime time = time_of(apart.plan(true, kRead, kMade));
  CHECK(time.seconds == doctest::Approx(25));
  CHECK(seconds_in(time, Part::kCompute) == doctest::Approx(12));
  CHECK(seconds_in(time, Part::kBetween) == doctest::Approx(2 + 1 + 1 + 1 + 8));
  CHECK(time.leaves_begin == doctest::Approx(0));
  CHECK(time.leaves_end == doctest::Approx(17));
  CHECK(time.between_links == doctest::Approx(20));
  CHECK(time_of(apart.plan(false, kRead, kMade)).seconds == doctest::Approx(32));
  // Fewer, larger chunks: parameters come at 4 and 8 s, the second half is read at 2 s of the leaf. Gradients
  // are made at 8 and 12 s of it, and leave at its end.
  StepPlan coarse = apart.plan(true, kRead, kMade);
  coarse.chunks = joined_chunks(coarse.chunks, 2);
  REQUIRE(coarse.chunks.made.size() == 2);
  CHECK(coarse.chunks.read[1].at == doctest::Approx(2 / kLeaf));
  CHECK(coarse.chunks.made[0].at == doctest::Approx(8 / kLeaf));
  CHECK(time_of(coarse).seconds == doctest::Approx(8 + 10 + 12));
}

TEST_CASE("overlap: workers pass parameters on in their slice, and join its gradients, chunk by chunk") {
  // Inside a slice a chunk of parameters takes 1 s, for which the host waits: it computes from 3 to 4, 5 to
  // 6, 7 to 8 s and from 9 on. A chunk of gradients takes 3 s: from 12, 15, 18 and 21 s on; the host makes
  // the second at 14 s, and waits for the first to arrive before it goes on, and so on. Between slices they
  // go from 15 to 27 s.
  const Apart apart{
      .each = 2, .parameters = 8, .gradients = 12, .parameters_inside = 4, .gradients_inside = 12};
  const StepTime time = time_of(apart.plan(true, kRead, kMade));
  CHECK(time.seconds == doctest::Approx(27));
  CHECK(seconds_in(time, Part::kCompute) == doctest::Approx(12));
  CHECK(seconds_in(time, Part::kInside) == doctest::Approx(4 + 1 + 1 + 1 + 3));
  CHECK(seconds_in(time, Part::kBetween) == doctest::Approx(2 + 3));
  CHECK(seconds_in(time, Part::kWait) == doctest::Approx(0));
  CHECK(time_of(apart.plan(false, kRead, kMade)).seconds == doctest::Approx(8 + 4 + 12 + 12 + 12));
}

TEST_CASE("overlap: only the last leaf sends, and sums are made where workers make them") {
  // Three leaves. Two are added beforehand (1 s), the third chunk by chunk (1 s), the other slice's at the
  // end.
  StepPlan plan = Apart{.gradients = 6}.plan(true, {}, {{0.5, 0.5}, {1, 0.5}});
  plan.kinds[0].leaves = 3;
  plan.kinds[0].adds = {.leaves = 1, .last = 1, .all = 0.5};
  const StepTime time = time_of(plan);
  CHECK(seconds_in(time, Part::kCompute) == doctest::Approx(36 + 2.5));
  CHECK(time.leaves_end == doctest::Approx(38));
  // The sums of the first chunk are added while the second one arrives.
  CHECK(time.seconds == doctest::Approx(38 + 6 + 0.25));
  plan.overlaps = false;
  CHECK(time_of(plan).seconds == doctest::Approx(38.5 + 6));
}

StepPlan planned(const train::TrainConfig& config, const std::vector<int64_t>& sizes) {
  const auto engine = test_engine();
  return plan_step(model_of(fleet::make_setup(config)), *engine, sizes).value();
}

TEST_CASE("overlap: whether it is on is what the workers' plan says, and chunks are those of workers") {
  train::TrainConfig c = fleet::tiny_config(8, {{"embed", 4}});
  c.trainer.sharding.mesh.state_replicas = 0;
  const StepPlan plan = planned(c, {2, 2});
  CHECK(plan.overlaps);
  CHECK(planned(c, {1, 1}).overlaps);
  CHECK(!planned(c, {4}).overlaps);
  REQUIRE(plan.chunks.read.size() > 3);  // the table, two layers, and what comes behind them
  REQUIRE(plan.chunks.made.size() > 3);
  for (const Chunks& chunks : {plan.chunks.read, plan.chunks.made}) {
    double at = 0, bytes = 0;
    for (const LeafChunk& chunk : chunks) {
      CHECK(chunk.at >= at);
      at = chunk.at, bytes += chunk.share;
    }
    CHECK(bytes == doctest::Approx(1));
    CHECK(at <= 1 + 1e-9);
  }
  // Parameters beside the forward pass, which is a third of a leaf, gradients beside the backward pass.
  CHECK(plan.chunks.read.front().at < 0.1);
  CHECK(plan.chunks.read.back().at < 0.5);
  CHECK(plan.chunks.made.front().at > 0.2);
  CHECK(plan.chunks.made.back().at > 0.8);
  const auto without = [&](const auto& change) {
    train::TrainConfig other = c;
    change(other.trainer);
    return planned(other, {2, 2});
  };
  CHECK(!without([](auto& t) { t.sharding.mesh.slice_overlap = false; }).overlaps);
  CHECK(without([](auto& t) { t.sharding.shares = train::LeafSharing::kMeasured; }).overlaps);
  CHECK(!without([](auto& t) { t.sharding.mesh.exchange = train::ExchangeSchedule::kLayer; }).overlaps);
  // With cross_check 1 each leaf is computed by two, so a host has about twice as many.
  CHECK(plan.checked(1) == std::vector<int64_t>(4));
  const StepPlan checked = without([](auto& t) {
    t.cross_check = 1;
    t.sharding.mesh.state_replicas = 1;
  });
  CHECK(checked.overlaps);
  const std::vector<int64_t> again = checked.checked(1);
  CHECK(std::accumulate(again.begin(), again.end(), int64_t{0}) == checked.leaves);
  StepPlan unchecked = checked;
  unchecked.check = {};
  CHECK(seconds_in(time_of(checked), Part::kCompute) ==
        doctest::Approx(seconds_in(time_of(unchecked), Part::kCompute) + 2 * kLeaf));
}

}  // namespace
}  // namespace ostro::simulate
