// comma_parts, shell_word: parts of a text that a person typed, and words of a shell's command. Any thread
// may call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ostro {

// What stands between commas; parts may be empty, and an empty text is one empty part.
std::vector<std::string> comma_parts(std::string_view text);

// A word of a shell command, quoted where it has to be.
std::string shell_word(std::string_view word);

}  // namespace ostro
