#include "ostro/train/step/remat_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/units.h"

namespace ostro::train {
namespace {

void collect_labels(const ir::Block& block, bool in_loop, std::vector<std::string>& labels) {
  for (const ir::Op& op : block.ops) {
    if (in_loop && !op.label.empty() && std::find(labels.begin(), labels.end(), op.label) == labels.end())
      labels.push_back(op.label);
    for (const ir::Block& region : op.regions) collect_labels(region, true, labels);
  }
}

}  // namespace

std::vector<std::string> remat_policies(const CanonicalPrograms& programs, const std::string& configured) {
  std::vector<std::string> labels, policies = {"keep", "none", "all"};
  collect_labels(programs.leaf.body, false, labels);
  for (const std::string& label : labels) policies.push_back("save:" + label);
  if (std::find(policies.begin(), policies.end(), configured) == policies.end())
    policies.push_back(configured);
  return policies;
}

int64_t peak_bytes(const WorkerLoad& load, int64_t leaf_arena, int64_t update_arena) {
  return load.held() + leaf_arena + update_arena;
}

Result<std::string> remat_table(const CanonicalPrograms& programs, runtime::Engine& engine,
                                const ir::Program& leaf_program, const std::string& configured,
                                const WorkerLoad& load, int64_t update_arena) {
  std::string out = fmt::format(
      "peak memory of a step on worker 0, and what each rematerialisation policy would give:\n"
      "  {:<28}{:>12}{:>16}{:>14}{:>12}\n",
      "policy", "peak MiB", "leaf arena MiB", "leaf GFLOP", "recomputed");
  double base = 0;
  for (const std::string& policy : remat_policies(programs, configured)) {
    ASSIGN_OR_RETURN(const runtime::ExecutableInfo leaf, engine.estimate(leaf_program, leaf_options(policy)));
    if (policy == "keep") base = leaf.flops;
    out += fmt::format("  {:<28}{:>12.1f}{:>16.1f}{:>14.2f}{:>10.1f} %{}\n", policy,
                       mib(peak_bytes(load, leaf.arena_bytes, update_arena)), mib(leaf.arena_bytes),
                       leaf.flops * 1e-9, base > 0 ? 100 * (leaf.flops / base - 1) : 0.0,
                       policy == configured ? "  <- this config" : "");
  }
  return out;
}

}  // namespace ostro::train
