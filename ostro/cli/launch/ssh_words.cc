#include "ostro/cli/launch/ssh_words.h"

#include <sstream>

namespace ostro::cli {

std::vector<std::string> ssh_words(const std::string& given) {
  std::istringstream in(given);
  std::vector<std::string> words = {"/usr/bin/env"};
  for (std::string word; in >> word;) words.push_back(word);
  for (const char* option : {"BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"})
    words.insert(words.end(), {"-o", option});
  words.emplace_back("-T");
  return words;
}

}  // namespace ostro::cli
