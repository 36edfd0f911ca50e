#include "ostro/fleet/workers/copy_checks.h"

#include <chrono>
#include <map>

#include "ostro/base/profile.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/fleet/check/part_votes.h"
#include "ostro/fleet/exchange/gather_all.h"

namespace ostro::fleet {
namespace {

using numerics::Fingerprint;

// A copy of one array's cells: worker `rank` has those that `of` owns.
struct CellCopy {
  size_t k = 0;
  int64_t rank = 0, of = 0;
  size_t at = 0;  // of a mirror: its place among plan.mirrored
  bool mirror = false;
};

// The copies of the arrays that are drawn in this step, by worker, in the order in which each tells them.
std::vector<CellCopy> drawn_copies(const WorkerPlan& plan, int64_t step) {
  std::vector<CellCopy> out;
  for (int64_t rank = 0; rank < plan.mesh().size(); ++rank) {
    for (size_t k = 0; k < plan.arrays.size(); ++k)
      if (plan.options.check.array(step, static_cast<int64_t>(k))) out.push_back({k, rank, rank});
    const std::optional<int64_t> other = plan.mirror_of(rank);
    for (size_t i = 0; other && i < plan.mirrored.size(); ++i)
      if (plan.options.check.array(step, static_cast<int64_t>(plan.mirrored[i])))
        out.push_back({plan.mirrored[i], rank, *other, i, true});
  }
  return out;
}

Result<Fingerprint> print_of_copy(const CellCopy& copy, const Cells& own, const Cells& mirror) {
  const runtime::Buffer& cells =
      copy.mirror ? train::array_of(mirror, copy.at) : train::array_of(own, copy.k);
  ASSIGN_OR_RETURN(const runtime::Buffer here, cells.to_host());
  return numerics::fingerprint_bytes(here.bytes());
}

}  // namespace

Status check_copies(const WorkerPlan& plan, runtime::Collectives& c, const Cells& own, const Cells& mirror,
                    StepChecks& checks) {
  const std::vector<CellCopy> copies = drawn_copies(plan, checks.step);
  if (copies.empty()) return Status();
  phase("check copies");
  pulse_phase("check", checks.step);
  const auto begin = std::chrono::steady_clock::now();
  Bytes mine;
  std::vector<size_t> expected(static_cast<size_t>(c.size()));
  for (const CellCopy& copy : copies) {
    expected[static_cast<size_t>(copy.rank)] += sizeof(Fingerprint);
    if (copy.rank != c.rank()) continue;
    ASSIGN_OR_RETURN(const Fingerprint print, print_of_copy(copy, own, mirror));
    append_value(mine, print);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, gather_all(c, mine, expected));
  std::vector<Reader> readers(received.begin(), received.end());
  std::map<std::pair<size_t, Region>, PartVotes> votes;
  for (const CellCopy& copy : copies) {
    PartVotes& part = votes[{copy.k, plan.state.box(copy.k, copy.of)}];
    part.name = plan.arrays.paths[copy.k];
    part.kept.push_back({copy.rank, readers[static_cast<size_t>(copy.rank)].value<Fingerprint>()});
  }
  std::vector<PartVotes> parts;
  for (auto& [cells, part] : votes) parts.push_back(std::move(part));
  Disagreement found = judge_parts(checks.step, parts);
  checks.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (found.text.empty()) return Status();
  const Error error = io_error(found.text);
  checks.disagreement = std::move(found);
  return error;
}

}  // namespace ostro::fleet
