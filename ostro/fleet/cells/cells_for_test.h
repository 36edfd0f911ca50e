// MeshCase, CellSetup: a tiny model on meshes, and its states, whole and in cells, for tests.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/options/llama_for_test.h"

namespace ostro::fleet {

struct MeshCase {
  std::string name;
  ir::Sharding sharding;
  config::IntMap cells, leaves;
};

// Meshes with cells that one worker owns whole, cells of which several own a part, leaves that are no cells
// (vocab and mlp are rounded up to 8), replicas, parameters that are not split, and borders inside the words
// of a fingerprint.
inline std::vector<MeshCase> mesh_cases() {
  const ir::AxisMap embed{{"embed", "data"}};
  const ir::AxisMap tensor{{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}};
  ir::AxisMap both = tensor;
  both.insert(both.end(), embed.begin(), embed.end());
  const config::IntMap cells{{"embed", 4}}, leaves{{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}};
  return {{"one", {{{{"data", 1}}}, {}, embed}, cells, {}},
          {"data 2", {{{{"data", 2}}}, {}, embed}, cells, {}},
          {"data 3, no cells", {{{{"data", 3}}}, {}, embed}, {}, {}},
          {"data 7, no cells", {{{{"data", 7}}}, {}, embed}, {}, {}},
          {"data 3, cells", {{{{"data", 3}}}, {}, embed}, {{"embed", 5}, {"mlp", 3}}, {}},
          {"nothing split", {{{{"data", 3}}}, {}, {}}, cells, {}},
          {"replica x data", {{{{"replica", 2}, {"data", 2}}}, {}, embed}, cells, {}},
          {"data x model", {{{{"data", 2}, {"model", 2}}}, tensor, both}, cells, leaves}};
}

struct CellSetup {
  train::TrainConfig config;
  train::CanonicalPrograms programs;
  std::unique_ptr<runtime::Engine> engine = interp::make_interpreter();
  WorkerPlan plan;
};

inline std::unique_ptr<CellSetup> setup_of(const MeshCase& mesh, int64_t replicas = 1) {
  auto s = std::make_unique<CellSetup>();
  auto& o = train::llama(s->config);
  o.seq_len = 6;
  o.hidden_dim = 12;
  o.intermediate_dim = 24;
  o.num_layers = 2;
  o.num_heads = 2;
  o.num_kv_heads = 2;
  s->config.data.train_urls = {"text"};
  s->config.trainer.train_batch_size = 8;
  s->config.numerics.leaf_examples = 1;
  s->config.numerics.cells = mesh.cells;
  s->config.numerics.leaves = mesh.leaves;
  check_ok(s->config.resolve());
  s->programs = train::make_programs(s->config,
                                     s->config.model_options().functions(19, train::compute_dtype(s->config)))
                    .value();
  WorkerOptions options;
  options.sharding = mesh.sharding;
  options.cells = mesh.cells;
  options.state_replicas = replicas;
  auto plan = make_worker_plan(s->programs, *s->engine, "none", options);
  REQUIRE_MESSAGE(plan.ok(), mesh.name, (plan.ok() ? "" : plan.error().message()));
  s->plan = std::move(plan).value();
  return s;
}

// A state whose elements all differ.
inline train::State numbered_state(const WorkerPlan& plan, int64_t step) {
  train::State state{step, {}, {}};
  float next = static_cast<float>(step);
  for (size_t k = 0; k < plan.arrays.size(); ++k) {
    auto& list = train::list_of(state, k, plan.n);
    list.push_back(runtime::Buffer::empty(plan.shape(k)));
    for (float& x : list.back().mutable_as<float>()) x = next += 0.5f;
  }
  return state;
}

inline train::State cells_of_rank(const WorkerPlan& plan, int64_t rank, const train::State& whole) {
  train::State out{whole.step, {}, {}};
  for (size_t k = 0; k < plan.arrays.size(); ++k)
    train::list_of(out, k, plan.n)
        .push_back(spmd::shard(plan.mesh(), rank, plan.owned(k), train::array_of(whole, k)));
  return out;
}

// The copy that `rank` keeps of what another worker owns.
inline train::State mirror_of_rank(const WorkerPlan& plan, int64_t rank, const train::State& whole) {
  const std::optional<int64_t> other = plan.mirror_of(rank);
  if (!other) return {};
  const train::State cells = cells_of_rank(plan, *other, whole);
  train::State out{whole.step, {}, {}};
  for (const size_t k : plan.mirrored) train::list_of(out, k, plan.n).push_back(train::array_of(cells, k));
  return out;
}

inline bool same_arrays(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i)
    equal = a[i].shape() == b[i].shape() &&
            std::memcmp(a[i].bytes().data(), b[i].bytes().data(), a[i].bytes().size()) == 0;
  return equal;
}

inline bool same_state(const train::State& a, const train::State& b) {
  return a.step == b.step && same_arrays(a.params, b.params) && same_arrays(a.optimizer, b.optimizer);
}

}  // namespace ostro::fleet
