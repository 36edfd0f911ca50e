// Workers in slices give the bits of one worker; what they send between slices is known to the byte, and does
// not depend on how many workers a slice has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <random>

#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {
namespace {

using train::ExchangeSchedule;

struct Arrangement {
  std::vector<int64_t> sizes;  // workers of each slice
  config::IntMap axes = {{"data", -1}};
  ExchangeSchedule exchange = ExchangeSchedule::kStep;
  const char* precision = "f32";
  int64_t leaves = 7;
  bool owned_in_cells = true;
  bool model_axis = false;
  int64_t state_replicas = 1;
  bool overlap = true;

  int64_t workers() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); }
  std::vector<std::string> slices() const {
    std::vector<std::string> names;
    for (size_t s = 0; s < sizes.size(); ++s)
      names.insert(names.end(), static_cast<size_t>(sizes[s]), fmt::format("slice {}", s));
    return names;
  }
  std::string text() const {
    std::vector<std::string> mesh;
    for (const auto& [name, size] : axes) mesh.push_back(fmt::format("{} {}", name, size));
    return fmt::format("slices of {}, mesh {}, {}, {}, {} leaves, in cells {}, copies {}, overlap {}",
                       fmt::join(sizes, ":"), fmt::join(mesh, " "),
                       exchange == ExchangeSchedule::kStep ? "step" : "layer", precision, leaves,
                       owned_in_cells, state_replicas, overlap);
  }
};

Setup setup_of(const Arrangement& a) {
  train::TrainConfig c = tiny_config(a.leaves, {{"embed", 12}});
  train::llama(c).num_kv_heads = 2;
  c.numerics.leaves = {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}};
  c.trainer.mp = a.precision;
  train::ShardingOptions& sharding = c.trainer.sharding;
  sharding.mesh.axes = a.axes;
  sharding.mesh.exchange = a.exchange;
  sharding.mesh.state_replicas = a.state_replicas;
  sharding.mesh.slice_overlap = a.overlap;
  if (a.model_axis) sharding.tensor_parallel_axes = {"kv_heads", "mlp", "vocab"};
  if (!a.owned_in_cells) sharding.fsdp_axis = std::nullopt;
  return make_setup(std::move(c));
}

int64_t total(const std::vector<train::WorkerLoad>& loads, int64_t (train::WorkerLoad::*of)() const) {
  int64_t bytes = 0;
  for (const train::WorkerLoad& load : loads) bytes += (load.*of)();
  return bytes;
}

// Trains with the arrangement, and compares what was sent with what was said before.
Trail train_in_slices(const Setup& s, runtime::Engine& engine, const Arrangement& a, int steps) {
  auto runner = make_worker_runner(s.programs, engine, "none",
                                   worker_options(s.config, a.workers(), a.slices()).value());
  REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
  const Trail trail = train(s, **runner, engine, steps);
  const std::vector<train::WorkerLoad> loads = (*runner)->loads(a.leaves);
  CHECK_MESSAGE(trail.bytes == steps * total(loads, &train::WorkerLoad::total_sent), a.text());
  CHECK_MESSAGE((*runner)->bytes_between_slices() == steps * total(loads, &train::WorkerLoad::total_between),
                a.text());
  CHECK(((*runner)->bytes_between_slices() > 0) == (a.sizes.size() > 1));
  return trail;
}

TEST_CASE("slices: drawn arrangements give the bits of one worker, and send what was said before") {
  const auto engine = compiled_engine();
  std::mt19937 rng(39);
  const auto draw = [&](int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(rng);
  };
  std::vector<Arrangement> all{
      {.sizes = {2, 1}, .leaves = 2},  // fewer leaves than workers
      {.sizes = {1, 3}, .leaves = 1},  // a slice without a leaf
      {.sizes = {3, 1}, .axes = {{"data", -1}, {"model", 2}}, .leaves = 5, .model_axis = true},
      {.sizes = {2, 2},
       .axes = {{"replica", 2}, {"data", -1}},
       .exchange = ExchangeSchedule::kLayer,
       .leaves = 1},
      {.sizes = {4, 4}, .axes = {{"replica", 4}, {"data", -1}}, .exchange = ExchangeSchedule::kLayer},
      {.sizes = {2, 2, 2}, .axes = {{"replica", 3}, {"data", -1}}, .exchange = ExchangeSchedule::kLayer},
      {.sizes = {1, 2}, .exchange = ExchangeSchedule::kLayer},  // layer, but all as one slice
  };
  for (int i = 0; i < 10; ++i) {
    Arrangement a;
    const int64_t slices = draw(2, 4), kind = draw(0, 4);
    const bool equal = kind == 1 || kind == 2;
    const int64_t size = draw(1, 3), unit = kind == 2 || kind == 3 ? 2 : 1;
    for (int64_t s = 0; s < slices; ++s)
      a.sizes.push_back((equal ? size : draw(1, slices > 2 ? 2 : 4)) * unit);
    if (equal) a.axes = {{"replica", slices}, {"data", -1}};
    if (equal && draw(0, 2) > 0) a.exchange = ExchangeSchedule::kLayer;
    if (unit == 2) a.axes.emplace_back("model", 2), a.model_axis = true;
    a.owned_in_cells = kind != 4;
    a.precision = draw(0, 1) == 0 ? "f32" : "p=f32,c=bfloat16";
    a.leaves = draw(1, 13);
    a.state_replicas = draw(0, 1);
    a.overlap = draw(0, 3) > 0;
    all.push_back(std::move(a));
  }
  for (const Arrangement& a : all) {
    const Setup s = setup_of(a);
    CHECK_MESSAGE(same(train_in_slices(s, *engine, a, 2), train_alone(s, 2)), a.text());
  }
}

TEST_CASE(
    "slices: controls that must fail: partials joined in another order than that of the tree, as when they "
    "come") {
  // Three slices of one leaf a worker: each owner joins three partials of slices.
  for (const bool overlap : {true, false}) {
    const Arrangement a{.sizes = {1, 1, 1}, .leaves = 3, .overlap = overlap};
    const Setup s = setup_of(a);
    const Trail expected = train_alone(s, 2);
    for (const char* fault : {"", "leaf_order", "ring_order", "arrival_order"}) {
      FaultyEngine engine(compiled_engine(), fault);
      const Trail faulty = train_in_slices(s, engine, a, 2);
      CHECK(same(faulty, expected) == (*fault == '\0'));
      if (*fault == '\0') continue;
      CHECK(faulty.steps[0].loss() == expected.steps[0].loss());
      CHECK(faulty.steps[0].prints != expected.steps[0].prints);
    }
  }
}

// Of what grows with the model: the bytes that all workers send between slices in a step.
int64_t growing(const std::vector<train::WorkerLoad>& loads) {
  int64_t bytes = 0;
  for (const train::WorkerLoad& load : loads)
    for (const train::Sent& sent : load.sent)
      if (sent.what.starts_with("sums of gradients to other slices") ||
          sent.what.starts_with("sums over all leaves to other slices") ||
          sent.what.starts_with("parameters to the other slices") ||
          sent.what.starts_with("gradients to the worker"))
        bytes += sent.between;
  return bytes;
}

TEST_CASE("slices: slow links carry what one worker for each slice would send, as the formula says") {
  const auto engine = compiled_engine();
  for (const int64_t slices : {2, 3, 4})
    for (const bool replicas : {false, true}) {
      train::TrainConfig c = tiny_config(12, {{"embed", 24}});
      train::llama(c).hidden_dim = 480;
      train::llama(c).intermediate_dim = 960;
      train::llama(c).num_layers = 6;
      c.trainer.sharding.mesh.axes = {{"replica", replicas ? slices : 1}, {"data", -1}};
      c.trainer.sharding.mesh.state_replicas = slices % 2;
      const Setup s = make_setup(std::move(c));
      int64_t parameters = 0, subtrees = 0;
      for (size_t k = 0; k < s.programs.init.body.results.size(); ++k)
        parameters += s.programs.leaf.body.shape(s.programs.leaf.body.params[k]).bytes();
      for (int64_t slice = 0; slice < slices; ++slice)
        subtrees += static_cast<int64_t>(train::subtrees(12, train::leaf_range(12, slices, slice)).size());
      // P (S - 1) (T + 1), with copies or without, and where each slice owns all.
      const double t = static_cast<double>(subtrees) / static_cast<double>(slices);
      const double formula = static_cast<double>(parameters * (slices - 1)) * (t + 1);
      for (const int64_t each : {1, 2, 3}) {
        const Arrangement a{.sizes = std::vector<int64_t>(static_cast<size_t>(slices), each)};
        const auto loads = mesh_loads(s.programs, *engine, "none",
                                      worker_options(s.config, a.workers(), a.slices()).value(), 12)
                               .value()
                               .workers;
        CHECK_MESSAGE(static_cast<double>(growing(loads)) == formula, slices, " slices of ", each,
                      ", replicas ", replicas);
        const auto all = static_cast<double>(total(loads, &train::WorkerLoad::total_between));
        CHECK_MESSAGE(all / formula < 1.02, slices, " slices of ", each);
        for (const train::WorkerLoad& load : loads) CHECK(load.total_between() <= load.total_sent());
      }
    }
}

TEST_CASE("slices: copies of cells are in another slice") {
  const Setup s = setup_of({.sizes = {2, 2}});
  const auto engine = compiled_engine();
  const std::vector<std::vector<int64_t>> of_sizes{{2, 2}, {3, 2, 2}, {1, 2, 1}};
  for (const std::vector<int64_t>& sizes : of_sizes) {
    const Arrangement a{.sizes = sizes};
    const WorkerPlan plan = make_worker_plan(s.programs, *engine, "none",
                                             worker_options(s.config, a.workers(), a.slices()).value())
                                .value();
    for (int64_t rank = 0; rank < a.workers(); ++rank)
      CHECK(plan.slices.apart(rank, plan.holders[static_cast<size_t>(rank)]));
  }
}

TEST_CASE("slices: where one has more than half of the workers, copies are on another host") {
  const Arrangement a{.sizes = {3, 1}};
  const Setup s = setup_of(a);
  const auto engine = compiled_engine();
  WorkerOptions options = worker_options(s.config, a.workers(), a.slices()).value();
  options.hosts = {"h1", "h1", "h2", "h3"};
  const WorkerPlan plan = make_worker_plan(s.programs, *engine, "none", options).value();
  REQUIRE(plan.holders.size() == 4);
  for (size_t rank = 0; rank < 4; ++rank)
    CHECK(options.hosts[rank] != options.hosts[static_cast<size_t>(plan.holders[rank])]);
  CHECK(same(train_in_slices(s, *engine, a, 2), train_alone(s, 2)));
}

}  // namespace
}  // namespace ostro::fleet
