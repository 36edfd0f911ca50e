// ssh_words: the words that begin a command on another machine.
#pragma once

#include <string>
#include <vector>

namespace ostro::cli {

// The words of --ssh ("ssh -p 2222"), with what makes a lost machine known and asks no questions. Behind them
// come "--", the machine's name and the command.
std::vector<std::string> ssh_words(const std::string& given);

}  // namespace ostro::cli
