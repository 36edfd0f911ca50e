// Both schedules, on meshes of every kind, give the bits of one worker; and each is seen to matter.
#include <fmt/format.h>

#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

struct MeshCase {
  const char* name;
  config::IntMap axes;
  std::vector<int64_t> workers;
  std::vector<std::string> tensor_parallel = {};
  std::map<std::string, std::string> axis_resources = {};
  bool owned_in_cells = true;
};

const std::vector<MeshCase> kMeshes = {
    {"data", {{"data", -1}}, {1, 2, 3, 4, 5, 6, 7, 8}},
    {"everything owned by all", {{"data", -1}}, {3, 4}, {}, {}, false},
    {"replica x data", {{"replica", 2}, {"data", -1}}, {4, 6}},
    {"model", {{"data", -1}, {"model", 2}}, {2, 4, 6}, {"kv_heads", "mlp", "vocab"}},
    {"context", {{"data", -1}, {"context", 2}}, {2, 6}, {}, {{"pos", "context"}}},
    {"replica x data x model",
     {{"replica", 2}, {"data", -1}, {"model", 2}},
     {8},
     {"kv_heads", "mlp", "vocab"}},
};

train::TrainConfig on_mesh(const MeshCase& mesh, train::ExchangeSchedule exchange, const char* precision,
                           int64_t rows = 7) {
  train::TrainConfig c = tiny_config(rows, {{"embed", 4}});
  train::llama(c).num_kv_heads = 2;
  c.numerics.leaves = {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}, {"pos", 2}};
  c.trainer.mp = precision;
  train::ShardingOptions& sharding = c.trainer.sharding;
  sharding.mesh.axes = mesh.axes;
  sharding.mesh.exchange = exchange;
  sharding.tensor_parallel_axes = mesh.tensor_parallel;
  sharding.axis_resources = mesh.axis_resources;
  if (!mesh.owned_in_cells) sharding.fsdp_axis = std::nullopt;
  return c;
}

std::unique_ptr<runtime::Engine> loops() {
  return cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false}).value();
}

struct Engines {
  std::unique_ptr<runtime::Engine> compiled = loops();
  std::unique_ptr<runtime::Engine> interpreter = interp::make_interpreter();
};

Trail train_config(const Setup& s, runtime::Engine& engine, int64_t workers, int steps) {
  auto options = worker_options(s.config, workers);
  REQUIRE_MESSAGE(options.ok(), (options.ok() ? "" : options.error().message()));
  auto runner = make_worker_runner(s.programs, engine, "none", *options);
  REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
  return train(s, **runner, engine, steps);
}

TEST_CASE("any mesh and either schedule gives the bits of one worker") {
  const Engines engines;
  for (const char* precision : {"f32", "p=f32,c=bfloat16"}) {
    const Setup alone = make_setup(on_mesh(kMeshes[0], train::ExchangeSchedule::kStep, precision));
    const Trail expected = train_alone(alone, 3);
    check_alive(expected);
    for (const MeshCase& mesh : kMeshes)
      for (const auto exchange : {train::ExchangeSchedule::kStep, train::ExchangeSchedule::kLayer}) {
        const Setup s = make_setup(on_mesh(mesh, exchange, precision));
        for (const int64_t workers : mesh.workers)
          CHECK_MESSAGE(same(train_config(s, *engines.compiled, workers, 3), expected),
                        fmt::format("{}, {} workers, {}, {}", mesh.name, workers,
                                    train::option_names(exchange)[static_cast<size_t>(exchange)], precision));
      }
  }
}

// A mixture that counts the rows of its experts and moves the router's bias by them.
Setup mixture_on(config::IntMap axes, std::map<std::string, std::string> axis_resources,
                 train::ExchangeSchedule exchange, const char* precision) {
  train::TrainConfig c =
      on_mesh({"", std::move(axes), {}, {}, std::move(axis_resources)}, exchange, precision, 5);
  auto& o = train::llama(c);
  o.family = models::DecoderOptions("decoder").family;
  o.num_experts = 5;
  o.track_expert_load = true;
  o.router_bias_update_rate = 0.01;
  o.router_aux_loss_coef = 0.1;
  return make_setup(std::move(c));
}

TEST_CASE("experts over a mesh axis: the bits of one worker, and the loads that it reports") {
  const Engines engines;
  const std::map<std::string, std::string> experts = {{"experts", "expert"}};
  const struct {
    config::IntMap axes;
    std::map<std::string, std::string> split;
    int64_t workers;
  } meshes[] = {{{{"expert", 2}}, experts, 2},
                {{{"data", -1}, {"expert", 3}}, experts, 6},
                {{{"data", -1}, {"expert", 2}, {"model", 2}}, {{"experts", "expert"}, {"mlp", "model"}}, 4},
                {{{"data", -1}, {"expert", 2}}, {{"experts", "expert"}, {"pos", "expert"}}, 4},
                {{{"replica", 1}, {"data", -1}}, {}, 3}};
  for (const char* precision : {"f32", "p=f32,c=bfloat16"}) {
    const Trail expected =
        train_alone(mixture_on({{"data", -1}}, {}, train::ExchangeSchedule::kStep, precision), 3);
    REQUIRE(expected.steps.back().expert_loads.size() == 1);
    CHECK(expected.steps.back().expert_loads[0].shape().str() == "f32[layers:2, experts:5]");
    for (const auto& mesh : meshes)
      for (const auto exchange : {train::ExchangeSchedule::kStep, train::ExchangeSchedule::kLayer}) {
        const Setup s = mixture_on(mesh.axes, mesh.split, exchange, precision);
        const Trail got = train_config(s, *engines.compiled, mesh.workers, 3);
        CHECK_MESSAGE(same(got, expected), fmt::format("{} workers, {}", mesh.workers, precision));
        for (size_t i = 0; i < got.steps.size(); ++i)
          CHECK(same(got.steps[i].expert_loads, expected.steps[i].expert_loads));
      }
    const Setup two = mixture_on({{"expert", 2}}, experts, train::ExchangeSchedule::kStep, precision);
    FaultyEngine wrong(loops(), "wrong_experts");
    CHECK_FALSE(same(train_config(two, wrong, 2, 2), expected));
  }
}

TEST_CASE("layer: fewer leaves than workers, fingerprints of leaves, the interpreter") {
  const Engines engines;
  for (const int64_t rows : {1, 2, 5}) {
    train::TrainConfig c = on_mesh(kMeshes[0], train::ExchangeSchedule::kLayer, "f32", rows);
    c.chain.leaf_gradients = true;
    const Setup s = make_setup(std::move(c));
    const Trail expected = train_alone(s, 2);
    for (const int64_t workers : {3, 4})
      CHECK(same(train_config(s, *engines.interpreter, workers, 2), expected));
  }
}

TEST_CASE("layer: controls that must fail") {
  const Setup s = make_setup(on_mesh(kMeshes[0], train::ExchangeSchedule::kLayer, "f32"));
  const Trail expected = train_alone(s, 2);
  for (const char* fault : {"", "leaf_order", "ring_order", "round_order"}) {
    FaultyEngine engine(loops(), fault);
    const Trail faulty = train_config(s, engine, 3, 2);
    CHECK(same(faulty, expected) == (*fault == '\0'));
    if (*fault == '\0') continue;
    // Only the order of the additions differs: the first step's losses are the same.
    CHECK(faulty.steps[0].loss() == expected.steps[0].loss());
    CHECK(faulty.steps[0].prints != expected.steps[0].prints);
  }
}

TEST_CASE("layer: a parameter that two mesh axes with leaves split is refused, with the key") {
  const Engines engines;
  train::TrainConfig c = on_mesh(kMeshes[2], train::ExchangeSchedule::kLayer, "f32");
  c.trainer.sharding.parameter_axis_resources = {{"mlp", "replica"}};
  const Setup s = make_setup(std::move(c));
  const auto runner =
      make_worker_runner(s.programs, *engines.compiled, "none", worker_options(s.config, 4).value());
  REQUIRE_FALSE(runner.ok());
  CHECK(runner.error().message().find("trainer.mesh.exchange: layer") != std::string::npos);
}

}  // namespace
}  // namespace ostro::fleet
