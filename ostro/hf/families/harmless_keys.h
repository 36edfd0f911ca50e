// find_harmless: the keys of a config.json that change no number of what a trained model computes.
//
// harmless_keys.cc has the one list of them, with a reason for each. The import refuses a key that is neither
// in this list nor named by the family's description. A pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ostro::hf {

struct HarmlessKey {
  std::string_view key;
  std::string_view families;  // values of model.type, with a space between; empty: all families
  std::string_view only;      // JSON: the key is harmless with this value only; empty: with every value
  std::string_view reason;    // completes "it ..."
  bool usual = false;         // stands in most files: an import does not mention it
};

// The entry for this key and value in a file of the family; nullptr where there is none.
const HarmlessKey* find_harmless(std::string_view key, const nlohmann::ordered_json& value,
                                 std::string_view family);

}  // namespace ostro::hf
