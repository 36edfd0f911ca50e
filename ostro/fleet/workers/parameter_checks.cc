#include "ostro/fleet/workers/parameter_checks.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "ostro/fleet/check/part_votes.h"
#include "ostro/fleet/exchange/messages.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using numerics::Fingerprint;
using runtime::Buffer;

constexpr size_t kMostComparedArrays = 8;  // part by part: a verdict needs no more, and parts may be many

Result<Fingerprint> print_of_array(const Buffer& cells) {
  ASSIGN_OR_RETURN(const Buffer here, cells.to_host());
  return numerics::fingerprint_bytes(here.bytes());
}

// The place of array k among a worker's copies; nothing: it has none.
std::optional<size_t> place_of_copy(const WorkerPlan& plan, size_t k, int64_t rank) {
  return plan.mirror_of(rank) ? plan.mirrored_place(k) : std::nullopt;
}

// The first owner of each part of array k.
std::vector<int64_t> first_owners(const WorkerPlan& plan, size_t k, const std::vector<int64_t>& peers) {
  std::map<Region, int64_t> owners;
  for (const int64_t rank : peers) owners.emplace(plan.state.box(k, rank), rank);
  std::vector<int64_t> out;
  for (const auto& [box, rank] : owners) out.push_back(rank);
  return out;
}

// The arrays that workers do not all read as the same bytes, ascending; no more than are compared.
Result<std::vector<size_t>> arrays_that_differ(const WorkerPlan& plan, runtime::Collectives& c,
                                               const std::vector<int64_t>& peers, const CellBuffers& whole) {
  Bytes mine;
  for (size_t k = 0; k < plan.n; ++k) {
    ASSIGN_OR_RETURN(const Fingerprint print, print_of_array(whole[k]));
    append_value(mine, print);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received,
                   exchange(c, peers, mine, std::vector<size_t>(peers.size(), mine.size())));
  std::vector<Reader> readers(received.begin(), received.end());
  std::vector<size_t> out;
  for (size_t k = 0; k < plan.n; ++k) {
    bool equal = true;
    const auto first = readers[0].value<Fingerprint>();
    for (size_t w = 1; w < readers.size(); ++w) equal = (readers[w].value<Fingerprint>() == first) && equal;
    if (!equal && out.size() < kMostComparedArrays) out.push_back(k);
  }
  return out;
}

// What this worker keeps and reads of array k, in the order in which votes_on() reads it.
Status append_prints(const WorkerPlan& plan, size_t k, int64_t rank, const std::vector<int64_t>& owners,
                     const ParametersHere& here, Bytes& to) {
  ASSIGN_OR_RETURN(const Fingerprint kept, print_of_array(here.owned[k]));
  append_value(to, kept);
  if (const std::optional<size_t> place = place_of_copy(plan, k, rank)) {
    ASSIGN_OR_RETURN(const Fingerprint copy, print_of_array(here.copies[*place]));
    append_value(to, copy);
  }
  ASSIGN_OR_RETURN(const Buffer whole, here.whole[k].to_host());
  for (const int64_t owner : owners) {
    const Buffer part = plan.gathered(k) ? spmd::shard(plan.mesh(), owner, plan.cut(k), whole) : whole;
    append_value(to, numerics::fingerprint_bytes(part.bytes()));
  }
  return Status();
}

std::vector<PartVotes> votes_on(const WorkerPlan& plan, size_t k, const std::vector<int64_t>& peers,
                                const std::vector<int64_t>& owners, const PartSource& source,
                                std::vector<Reader>& readers) {
  std::map<Region, PartVotes> parts;
  for (size_t w = 0; w < peers.size(); ++w) {
    const int64_t rank = peers[w];
    parts[plan.state.box(k, rank)].kept.push_back({rank, readers[w].value<Fingerprint>()});
    if (place_of_copy(plan, k, rank))
      parts[plan.state.box(k, *plan.mirror_of(rank))].kept.push_back({rank, readers[w].value<Fingerprint>()});
    for (const int64_t owner : owners)
      parts[plan.state.box(k, owner)].read.push_back(
          {rank, readers[w].value<Fingerprint>(), source(k, owner, rank)});
  }
  std::vector<PartVotes> out;
  for (auto& [box, part] : parts) {
    part.name = plan.arrays.paths[k];
    out.push_back(std::move(part));
  }
  return out;
}

}  // namespace

Result<std::optional<Disagreement>> compare_parameters(const WorkerPlan& plan, runtime::Collectives& c,
                                                       const std::vector<int64_t>& peers,
                                                       const ParametersHere& here, const PartSource& source,
                                                       int64_t step) {
  ASSIGN_OR_RETURN(const std::vector<size_t> arrays, arrays_that_differ(plan, c, peers, here.whole));
  if (arrays.empty()) return std::optional<Disagreement>();
  Bytes mine;
  std::vector<size_t> expected(peers.size());
  std::vector<std::vector<int64_t>> owners;
  for (const size_t k : arrays) {
    owners.push_back(first_owners(plan, k, peers));
    RETURN_IF_ERROR(append_prints(plan, k, c.rank(), owners.back(), here, mine));
    for (size_t w = 0; w < peers.size(); ++w)
      expected[w] +=
          (1 + (place_of_copy(plan, k, peers[w]) ? 1 : 0) + owners.back().size()) * sizeof(Fingerprint);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers, mine, expected));
  std::vector<Reader> readers(received.begin(), received.end());
  std::vector<PartVotes> parts;
  for (size_t i = 0; i < arrays.size(); ++i)
    for (PartVotes& part : votes_on(plan, arrays[i], peers, owners[i], source, readers))
      parts.push_back(std::move(part));
  Disagreement found = judge_parts(step, parts);
  if (found.text.empty())
    found.text =
        fmt::format("step {}: workers have read different parameters, and the same a little later", step);
  return std::optional(std::move(found));
}

int64_t gathered_from(const WorkerPlan& plan, size_t k, int64_t of, int64_t to) {
  const Region box = plan.state.box(k, of);
  if (plan.state.box(k, to) == box || !plan.gathered(k)) return to;
  for (const int64_t peer : plan.mesh().peers(to, plan.gather_axes))
    if (plan.state.box(k, peer) == box) return peer;
  return of;
}

}  // namespace ostro::fleet
