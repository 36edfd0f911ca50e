#include "ostro/chain/data_record.h"

#include <nlohmann/json.hpp>
#include <variant>

namespace ostro::chain {
namespace {

using Json = nlohmann::json;

Json parsed(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

// object[key], or null.
Json member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : Json();
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> out;
  if (object.is_object())
    for (const auto& [name, value] : object.items()) out.insert(name);
  return out;
}

}  // namespace

std::set<std::string> component_names(const std::string& config) {
  std::set<std::string> names = keys_of(member(member(parsed(config), "data"), "components"));
  if (names.empty()) names.insert("");
  return names;
}

std::vector<DataRecord> data_records(const Chain& chain) {
  const GenesisEntry& genesis = chain.genesis();
  std::vector<DataRecord> out = {
      {genesis.step(), genesis.data_hash, genesis.data_roots, component_names(genesis.config)}};
  for (const ChainLink& link : chain.links) {
    const auto* amend = std::get_if<AmendEntry>(&link.entry);
    if (amend == nullptr) continue;
    const Json difference = parsed(amend->difference), hash = member(member(difference, "data"), "to");
    if (!hash.is_string()) continue;
    DataRecord next = out.back();
    next.step = amend->step;
    next.hash = hash.get<std::string>();
    const Json roots = member(member(difference, "data_roots"), "to");
    for (const std::string& name : keys_of(roots))
      if (roots[name].is_string()) next.roots[name] = roots[name].get<std::string>();
    for (const std::string& name : keys_of(member(member(difference, "data.components"), "to")))
      next.components.insert(name);
    out.push_back(std::move(next));
  }
  return out;
}

}  // namespace ostro::chain
