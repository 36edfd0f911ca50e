// LeftOutNodes: nodes on which so many jobs in a row have failed that the next jobs shall not go there for a
// while. It decides, and calls nothing. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

class LeftOutNodes {
 public:
  using Clock = std::chrono::steady_clock;

  // A node is left out for `time` at its failure number `after` in a row, and at each one behind that. 0:
  // none ever is.
  LeftOutNodes(int64_t after, std::chrono::milliseconds time) : after_(after), time_(time) {}

  // A job failed there. Whether the node is left out now, and how often jobs in a row have failed there.
  bool failed(const std::string& node, Clock::time_point now);
  int64_t failures(const std::string& node) const;
  // A job there has worked, or ran for a while: failures are counted anew.
  void worked(const std::string& node) { nodes_.erase(node); }
  // Those that are left out, in the order of their names.
  std::vector<std::string> names(Clock::time_point now) const;

 private:
  struct Node {
    int64_t failures = 0;  // in a row
    std::optional<Clock::time_point> until;
  };
  int64_t after_;
  std::chrono::milliseconds time_;
  std::map<std::string, Node> nodes_;
};

// The nodes that words of sbatch leave out themselves (--exclude, -x), as they were typed; "": none. A list
// on sbatch's command line takes the place of that in its script, so it must have them, too.
std::string excluded_by(const std::string& options);

// Checks that excluded_by finds what sbatch would leave out: kInvalidArgument, with the option as typed and
// the fix, for a beginning of --exclude, and for a list with quotes, a backslash or a slash (a file's path).
Status check_excluded(const std::string& options);

}  // namespace ostro::cluster
