// The two forms of a Lineage.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/one_line.h"
#include "ostro/chain/canonical.h"
#include "ostro/lineage/lineage.h"

namespace ostro::lineage {
namespace {

using OrderedJson = nlohmann::ordered_json;

// "; checkpoints of steps 5, 10, 15"; of many the first and the last, and their number. Empty: there is none.
std::string checkpoints_text(const std::vector<chain::CheckpointEntry>& checkpoints) {
  constexpr size_t kMany = 8;
  if (checkpoints.empty()) return "";
  if (checkpoints.size() == 1) return fmt::format("; checkpoint of step {}", checkpoints[0].step);
  std::vector<int64_t> steps;
  for (const chain::CheckpointEntry& c : checkpoints) steps.push_back(c.step);
  if (steps.size() > kMany)
    return fmt::format("; {} checkpoints of steps {} to {}", steps.size(), steps.front(), steps.back());
  return fmt::format("; checkpoints of steps {}", fmt::join(steps, ", "));
}

// What it says may come from a stranger's file, such as the name of another one.
std::string line(const std::string& steps, const std::string& what) {
  return fmt::format("  {:>15}  {}\n", steps, one_line(what));
}

std::string changes_text(const std::string& difference) {
  return difference.empty() || difference == "{}" ? "nothing" : audit::amend_text(difference);
}

std::string beginning_text(const Lineage& run) {
  const chain::GenesisEntry& genesis = run.chain.genesis();
  const std::string at = std::to_string(genesis.step());
  if (genesis.fork) {
    std::string out = line(at, fmt::format("{}fork of {}, with its state {}",
                                           run.parent ? "" : "its genesis says: ", genesis.fork->head,
                                           genesis.initial.value_or("(none)")));
    if (run.parent) return out + line("", "changed: " + changes_text(run.difference));
    return out + line("", "the parent's chain is not here, so what changed is not known");
  }
  std::string out;
  if (genesis.maker)
    out = line(
        at, fmt::format("its genesis says: begins with the published state {} of {}{}", genesis.maker->state,
                        genesis.maker->head, run.maker ? "" : ", whose chain is not here"));
  else if (genesis.origin)
    out = line(at, "its genesis says: begins with an imported model");
  else if (genesis.initial)
    out = line(at, "begins with the parameters of a checkpoint");
  else
    out = line(at, "begins from scratch");
  if (genesis.initial) out += line("", "state before the first step: " + *genesis.initial);
  if (!genesis.origin) return out;
  const auto origin = nlohmann::json::parse(*genesis.origin, nullptr, /*allow_exceptions=*/false);
  if (!origin.is_object() || !origin.contains("files") || !origin["files"].is_object()) return out;
  for (const auto& [name, hash] : origin["files"].items())
    out +=
        line("", fmt::format("from {}, SHA-256 {}", name, hash.is_string() ? hash.get<std::string>() : "?"));
  return out;
}

std::string phase_text(const Phase& phase) {
  std::string out;
  if (!phase.difference.empty())
    out += line(std::to_string(phase.first), "amended: " + changes_text(phase.difference));
  if (phase.last == phase.first) return out;
  out += line(phase.first + 1 == phase.last ? std::to_string(phase.last)
                                            : fmt::format("{} to {}", phase.first + 1, phase.last),
              fmt::format("loss {:.4f} to {:.4f}, {} tokens{}", phase.first_loss, phase.last_loss,
                          phase.tokens, checkpoints_text(phase.checkpoints)));
  return out;
}

// `taken`: the head and step at which the next run begins; nothing for the run that was asked about.
std::string run_text(const Lineage& run, const std::string& taken) {
  std::string out;
  if (run.maker)
    out += run_text(*run.maker, fmt::format("the state that {} begins with, as its genesis says", run.path));
  if (run.parent) out += run_text(*run.parent, fmt::format("forked: {} goes on here", run.path));
  out += fmt::format("{}  {}\n", one_line(run.path), run.chain.head());
  out += beginning_text(run);
  for (const Phase& phase : run.phases) out += phase_text(phase);
  const std::string last = std::to_string(run.chain.last_step());
  for (const KnownFork& fork : run.forks)
    out += line(std::to_string(fork.step), fmt::format("fork: {}  {}", fork.path, fork.head));
  if (!taken.empty()) return out + line(last, taken);
  const bool ends = !run.length || run.chain.last_step() >= *run.length;
  return out + line(last, ends ? "end" : fmt::format("not finished: {} of {} steps", last, *run.length));
}

OrderedJson difference_json(const std::string& difference) {
  if (difference.empty()) return {};
  return OrderedJson::parse(chain::decimal_json(difference));
}

OrderedJson run_json(const Lineage& run) {
  const chain::GenesisEntry& genesis = run.chain.genesis();
  OrderedJson out = {{"path", run.path}, {"head", run.chain.head()}, {"steps", run.chain.last_step()}};
  out["length"] = run.length ? OrderedJson(*run.length) : OrderedJson();
  OrderedJson& begins = out["beginning"] = {{"step", genesis.step()},
                                            {"genesis", run.chain.links.front().hash},
                                            {"initial", nullptr},
                                            {"origin", nullptr},
                                            {"fork", nullptr},
                                            {"maker", nullptr},
                                            {"difference", difference_json(run.difference)}};
  if (genesis.initial) begins["initial"] = *genesis.initial;
  if (genesis.origin) begins["origin"] = OrderedJson::parse(*genesis.origin, nullptr, false);
  if (genesis.fork) begins["fork"] = {{"head", genesis.fork->head}, {"step", genesis.fork->step}};
  if (genesis.maker) begins["maker"] = {{"head", genesis.maker->head}, {"state", genesis.maker->state}};
  out["phases"] = OrderedJson::array();
  for (const Phase& phase : run.phases) {
    OrderedJson one = {{"first", phase.first},           {"last", phase.last},
                       {"first_loss", phase.first_loss}, {"last_loss", phase.last_loss},
                       {"tokens", phase.tokens},         {"difference", difference_json(phase.difference)}};
    one["checkpoints"] = OrderedJson::array();
    for (const chain::CheckpointEntry& c : phase.checkpoints)
      one["checkpoints"].push_back({{"step", c.step}, {"name", c.name}});
    out["phases"].push_back(std::move(one));
  }
  out["forks"] = OrderedJson::array();
  for (const KnownFork& fork : run.forks)
    out["forks"].push_back({{"step", fork.step}, {"path", fork.path}, {"head", fork.head}});
  out["parent"] = run.parent ? run_json(*run.parent) : OrderedJson();
  out["maker"] = run.maker ? run_json(*run.maker) : OrderedJson();
  return out;
}

}  // namespace

std::string lineage_text(const Lineage& lineage) { return run_text(lineage, ""); }

std::string lineage_json(const Lineage& lineage) {
  return run_json(lineage).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ostro::lineage
