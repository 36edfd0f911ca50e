#include "ostro/cluster/slurm/left_out_nodes.h"

#include <fmt/format.h>

#include <string_view>

#include "ostro/cluster/slurm/sbatch_words.h"

namespace ostro::cluster {
namespace {

constexpr std::string_view kExclude[] = {"--exclude", "-x"};

}  // namespace

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
  std::string out;
  for (const SbatchUse& use : sbatch_uses(options, kExclude)) out = use.value;
  return out;
}

Status check_excluded(const std::string& options) {
  for (const SbatchUse& use : sbatch_uses(options, kExclude)) {
    const char* what = !use.in_full                               ? "may stand for --exclude"
                       : use.has_quotes                           ? "has quotes or a backslash"
                       : use.value.find('/') != std::string::npos ? "is the path of a file"
                                                                  : nullptr;
    if (what != nullptr)
      return invalid_argument(
          fmt::format("--sbatch: {} {}; nodes that fail are left out beside those that it names: write "
                      "--exclude=NODE,NODE[1-9] without quotes, or give --failures 0",
                      use.in_full ? use.text : use.word, what));
  }
  return {};
}

}  // namespace ostro::cluster
