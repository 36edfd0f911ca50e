#include "ostro/experiment/plan/phases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ostro/experiment/plan/declared.h"
#include "ostro/experiment/plan/seeds.h"

namespace ostro::lab {
namespace {

using config::Node;

constexpr int64_t kMostWorkers = 1024;

// An integer from `least` to `most`; nothing for another value.
std::optional<int64_t> integer(const Node* node, int64_t least, int64_t most) {
  if (node == nullptr || node->kind != Node::Kind::kInt || node->text.size() > 18) return std::nullopt;
  const int64_t value = std::stoll(node->text);
  return value >= least && value <= most ? std::optional(value) : std::nullopt;
}

Status read_phase(Node& phase, const std::string& what, int64_t after) {
  RETURN_IF_ERROR(check_keys(phase, what, {"name", "to", "set", "workers", "data"}));
  if (!integer(phase.find("to"), after + 1, INT64_MAX))
    return plan_error(phase,
                      fmt::format("{}to: expected the step after which it ends, above {}", what, after));
  if (phase.find("workers") != nullptr && !integer(phase.find("workers"), 1, kMostWorkers))
    return plan_error(phase, fmt::format("{}workers: expected a number from 1 to {}", what, kMostWorkers));
  const Node* set = phase.find("set");
  if (set == nullptr) {
    phase.put("set", Node::map());
    set = phase.find("set");
  }
  if (set->kind != Node::Kind::kMap) return plan_error(*set, what + "set: expected a map of options");
  for (const Node& option : set->items)
    for (const char* path : {"trainer.num_train_steps", "optimizer.schedule_from"})
      if (option.key == path)
        return plan_error(option, fmt::format("{}set: {} follows from the phases; leave it out", what, path));
  if (has_seeds(*set))
    return plan_error(*set, what + "set: a seed of the registration can stand in `set` of the training");
  std::vector<Node> adds;
  if (const Node* data = phase.find("data"); data != nullptr)
    for (const Node& part : data->items) adds.push_back(Node::string(part.key));
  std::erase_if(phase.items, [](const Node& item) { return item.key == "data"; });
  phase.put("data", Node::list(std::move(adds)));
  return {};
}

}  // namespace

Status read_phases(Node& phases, const std::string& step) {
  std::set<std::string> names;
  int64_t after = 0;
  for (Node& phase : phases.items) {
    const Node* name = phase.kind == Node::Kind::kMap ? phase.find("name") : nullptr;
    if (name == nullptr || name->kind != Node::Kind::kString)
      return plan_error(phase, fmt::format("step {}: phases: a phase has no name", step));
    RETURN_IF_ERROR(check_name(*name, name->text));
    if (!names.insert(name->text).second)
      return plan_error(*name, fmt::format("step {}: phases: {} is there twice", step, name->text));
    RETURN_IF_ERROR(read_phase(phase, fmt::format("step {}: phase {}: ", step, name->text), after));
    after = std::stoll(phase.find("to")->text);
  }
  return {};
}

std::vector<Phase> phases_of(const Plan& plan, const Step& step) {
  std::vector<Phase> out;
  const Node* phases = step.parameters.find("phases");
  if (phases == nullptr) return out;
  int64_t before = 0;  // where the phase before it ends in the plan
  for (const Node& node : phases->items) {
    Phase phase;
    phase.name = node.find("name")->text;
    phase.from = out.empty() ? 0 : out.back().to;
    const int64_t to = std::stoll(node.find("to")->text);
    phase.to = plan.sanity ? phase.from + std::min(to - before, kSanityPhaseSteps) : to;
    before = to;
    phase.workers = integer(node.find("workers"), 1, kMostWorkers);
    phase.set = *node.find("set");
    for (const Node& name : node.find("data")->items) phase.adds.push_back(name.text);
    out.push_back(std::move(phase));
  }
  return out;
}

std::vector<std::string> phase_lines(const Plan& plan, const Step& step) {
  std::vector<std::string> out;
  for (const Phase& phase : phases_of(plan, step)) {
    std::string text = fmt::format("phase {}: steps {} to {}", phase.name, phase.from + 1, phase.to);
    if (phase.workers) text += fmt::format(", {} worker{}", *phase.workers, *phase.workers == 1 ? "" : "s");
    if (!phase.adds.empty()) text += fmt::format(", with {}", fmt::join(phase.adds, " and "));
    for (const Node& option : phase.set.items)
      text += fmt::format("; {} {}", option.key, config::flow_text(option));
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace ostro::lab
