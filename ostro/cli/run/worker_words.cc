#include "ostro/cli/run/worker_words.h"

#include <fmt/format.h>

#include "ostro/train/options/config.h"

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

Status check_workers(int64_t min_workers, int64_t max_workers, const train::TrainConfig& config) {
  if (min_workers < 1 || min_workers > max_workers || max_workers > 1024)
    return invalid_argument(
        fmt::format("--min_workers {} --max_workers {}: 1 <= min_workers <= max_workers <= 1024 must hold",
                    min_workers, max_workers));
  if (const Status mesh = train::check_workers(config, max_workers); !mesh.ok())
    return mesh.error().with_context(fmt::format("--max_workers {}", max_workers));
  return Status();
}

}  // namespace ostro::cli
