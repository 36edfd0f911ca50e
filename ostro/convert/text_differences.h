// text_difference: describes how two texts of a model's directory differ, for a person. A pure function.
#pragma once

#include <string>
#include <string_view>

namespace ostro::convert {

// Returns, for a JSON file, the places and both values: `"hidden_act" is "relu", not "silu"`; for any other
// text, the line. `there` is the text that was found, `written` the one that should be there. At most three
// places are named, with the number of the others.
std::string text_difference(const std::string& name, std::string_view written, std::string_view there);

}  // namespace ostro::convert
