// What workers hold and send is known before the first step: to the byte by the load, within 2 % by the
// formula of docs/spec/spmd.md.
#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/workers/leaf_runs.h"
#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

std::unique_ptr<runtime::Engine> plain_engine() {
  return cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value();
}

int64_t total(const std::vector<train::WorkerLoad>& loads) {
  int64_t bytes = 0;
  for (const train::WorkerLoad& load : loads) bytes += load.total_sent();
  return bytes;
}

TEST_CASE("loads: bytes are those that are sent, on every mesh and with both schedules") {
  struct Case {
    config::IntMap axes;
    int64_t workers;
    std::vector<std::string> tensor_parallel = {};
    bool leaf_gradients = false;
  };
  const auto engine = plain_engine();
  for (const Case& mesh : std::vector<Case>{{{{"data", -1}}, 2},
                                            {{{"data", -1}}, 3, {}, true},
                                            {{{"data", -1}}, 5},
                                            {{{"data", -1}}, 9},
                                            {{{"replica", 2}, {"data", -1}}, 4},
                                            {{{"data", -1}, {"model", 2}}, 4, {"kv_heads", "mlp", "vocab"}}})
    for (const auto exchange : {train::ExchangeSchedule::kStep, train::ExchangeSchedule::kLayer})
      for (const spmd::Cells& cells : std::vector<spmd::Cells>{{{"embed", 1}}, {{"embed", 4}}, {}}) {
        train::TrainConfig c = tiny_config(7, cells);
        train::llama(c).num_kv_heads = 2;
        c.numerics.leaves = {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}};
        c.chain.leaf_gradients = mesh.leaf_gradients;
        c.trainer.sharding.mesh.axes = mesh.axes;
        c.trainer.sharding.mesh.exchange = exchange;
        c.trainer.sharding.tensor_parallel_axes = mesh.tensor_parallel;
        const Setup s = make_setup(std::move(c));
        const auto options = worker_options(s.config, mesh.workers).value();
        auto runner = make_worker_runner(s.programs, *engine, "none", options).value();
        const std::vector<train::WorkerLoad> loads = runner->loads(7);
        REQUIRE(loads.size() == static_cast<size_t>(mesh.workers));
        CHECK(mesh_loads(s.programs, *engine, "none", options, 7)->workers == loads);
        int64_t leaves = 0;
        for (const train::WorkerLoad& load : loads) {
          leaves += load.leaves;
          CHECK((load.gathered == 0 || exchange == train::ExchangeSchedule::kStep));
          // Nine tell each other of their leaves in four rounds, fewer at once.
          for (const train::Sent& sent : load.sent)
            if (sent.what == kResultsOfLeaves) CHECK(sent.times == (mesh.workers == 9 ? 4 : 1));
        }
        CHECK(leaves % 7 == 0);
        CHECK(train(s, *runner, *engine, 1).bytes == total(loads));
      }
  const Setup s = tiny(7, {});
  const auto alone = train::make_step_runner(s.programs, *engine, "none").value()->loads(7);
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].leaves == 7);
  CHECK(alone[0].sent.empty());
}

// The formula of docs/spec/spmd.md, "What workers hold and send", for all W workers of the mesh axis data
// together.
struct Traffic {
  double step = 0, layer = 0;
};
Traffic formula(const train::CanonicalPrograms& programs, int64_t leaves, int64_t workers,
                int64_t compute_bytes) {
  const auto w = static_cast<double>(workers), l = static_cast<double>(leaves);
  double parameters = 0, uses = 0;
  const size_t n = programs.init.body.results.size();
  for (size_t k = 0; k < n; ++k) {
    const ir::Shape& shape = programs.leaf.body.shape(programs.leaf.body.params[k]);
    parameters += static_cast<double>(shape.count());
    uses += static_cast<double>(shape.count()) * (shape.has("layers") ? 2 : 1);
  }
  double subtrees_of_all = 0;
  for (int64_t rank = 0; rank < workers; ++rank)
    subtrees_of_all +=
        static_cast<double>(train::subtrees(leaves, train::leaf_range(leaves, workers, rank)).size());
  const double rounds = std::ceil(l / w);
  return {4 * parameters * (w - 1) * (subtrees_of_all / w + 1),
          4 * parameters * (w - 1) * l / w + static_cast<double>(compute_bytes) * uses * (w - 1) * rounds};
}

TEST_CASE("loads: the formula of docs/spec/spmd.md is within 2 % of what is sent") {
  const auto engine = plain_engine();
  for (const int64_t workers : {2, 3, 4, 8})
    for (const auto exchange : {train::ExchangeSchedule::kStep, train::ExchangeSchedule::kLayer})
      for (const bool bf16 : {false, true}) {
        train::TrainConfig c = tiny_config(8, {{"embed", 24}});
        train::llama(c).hidden_dim = 48;
        train::llama(c).intermediate_dim = 96;
        c.trainer.watch_norms = {};  // the formula counts gradients and parameters alone
        c.trainer.mp = bf16 ? "p=f32,c=bfloat16" : "f32";
        c.trainer.sharding.mesh.axes = {{"data", -1}};
        c.trainer.sharding.mesh.exchange = exchange;
        c.trainer.sharding.mesh.state_replicas = 0;
        const Setup s = make_setup(std::move(c));
        auto runner =
            make_worker_runner(s.programs, *engine, "none", *worker_options(s.config, workers)).value();
        const auto sent = static_cast<double>(train(s, *runner, *engine, 1).bytes);
        CHECK(sent == static_cast<double>(total(runner->loads(8))));
        const Traffic traffic = formula(s.programs, 8, workers, bf16 ? 2 : 4);
        const double expected = exchange == train::ExchangeSchedule::kStep ? traffic.step : traffic.layer;
        CHECK_MESSAGE(std::abs(sent / expected - 1) < 0.02, workers, " workers: ", sent, ", formula ",
                      expected);
      }
}

TEST_CASE("loads: under layer a worker holds its share, one layer, and partial sums") {
  const auto engine = plain_engine();
  for (const int64_t workers : {2, 4}) {
    train::TrainConfig c = tiny_config(8, {{"embed", 24}});
    train::llama(c).hidden_dim = 48;
    train::llama(c).num_layers = 6;
    c.trainer.sharding.mesh.axes = {{"data", -1}};
    c.trainer.sharding.mesh.exchange = train::ExchangeSchedule::kLayer;
    const Setup s = make_setup(std::move(c));
    const MeshLoads loads =
        mesh_loads(s.programs, *engine, "none", *worker_options(s.config, workers), 8).value();
    int64_t all = 0, tables = 0, layer = 0;  // bytes of parameters
    for (size_t k = 0; k < s.programs.init.body.results.size(); ++k) {
      const ir::Shape& shape = s.programs.leaf.body.shape(s.programs.leaf.body.params[k]);
      all += shape.bytes();
      (shape.has("layers") ? layer : tables) += shape.has("layers") ? shape.bytes() / 6 : shape.bytes();
    }
    for (const train::WorkerLoad& load : loads.workers) {
      CHECK(load.owned == 3 * all / workers);
      CHECK(load.copies == 3 * all / workers);
      CHECK(load.gathered == 0);
      CHECK(load.gradients == load.partials * all / workers);
      CHECK(load.layer_gradients <= std::max(layer, tables));
      CHECK(load.layer_parameters <= std::max(layer, tables));
    }
  }
}

}  // namespace
}  // namespace ostro::fleet
