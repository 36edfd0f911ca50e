#include "ostro/cluster/slurm/left_out_nodes.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

namespace ostro::cluster {

bool LeftOutNodes::failed(const std::string& node, Clock::time_point now) {
  if (after_ == 0 || node.empty()) return false;
  Node& failed = nodes_[node];
  if (++failed.failures < after_) return false;
  failed.until = now + time_;
  return true;
}

int64_t LeftOutNodes::failures(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.failures;
}

std::vector<std::string> LeftOutNodes::names(Clock::time_point now) const {
  std::vector<std::string> out;
  for (const auto& [name, node] : nodes_)
    if (node.until && now < *node.until) out.push_back(name);
  return out;
}

std::string excluded_by(const std::string& options) {
  std::istringstream words(options);
  std::string out;
  for (std::string word; words >> word;) {
    if (word == "--exclude" || word == "-x")
      words >> out;
    else if (word.starts_with("--exclude="))
      out = word.substr(word.find('=') + 1);
    else if (word.starts_with("-x"))
      out = word.substr(2);
  }
  return out;
}

Status check_excluded(const std::string& options) {
  constexpr std::string_view kName = "--exclude", kQuotes = "'\"\\";
  const auto refused = [](const std::string& word, const char* what) {
    return invalid_argument(
        fmt::format("--sbatch: {} {}; nodes that fail are left out beside those that it names: write "
                    "--exclude=NODE,NODE[1-9] without quotes, or give --failures 0",
                    word, what));
  };
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    std::string plain = word;
    std::erase_if(plain, [&](char c) { return kQuotes.find(c) != std::string_view::npos; });
    const std::string name = plain.substr(0, plain.find('='));
    const bool is_short = plain.starts_with("-x");
    if (!is_short && (!name.starts_with("--ex") || !kName.starts_with(name))) continue;
    if (!is_short && name != kName) return refused(word, "may stand for --exclude");
    std::string list = word;
    if (plain == "-x" || plain == kName) words >> list;
    if (plain != word || list.find_first_of(kQuotes) != std::string::npos)
      return refused(list, "has quotes or a backslash");
    if (list.find('/') != std::string::npos) return refused(list, "is the path of a file");
  }
  return {};
}

}  // namespace ostro::cluster
