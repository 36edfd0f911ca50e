// find_harmless: the keys of a config.json that change no number of what a trained model computes.
//
// harmless_keys.cc is the one list of them, with a reason for each. A key that is not in it, and that the
// family's description does not name, is refused.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace ostro::hf {

struct HarmlessKey {
  std::string_view key;
  std::string_view families;  // types of ours, with a space between; empty: all families
  std::string_view only;      // JSON: with another value the key could change a number; empty: with none
  std::string_view reason;    // completes "it ..."
  bool usual = false;         // stands in most files: an import does not mention it
};

// The entry for this key and value in a file of the family; nullptr where there is none.
const HarmlessKey* find_harmless(std::string_view key, const nlohmann::ordered_json& value,
                                 std::string_view family);

}  // namespace ostro::hf
