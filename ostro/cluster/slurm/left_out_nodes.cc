#include "ostro/cluster/slurm/left_out_nodes.h"

#include <sstream>

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

}  // namespace ostro::cluster
