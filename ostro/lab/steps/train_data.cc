// The data of trainings: one token store, or several as the components of a mixture.
#include <fmt/format.h>

#include "ostro/config/yaml.h"
#include "ostro/experiment/plan/phases.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

using config::Node;

Node list_of(const std::vector<std::string>& texts) {
  std::vector<Node> items;
  for (const std::string& text : texts) items.push_back(Node::string(text));
  return Node::list(std::move(items));
}

// What a configuration says of one store.
struct StoreOptions {
  Node train_urls, validation_urls, cache_dir, text_key, rows;
};

Result<StoreOptions> options_of_store(const Work& work, const Step& tokens) {
  StoreOptions out;
  ASSIGN_OR_RETURN(const std::vector<std::string> train_urls, urls_of(work, tokens.inputs.at("from")));
  ASSIGN_OR_RETURN(const std::vector<std::string> held_out, urls_of(work, tokens.inputs.at("held_out")));
  out.train_urls = list_of(train_urls);
  out.validation_urls = list_of(held_out);
  out.cache_dir = Node::string(work.made_by(tokens).folder);
  out.text_key = Node::string(text_of(tokens, "text_key"));
  if (const std::string rows = verdicts_file(work, tokens.inputs.at("from")); !rows.empty())
    out.rows = Node::string(rows);
  return out;
}

// Gives the components that weights do not name the weight 0, in the first of several stages.
Status complete_weights(const std::map<std::string, const Step*>& stores, config::Override& weights) {
  ASSIGN_OR_RETURN(Node tree, config::parse_yaml("v: " + weights.value, weights.path, false));
  Node* map = &tree.items[0];
  if (map->kind == Node::Kind::kList && !map->items.empty() && map->items[0].items.size() == 2)
    map = &map->items[0].items[1];
  if (map->kind != Node::Kind::kMap) return {};  // the configuration says what is wrong
  for (const auto& [name, tokens] : stores)
    if (map->find(name) == nullptr) map->put(name, Node::integer(0));
  weights.value = config::flow_text(tree.items[0]);
  return {};
}

constexpr std::string_view kWeights = "data.train_weights";

void add_named(const Node& weights, std::set<std::string>& out) {
  for (const Node& item : weights.items) {
    if (weights.kind == Node::Kind::kMap) out.insert(item.key);
    if (weights.kind == Node::Kind::kList) add_named(item, out);
  }
}

// The components that the weights of a step name, in any of their stages.
std::set<std::string> weighed_by(const Step& step) {
  std::set<std::string> out;
  for (const Node& option : step.parameters.find("set")->items) {
    if (option.key == kWeights) add_named(option, out);
    if (option.key.starts_with(kWeights) && option.key.size() > kWeights.size() + 1)
      out.insert(option.key.substr(kWeights.size() + 1));
  }
  return out;
}

}  // namespace

std::map<std::string, const Step*> stores_of(const Work& work) {
  std::map<std::string, const Step*> out;
  for (const auto& [parameter, input] : work.step.inputs)
    if (parameter == "data" || parameter.starts_with("data."))
      out[parameter == "data" ? "" : parameter.substr(5)] = work.plan.find(input);
  if (!out.empty()) return out;
  const Work parent = work.of(work.input("of"));
  out = stores_of(parent);
  if (work.plan.sanity) return out;  // it begins behind the last step of the other run, which has all of them
  const int64_t at = std::stoll(text_of(work.step, "at"));
  const std::set<std::string> weighed = weighed_by(work.step);
  for (const Phase& phase : phases_of(work.plan, parent.step))
    for (const std::string& name : phase.adds)
      if (phase.from >= at && !weighed.contains(name)) out.erase(name);
  return out;
}

Status set_data(const Work& work, std::vector<config::Override>& overrides,
                const std::set<std::string>& later) {
  auto stores = stores_of(work);
  const auto set = [&](const char* path, const Node& value) {
    overrides.push_back({path, config::flow_text(value)});
  };
  const Step& first = *stores.begin()->second;
  const Made& tokenizer = work.made.at(first.inputs.at("tokenizer"));
  for (const auto& [name, tokens] : stores)
    if (const std::string& other = tokens->inputs.at("tokenizer");
        work.made.at(other).content != tokenizer.content)
      return invalid_argument(fmt::format(
          "data: {} and {} have the tokens of {} and {}, which are different tokenizers; a training has "
          "one, so give both steps the same",
          first.name, tokens->name, first.inputs.at("tokenizer"), other));
  std::erase_if(stores, [&](const auto& store) { return later.contains(store.first); });
  set("data.tokenizer", Node::string(io::join_path(tokenizer.folder, "tokenizer.json")));
  const bool is_fork = work.step.kind->name == kForkKind;  // its other run may have had the other form
  if (stores.contains("")) {
    ASSIGN_OR_RETURN(const StoreOptions store, options_of_store(work, first));
    if (is_fork) set("data.components", Node::map());
    if (is_fork) set("data.train_weights", Node::map());
    set("data.train_urls", store.train_urls);
    set("data.validation_urls", store.validation_urls);
    set("data.text_key", store.text_key);
    if (store.rows.kind != Node::Kind::kNull || is_fork) set("data.rows", store.rows);
    set("data.cache_dir", store.cache_dir);
    return {};
  }
  for (config::Override& option : overrides)
    if (option.path == "data.train_weights") RETURN_IF_ERROR(complete_weights(stores, option));
  Node components = Node::map();
  for (const auto& [name, tokens] : stores) {
    ASSIGN_OR_RETURN(const StoreOptions store, options_of_store(work, *tokens));
    Node component = Node::map(), format = Node::map();
    component.put("train_urls", store.train_urls);
    component.put("validation_urls", store.validation_urls);
    format.put("type", Node::string("text"));
    format.put("text_key", store.text_key);
    component.put("format", format);
    component.put("cache_dir", store.cache_dir);
    component.put("rows", store.rows);
    components.put(name, component);
  }
  if (is_fork)
    for (const char* path : {"data.train_urls", "data.validation_urls"}) set(path, Node::list({}));
  if (is_fork) set("data.text_key", Node::string("text"));
  if (is_fork) set("data.rows", Node::null());
  set("data.components", components);
  return {};
}

}  // namespace ostro::lab
