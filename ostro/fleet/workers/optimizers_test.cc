// Every optimizer on meshes of workers: the states of one process, bit for bit. Some need no other worker for
// their update, others sum over axes that workers share, or need whole matrices.
#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

std::vector<optim::OptimizerOptions> all_optimizers() {
  std::vector<optim::OptimizerOptions> out;
  [&]<typename... Ts>(std::variant<Ts...>*) {
    (out.emplace_back(Ts{}), ...);
  }(static_cast<optim::OptimizerOptions*>(nullptr));
  optim::AdamOptions adam;
  adam.cautious = true, adam.ema_beta = 0.9;
  out.emplace_back(adam);
  optim::AdamOptions groups;
  groups.groups["mlp"] = {{"*/mlp/*"}, 0.5, 0.2, 0.3};
  groups.groups["norms"] = {{"*norm*"}, 2, {}, 0.1};
  groups.groups["qkv"] = {{"*/qkv/*"}, 1, {}, {}, 0.02, optim::MuonRule()};
  groups.groups["embedding"] = {{"*embedding*"}, 1, {}, {}, {}, optim::AdafactorRule()};
  out.emplace_back(groups);
  for (auto& options : out)
    if (auto* o = std::get_if<optim::AdafactorOptions>(&options)) o->min_dim_size_to_factor = 4;
  for (auto& [name, group] : std::get<optim::AdamOptions>(out.back()).groups)
    if (auto* o = std::get_if<optim::AdafactorRule>(&group.optimizer)) o->min_dim_size_to_factor = 4;
  return out;
}

std::string name_of(const optim::OptimizerOptions& options) {
  return std::visit([](const auto& o) { return std::string(o.kType); }, options);
}

Setup with_optimizer(const optim::OptimizerOptions& options, const config::IntMap& leaves) {
  train::TrainConfig c = tiny_config(6, {{"embed", 4}});
  train::llama(c).num_kv_heads = 2;
  train::llama(c).intermediate_dim = 24;
  c.numerics.leaves = leaves;
  c.optimizer = options;
  std::visit([](auto& o) { o.learning_rate = 1e-2, o.warmup = 0; }, c.optimizer);
  return make_setup(std::move(c));
}

TEST_CASE("every optimizer: workers that split embed have the states of one process") {
  for (const auto& options : all_optimizers()) {
    const Setup s = with_optimizer(options, {});
    const Trail alone = train_alone(s, 3);
    check_alive(alone);
    for (const int64_t workers : {2, 3})
      for (const int64_t replicas : {0, 1}) {
        WorkerOptions mesh = data_parallel(workers, s.config.numerics.cells);
        mesh.state_replicas = replicas;
        CHECK_MESSAGE(same(train_on(s, mesh, 3), alone), name_of(options), " on ", workers);
      }
  }
}

TEST_CASE("every optimizer: data x model workers have the states of one process") {
  const ir::AxisMap tensor{{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}};
  ir::AxisMap both = tensor;
  both.emplace_back("embed", "data");
  for (const auto& options : all_optimizers()) {
    const Setup s = with_optimizer(options, {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}});
    const Trail alone = train_alone(s, 2);
    WorkerOptions mesh{{{{{"data", 2}, {"model", 2}}}, tensor, both}, s.config.numerics.cells};
    mesh.state_replicas = 1;
    CHECK_MESSAGE(same(train_on(s, mesh, 2), alone), name_of(options));
    mesh = {{{{{"replica", 2}, {"data", 2}}}, {}, {{"embed", "data"}}}, s.config.numerics.cells};
    CHECK_MESSAGE(same(train_on(s, mesh, 2), alone), name_of(options));
  }
}

}  // namespace
}  // namespace ostro::fleet
