#include "ostro/fleet/check/votes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::fleet {
namespace {

std::ptrdiff_t votes_for(const std::vector<Vote>& votes, const numerics::Fingerprint& print) {
  return std::count_if(votes.begin(), votes.end(), [&](const Vote& v) { return v.print == print; });
}

}  // namespace

Judgement judge(const std::vector<Vote>& votes) {
  Judgement out;
  if (votes.empty()) return out;
  const auto most = std::max_element(votes.begin(), votes.end(), [&](const Vote& a, const Vote& b) {
    return votes_for(votes, a.print) < votes_for(votes, b.print);
  });
  const std::ptrdiff_t count = votes_for(votes, most->print);
  out.agree = count == static_cast<std::ptrdiff_t>(votes.size());
  if (out.agree) return out;
  out.decided = count > 1;
  for (const Vote& v : votes) {
    if (v.print == most->print) continue;
    if (votes_for(votes, v.print) == count) out.decided = false;
    out.differ.push_back(v.rank);
  }
  if (!out.decided) out.differ.clear();
  std::sort(out.differ.begin(), out.differ.end());
  out.differ.erase(std::unique(out.differ.begin(), out.differ.end()), out.differ.end());
  return out;
}

std::string votes_text(const std::vector<Vote>& votes) {
  std::string text;
  for (const Vote& v : votes)
    text += fmt::format("{}{:016x}{:016x} by worker {}", text.empty() ? "" : ", ", v.print.lane[0],
                        v.print.lane[1], v.rank);
  return text;
}

bool Disagreement::names(int64_t rank) const {
  return std::find(differ.begin(), differ.end(), rank) != differ.end();
}

}  // namespace ostro::fleet
