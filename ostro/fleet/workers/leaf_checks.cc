#include "ostro/fleet/workers/leaf_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ostro/base/profile.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/fleet/exchange/messages.h"

namespace ostro::fleet {
namespace {

using Clock = std::chrono::steady_clock;
using numerics::Fingerprint;

// Of everything that a step uses of the leaf, and that the chain records of it.
Result<Fingerprint> print_of_leaf(const LeafChecks::Results& results) {
  Bytes all;
  for (const runtime::Buffer& gradient : results.gradients) {
    ASSIGN_OR_RETURN(const runtime::Buffer here, gradient.to_host());
    append_value(all, numerics::fingerprint_bytes(here.bytes()));
  }
  ASSIGN_OR_RETURN(const train::LeafResult numbers, train::leaf_result(results));
  append_value(all, numbers.loss_sum);
  append_value(all, numbers.weight);
  for (const double sum : numbers.measures) append_value(all, sum);
  for (const auto& print : numbers.gradient_prints) append_value(all, print);
  return numerics::fingerprint_bytes(all);
}

double seconds_of_check(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

LeafChecks::LeafChecks(const WorkerPlan& plan, const std::vector<int64_t>& peers, int64_t rank, int64_t step,
                       int64_t leaves)
    : plan_(plan),
      peers_(peers),
      rank_(rank),
      step_(step),
      checked_(
          checked_leaves(plan.options.check, step, leaves, static_cast<int64_t>(peers.size()), plan.shares)),
      known_(checked_.size()),
      votes_(checked_.size()) {}

Status LeafChecks::computed(int64_t leaf, const Results& results) {
  for (size_t i = 0; i < checked_.size(); ++i) {
    if (checked_[i].leaf != leaf) continue;
    ASSIGN_OR_RETURN(known_[i], print_of_leaf(results));
  }
  return Status();
}

Status LeafChecks::compare(runtime::Collectives& c, const Run& run, const Parameters& parameters,
                           StepChecks& checks) {
  if (checked_.empty()) return Status();
  phase("check leaves");
  pulse_phase("check", step_);
  const Clock::time_point begin = Clock::now();
  const Status decided = decide(c, run, parameters, checks);
  checks.leaves += static_cast<int64_t>(checked_.size());
  checks.seconds += seconds_of_check(begin);
  return decided;
}

Status LeafChecks::decide(runtime::Collectives& c, const Run& run, const Parameters& parameters,
                          StepChecks& checks) {
  std::vector<Told> list;
  for (size_t i = 0; i < checked_.size(); ++i) {
    list.push_back({i, checked_[i].owner, true});
    list.push_back({i, checked_[i].by.second, false});
  }
  RETURN_IF_ERROR(tell(c, list, run));
  list.clear();
  for (size_t i = 0; i < checked_.size(); ++i)
    if (!judge(votes_[i]).agree)
      for (const int64_t place : checked_[i].by.deciders) list.push_back({i, place, false});
  if (list.empty()) return Status();
  ASSIGN_OR_RETURN(std::optional<Disagreement> apart, parameters());
  if (apart) {
    const Error error = io_error(apart->text);
    checks.disagreement = std::move(apart);
    return error;
  }
  RETURN_IF_ERROR(tell(c, list, run));
  Disagreement found{.step = step_};
  for (size_t i = 0; i < checked_.size(); ++i) {
    const Judgement judged = judge(votes_[i]);
    if (judged.agree) continue;
    found.differ.insert(found.differ.end(), judged.differ.begin(), judged.differ.end());
    std::string who = judged.decided ? "" : "no majority says who is right";
    for (const int64_t rank : judged.differ)
      who += fmt::format("{}{}", who.empty() ? "" : " and ", name(rank));
    found.text += fmt::format(
        "{}step {}: {}{}: leaf {} has the fingerprint {}", found.text.empty() ? "" : "; ", step_, who,
        judged.decided ? " computes what the others do not" : "", checked_[i].leaf, votes_text(votes_[i]));
  }
  std::sort(found.differ.begin(), found.differ.end());
  found.differ.erase(std::unique(found.differ.begin(), found.differ.end()), found.differ.end());
  const Error error = io_error(found.text);
  checks.disagreement = std::move(found);
  return error;
}

std::string LeafChecks::name(int64_t rank) const {
  const auto at = static_cast<size_t>(rank);
  const auto& hosts = plan_.options.hosts;
  return at < hosts.size() ? fmt::format("worker {} on {}", rank, hosts[at]) : fmt::format("worker {}", rank);
}

// Each worker tells all others its results of the list, in its order.
Status LeafChecks::tell(runtime::Collectives& c, const std::vector<Told>& list, const Run& run) {
  Bytes mine;
  std::vector<size_t> expected(peers_.size());
  for (const Told& told : list) {
    const auto place = static_cast<size_t>(told.place);
    expected[place] += sizeof(Fingerprint);
    if (peers_[place] != rank_) continue;
    Fingerprint print = known_[told.at];
    if (!told.known) {
      ASSIGN_OR_RETURN(const Results again, run(checked_[told.at].leaf));
      ASSIGN_OR_RETURN(print, print_of_leaf(again));
      pulse_beat();
    }
    append_value(mine, print);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers_, mine, expected));
  std::vector<Reader> readers(received.begin(), received.end());
  for (const Told& told : list) {
    const auto place = static_cast<size_t>(told.place);
    votes_[told.at].push_back({peers_[place], readers[place].value<Fingerprint>()});
  }
  return Status();
}

}  // namespace ostro::fleet
