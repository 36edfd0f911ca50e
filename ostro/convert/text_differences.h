// text_difference: how two texts of a model's directory differ, for a person to read. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ostro::convert {

// Of a JSON file the places and both values: `"hidden_act" is "relu", not "silu"`; of any other text the
// line. `there` is what is found, `written` what should be. At most three places are named, and how many
// more there are.
std::string text_difference(const std::string& name, std::string_view written, std::string_view there);

}  // namespace ostro::convert
