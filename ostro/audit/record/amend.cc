#include "ostro/audit/record/amend.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/batches/loader/data_set.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/data_record.h"
#include "ostro/io/files/plain_path.h"
#include "ostro/train/programs/programs.h"

namespace ostro::audit {
namespace {

using Json = nlohmann::json;
using config::OptionInfo;

// Members that are not options: the paths of options all contain a dot.
constexpr const char *kProgram = "program", *kData = "data", *kDataRoots = "data_roots";
constexpr const char* kComponents = "data.components";

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
  const auto put = [&out](const char* member, const Json& from, const Json& to) {
    if (from != to) out[member] = {{"from", from}, {"to", to}};
  };
  put(kProgram, before.program_hash, after.program_hash);
  put(kData, before.data_hash, after.data_hash);
  put(kDataRoots, before.data_roots, after.data_roots);
  return out.dump();
}

// Whether the member is a map from names of components to hashes.
bool is_roots(const Json& value) {
  return value.is_object() && std::all_of(value.items().begin(), value.items().end(), [](const auto& item) {
           return io::is_plain_path(item.key()) && item.value().is_string() &&
                  chain::is_lower_hex(item.value().template get<std::string>(), 64);
         });
}

// Components and data of two periods that follow each other. An amend may add components, and then names the
// data with them; what there was stays. The error says in words what does not fit.
Status check_added_data(const Period& before, const Period& after) {
  const std::set<std::string> there = chain::component_names(before.config),
                              here = chain::component_names(after.config);
  const bool adds = there != here, other_data = before.data_hash != after.data_hash;
  if (adds != other_data)
    return invalid_argument(adds ? "it adds components, but names no data with them (\"data\")"
                                 : "it names other data, but adds no component");
  // A genesis of format 1 has no roots.
  if (before.data_roots.empty() && after.data_roots.empty()) return {};
  std::set<std::string> rooted;
  for (const auto& [name, root] : after.data_roots) rooted.insert(name);
  const bool grown = std::all_of(before.data_roots.begin(), before.data_roots.end(), [&](const auto& root) {
    const auto found = after.data_roots.find(root.first);
    return found != after.data_roots.end() && found->second == root.second;
  });
  if (before.data_roots == after.data_roots ? !adds : grown && rooted == here) return {};
  return invalid_argument(
      "its \"data_roots\" are not those of before with one for each component that it adds");
}

// Applies one member of an amend's difference to a period, whose config is `config`. The error says in words
// why it does not fit.
Status apply_change(const std::vector<OptionInfo>& options, const std::string& path, const Json& change,
                    Json& config, Period& next) {
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
  if (path == kProgram || path == kData) {
    std::string& hash = path == kProgram ? next.program_hash : next.data_hash;
    if (!has_from || change["from"] != hash) return unlike(hash);
    if (!has_to || !change["to"].is_string() || !chain::is_lower_hex(change["to"].get<std::string>(), 64))
      return invalid_argument(fmt::format("\"{}\" is changed to what is no SHA-256", path));
    hash = change["to"].get<std::string>();
    return {};
  }
  if (path == kDataRoots) {
    if (const Json held = next.data_roots; !has_from || change["from"] != held) return unlike(held.dump());
    if (!has_to || !is_roots(change["to"]))
      return invalid_argument("\"data_roots\" is changed to what is no object of components and hashes");
    next.data_roots = change["to"].get<std::map<std::string, std::string>>();
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

// Gives `tree` the components that a canonical config has. Those that are there keep what no canonical config
// holds, such as their paths.
Status set_components(const Json& wanted, const Json& held, config::Node& tree) {
  config::Node& components = *tree.find("data")->find("components");
  std::erase_if(components.items, [&](const config::Node& c) {
    return !wanted.contains(c.key) || !held.contains(c.key) || held[c.key] != wanted[c.key];
  });
  for (const auto& [name, value] : wanted.items()) {
    if (components.find(name) != nullptr) continue;
    config::Node one = config::Node::map();
    RETURN_IF_ERROR(config::apply_override({"component", chain::decimal_json(value.dump())}, &one));
    components.put(name, std::move(one.items[0]));
  }
  return {};
}

// Why data.components cannot become that of `here`; empty when it only grows.
std::string obstacle(const Json& there, const Json& here) {
  if (!there.is_object() || there.empty())
    return "the run began without components, with one data set of no name";
  for (const auto& [name, value] : there.items()) {
    if (!here.is_object() || !here.contains(name)) return fmt::format("{} would be removed", name);
    if (here[name] != value) return fmt::format("{} would be another", name);
  }
  return "";
}

// The weights of a config's components, with the one that a single component need not have.
config::Staged<data::Weights> all_weights(const data::DataOptions& options) {
  config::Staged<data::Weights> weights = options.train_weights;
  if (options.components.size() == 1 && weights.stages.size() == 1 && weights.stages[0].value.empty())
    weights.stages[0].value[options.components.begin()->first] = 1;
  return weights;
}

// The batches of steps that are done would have another form with these components.
Status check_added_components(const train::TrainConfig& before, const train::TrainConfig& after,
                              int64_t step) {
  if (before.data.components.size() == after.data.components.size()) return {};
  if (data::has_pairs(before.data))
    return config::option_error(
        kComponents,
        "the run trains on preference pairs, and the hash of what its first weights give to them "
        "(the genesis's \"reference\") covers no others; begin a run with them instead");
  if (batches::has_segments(before.data) || after.data.block_cross_document_attention) return {};
  for (const data::Component& c : data::components_of(after.data))
    if (data::is_packed(c.format))
      return config::option_error(
          c.key + ".format.type",
          fmt::format("its rows are packed, so all batches would have segment ids, and those of the {} steps "
                      "that are done have none; give its texts as format {{type: text}}, or begin a fork",
                      step));
  return {};
}

}  // namespace

Result<std::vector<Period>> periods_of(const train::TrainConfig& options, const chain::Chain& chain,
                                       const std::string& where) {
  const std::vector<OptionInfo> infos = config::list_options(options);
  const chain::GenesisEntry& genesis = chain.genesis();
  std::vector<Period> periods = {{chain::entry_step(genesis), genesis.config, genesis.program_hash,
                                  genesis.data_hash, genesis.data_roots}};
  for (size_t i = 0; i < chain.links.size(); ++i) {
    const auto* amend = std::get_if<chain::AmendEntry>(&chain.links[i].entry);
    if (amend == nullptr) continue;
    Period next = periods.back();
    next.first = amend->step;
    Json config = Json::parse(periods.back().config);
    const Json difference = Json::parse(amend->difference);
    Status fits = difference.empty() ? Status(invalid_argument("it changes nothing")) : Status();
    for (const auto& [path, change] : difference.items())
      if (fits.ok()) fits = apply_change(infos, path, change, config, next);
    next.config = config.dump();
    if (fits.ok()) fits = check_added_data(periods.back(), next);
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
    if (path == kDataRoots) continue;  // long, and the hash of the data says as much
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
    if (const Json* value = find_value(wanted, change.path);
        value != nullptr && change.path == kComponents && !base.data.components.empty()) {
      const Json held = Json::parse(train::canonical_text(base));
      RETURN_IF_ERROR(set_components(*value, held["data"]["components"], tree));
    } else if (value != nullptr) {
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
  const bool adds = now.data.components.size() > before.data.components.size();
  now.data.train_weights =
      spliced(adds ? all_weights(before.data) : before.data.train_weights, now.data.train_weights, step);
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

std::vector<std::string> fixed_at_amends(const train::TrainConfig& options, const std::string& there,
                                         const std::string& here) {
  std::vector<std::string> out = fixed_differences(options, there, here);
  const auto components = std::find_if(out.begin(), out.end(), [](const std::string& line) {
    return line.starts_with(fmt::format("{} is ", kComponents));
  });
  if (components == out.end()) return out;
  const auto held = [](const std::string& config) {
    const Json tree = Json::parse(config);
    const Json* value = find_value(tree, kComponents);
    return value != nullptr ? *value : Json();
  };
  const std::string why = obstacle(held(there), held(here));
  if (why.empty())
    out.erase(components);
  else
    *components += fmt::format(": {}; an amend can only add components", why);
  return out;
}

Status check_amend(const train::TrainConfig& before, const train::TrainConfig& after, int64_t step) {
  const std::string there = train::canonical_text(before), here = train::canonical_text(after);
  if (const auto fixed = fixed_at_amends(before, there, here); !fixed.empty())
    return invalid_argument(fmt::format("options that no amend can change: {}", fmt::join(fixed, "; ")));
  RETURN_IF_ERROR(check_added_components(before, after, step));
  if (train::numerics_options(before) != train::numerics_options(after))
    return invalid_argument(fmt::format(
        "options that no amend can change: trainer.mp is {} there and {} here (the genesis says how "
        "products are computed)",
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
