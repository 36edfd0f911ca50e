#include "ostro/audit/record/amend.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/chain/canonical.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {
namespace {

using Json = nlohmann::json;
using config::OptionInfo;

constexpr const char* kProgram = "program";  // not an option: the paths of options all contain a dot

// The value at a dotted path of nested objects; null if there is none.
template <class AnyJson>
AnyJson* find_value(AnyJson& config, const std::string& path) {
  AnyJson* at = &config;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(path.substr(begin, dot - begin));
    if (found == at->end()) return nullptr;
    at = &*found;
    begin = dot + 1;
  }
  return at;
}

struct OptionChange {
  std::string path;
  const OptionInfo* option = nullptr;  // null if no option has this path
};

// The options in which two canonical configs differ. A difference inside an option's value (for example the
// weight of one component) counts as one of that option.
std::vector<OptionChange> changed_options(const std::vector<OptionInfo>& options, const std::string& there,
                                          const std::string& here) {
  std::vector<OptionChange> out;
  for (const chain::ObjectDifference& d :
       chain::find_differences(there, here).value_or(std::vector<chain::ObjectDifference>())) {
    OptionChange change{d.path(), nullptr};
    for (const OptionInfo& o : options)
      if ((d.path() + ".").starts_with(o.path + ".") &&
          (change.option == nullptr || o.path.size() > change.option->path.size()))
        change.option = &o;
    // A section that only one side has (an adapter) is told by its type.
    for (const OptionInfo& o : options)
      if (change.option == nullptr && o.path == d.path() + ".type") change.option = &o;
    if (change.option != nullptr) change.path = change.option->path;
    if (out.empty() || out.back().path != change.path) out.push_back(std::move(change));
  }
  return out;
}

void erase_option(config::Node& tree, const std::string& path) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos)
    std::erase_if(tree.items, [&](const config::Node& item) { return item.key == path; });
  else if (config::Node* section = tree.find(path.substr(0, dot)); section != nullptr)
    erase_option(*section, path.substr(dot + 1));
}

template <class T>
config::Staged<T> spliced(const config::Staged<T>& before, const config::Staged<T>& now, int64_t step) {
  if (step == 0) return now;
  config::Staged<T> out = before;
  std::erase_if(out.stages, [&](const auto& stage) { return stage.step >= step; });
  const bool begins = std::any_of(now.stages.begin(), now.stages.end(),
                                  [&](const auto& stage) { return stage.step == step; });
  if (begins || now.at(step) != out.stages.back().value) out.stages.push_back({step, now.at(step)});
  for (const auto& stage : now.stages)
    if (stage.step > step) out.stages.push_back(stage);
  return out;
}

std::string difference_of(const std::vector<OptionInfo>& options, const Period& before, const Period& after) {
  const Json there = Json::parse(before.config), here = Json::parse(after.config);
  Json out = Json::object();
  for (const OptionChange& change : changed_options(options, before.config, after.config)) {
    if (const Json* value = find_value(there, change.path)) out[change.path]["from"] = *value;
    if (const Json* value = find_value(here, change.path)) out[change.path]["to"] = *value;
  }
  if (before.program_hash != after.program_hash)
    out[kProgram] = {{"from", before.program_hash}, {"to", after.program_hash}};
  return out.dump();
}

// Applies one member of an amend's difference to config and program. The error says in words why it does not
// fit.
Status apply_change(const std::vector<OptionInfo>& options, const std::string& path, const Json& change,
                    Json& config, std::string& program) {
  const auto known = [](const std::string& key) { return key == "from" || key == "to"; };
  if (!change.is_object() || change.empty() ||
      !std::all_of(change.items().begin(), change.items().end(),
                   [&](const auto& i) { return known(i.key()); }))
    return invalid_argument(fmt::format("\"{}\" is no object of \"from\" and \"to\"", path));
  const bool has_from = change.contains("from"), has_to = change.contains("to");
  if (has_from == has_to && (!has_from || change["from"] == change["to"]))
    return invalid_argument(fmt::format("\"{}\" changes nothing", path));
  const auto unlike = [&](const std::string& held) {
    return invalid_argument(fmt::format("\"{}\" is changed from {}, but was {}", path,
                                        has_from ? change["from"].dump() : "absent", held));
  };
  if (path == kProgram) {
    if (!has_from || change["from"] != program) return unlike(program);
    if (!has_to || !change["to"].is_string() || !chain::is_lower_hex(change["to"].get<std::string>(), 64))
      return invalid_argument("\"program\" is changed to what is no SHA-256");
    program = change["to"].get<std::string>();
    return {};
  }
  if (std::none_of(options.begin(), options.end(), [&](const OptionInfo& o) {
        return o.path == path && o.effect <= config::Effect::kSchedule && !o.by_content;
      }))
    return invalid_argument(fmt::format("\"{}\" is no option of the canonical config", path));
  const Json* held = find_value(config, path);
  if ((held != nullptr) != has_from || (held != nullptr && *held != change["from"]))
    return unlike(held != nullptr ? held->dump() : "absent");
  const size_t dot = path.rfind('.');
  Json* section = find_value(config, path.substr(0, dot));
  if (section == nullptr || !section->is_object())
    return invalid_argument(fmt::format("\"{}\" is in no section", path));
  if (has_to)
    (*section)[path.substr(dot + 1)] = change["to"];
  else
    section->erase(path.substr(dot + 1));
  return {};
}

}  // namespace

Result<std::vector<Period>> periods_of(const train::TrainConfig& options, const chain::Chain& chain,
                                       const std::string& where) {
  const std::vector<OptionInfo> infos = config::list_options(options);
  const chain::GenesisEntry& genesis = chain.genesis();
  std::vector<Period> periods = {{chain::entry_step(genesis), genesis.config, genesis.program_hash}};
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const auto* amend = std::get_if<chain::AmendEntry>(&chain.links[i].entry);
    if (amend == nullptr) continue;
    Period next{amend->step, "", periods.back().program_hash};
    Json config = Json::parse(periods.back().config);
    const Json difference = Json::parse(amend->difference);
    Status fits = difference.empty() ? Status(invalid_argument("it changes nothing")) : Status();
    for (const auto& [path, change] : difference.items())
      if (fits.ok()) fits = apply_change(infos, path, change, config, next.program_hash);
    next.config = config.dump();
    // A change has exactly one text. So an entry cannot be replaced by another that means the same.
    if (const std::string said = fits.ok() ? difference_of(infos, periods.back(), next) : "";
        fits.ok() && said != amend->difference)
      fits = invalid_argument(fmt::format("what it leads to is said otherwise: {}", said));
    if (!fits.ok())
      return corrupt(fmt::format("{}: line {}: the amend after step {}: {}", where, i + 1, amend->step,
                                 fits.error().message()));
    periods.push_back(std::move(next));
  }
  return periods;
}

std::string amend_difference(const train::TrainConfig& options, const Period& before, const Period& after) {
  return difference_of(config::list_options(options), before, after);
}

std::string amend_text(const std::string& difference) {
  std::string out;
  const Json changes = Json::parse(difference);
  for (const auto& [path, change] : changes.items()) {
    const auto value = [&change](const char* key) {
      return chain::readable_value(change.is_object() && change.contains(key) ? change[key].dump() : "");
    };
    out += fmt::format("{}{} from {} to {}", out.empty() ? "" : "; ", path, value("from"), value("to"));
  }
  return out;
}

Result<train::TrainConfig> config_of_period(const train::TrainConfig& base, const std::string& canonical) {
  const Json wanted = Json::parse(canonical);
  config::Node tree = config::write_value(base, config::Write::kAll);
  const std::vector<OptionInfo> options = config::list_options(base);
  for (const OptionChange& change : changed_options(options, train::canonical_text(base), canonical)) {
    if (const Json* value = find_value(wanted, change.path)) {
      RETURN_IF_ERROR(config::apply_override({change.path, chain::decimal_json(value->dump())}, &tree));
    } else if (change.option != nullptr && !change.option->left_out_at.empty()) {
      RETURN_IF_ERROR(config::apply_override({change.path, change.option->left_out_at}, &tree));
    } else {
      erase_option(tree, change.path);
    }
  }
  train::TrainConfig config(base.model.choices());
  RETURN_IF_ERROR(config::read_value(tree, "", &config));
  RETURN_IF_ERROR(config.resolve());
  if (const auto wrong = chain::object_differences(canonical, train::canonical_text(config)); !wrong.empty())
    return invalid_argument(fmt::format("no config is like that: {}", fmt::join(wrong, "; ")));
  return config;
}

Result<train::TrainConfig> continue_with(const train::TrainConfig& before, train::TrainConfig now,
                                         int64_t step) {
  now.data.train_weights = spliced(before.data.train_weights, now.data.train_weights, step);
  now.trainer.train_batch_size = spliced(before.trainer.train_batch_size, now.trainer.train_batch_size, step);
  if (step > 0 && now.numerics.leaf_is_default) {
    now.numerics.leaf_is_default = false;
    now.numerics.leaf_examples = before.numerics.leaf_examples;
    if (!now.check_leaf_examples(step).ok())
      now.numerics.leaf_examples = train::default_leaf_examples(
          train::sizes_from(now.trainer.train_batch_size, step), now.example_positions());
  }
  RETURN_IF_ERROR(now.resolve());
  RETURN_IF_ERROR(now.check_leaf_examples(step));
  return now;
}

std::vector<std::string> fixed_differences(const train::TrainConfig& options, const std::string& there,
                                           const std::string& here) {
  std::vector<std::string> out;
  const std::vector<OptionInfo> infos = config::list_options(options);
  const Json a = Json::parse(there), b = Json::parse(here);
  for (const OptionChange& change : changed_options(infos, there, here)) {
    if (change.option == nullptr || change.option->fixed.empty()) continue;
    const auto value = [&](const Json& config) {
      const Json* held = find_value(config, change.path);
      return chain::readable_value(held != nullptr ? held->dump() : "");
    };
    out.push_back(fmt::format("{} is {} there and {} here ({})", change.path, value(a), value(b),
                              change.option->fixed));
  }
  return out;
}

Status check_amend(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step) {
  const std::string there = train::canonical_text(before), here = train::canonical_text(after);
  if (const auto fixed = fixed_differences(before, there, here); !fixed.empty())
    return invalid_argument(fmt::format("options that no amend can change: {}", fmt::join(fixed, "; ")));
  if (train::numerics_options(before) != train::numerics_options(after))
    return invalid_argument(fmt::format(
        "options that no amend can change: trainer.mp is {} there and {} here (the genesis says whether "
        "products are of integers)",
        before.trainer.mp, after.trainer.mp));
  ASSIGN_OR_RETURN(const train::TrainConfig honest, continue_with(before, after, step));
  if (const auto early = chain::object_differences(train::canonical_text(honest), here); !early.empty())
    return invalid_argument(
        fmt::format("stages before step {} are others: {}", step, fmt::join(early, "; ")));
  if (after.trainer.num_train_steps <= step)
    return config::option_error(
        "trainer.num_train_steps",
        fmt::format("{} leaves nothing to do after step {}, where the run is amended; use {} or more",
                    after.trainer.num_train_steps, step, step + 1));
  return {};
}

std::string program_file(const chain::GenesisEntry& genesis, const std::string& program_hash) {
  return program_hash == genesis.program_hash ? kProgramFile : fmt::format("program-{:.16}.ir", program_hash);
}

}  // namespace ostro::audit
