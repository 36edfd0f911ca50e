#include "ostro/cli/run/worker_words.h"

namespace ostro::cli {

std::vector<std::string> worker_words(const std::vector<std::string>& typed,
                                      const std::set<std::string>& own) {
  std::vector<std::string> words;
  for (size_t i = 1; i < typed.size(); ++i) {
    const size_t equals = typed[i].find('=');
    const std::string name = typed[i].substr(0, equals);
    if (own.contains(name)) {
      if (equals == std::string::npos) ++i;
      continue;
    }
    words.push_back(typed[i]);
    // An override or --config takes the next word, whatever it looks like.
    const bool takes_next =
        name == "--config" || (name.starts_with("--") && name.find('.') != std::string::npos);
    if (takes_next && equals == std::string::npos && i + 1 < typed.size()) words.push_back(typed[++i]);
  }
  return words;
}

}  // namespace ostro::cli
