#include "ostro/simulate/step/step_time.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "ostro/simulate/step/event_queue.h"
#include "ostro/simulate/step/machine.h"
#include "ostro/simulate/step/step_links.h"

namespace ostro::simulate {
namespace {

constexpr int64_t kMostDrawn = 1'000'000'000;  // a step, for the leaves that are checked in it

class StepSimulation {
 public:
  StepSimulation(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                 const std::vector<double>& speed, Random& jitter)
      : plan_(plan), o_(options), links_(plan, options) {
    for (int64_t rank = 0; rank < plan.hosts; ++rank)
      slow_.push_back((speed.empty() ? 1 : speed[static_cast<size_t>(rank)]) *
                      (o_.jitter > 0 ? jitter.log_normal(o_.jitter) : 1));
    for (const HostWork& kind : plan.kinds) seconds_.push_back(host_seconds(model, plan, options, kind));
    checked_ = plan.checked(plan.check.on() ? 1 + jitter.below(kMostDrawn) : 1);
    steps_ = step_actions(plan, seconds_, checked_);
    at_.resize(static_cast<size_t>(plan.hosts));
    since_.resize(at_.size());
    groups_.resize(steps_.exchanges.size() * group_count());
    lines_.resize(group_count());
  }

  StepTime run() {
    for (int64_t m = 0; m < links_.machines(); ++m) cores_.emplace_back(queue_, o_.cores);
    for (int64_t s = 0; s < plan_.slices; ++s) wires_.emplace_back(queue_, 1);
    for (int64_t rank = 0; rank < plan_.hosts; ++rank) go_on(rank);
    while (queue_.step()) {
    }
    out_.seconds = queue_.now();
    for (double& part : out_.parts) part /= static_cast<double>(plan_.hosts);
    return out_;
  }

 private:
  // The hosts that take part in one exchange together.
  struct Group {
    std::vector<int64_t> here, waiting;  // that have begun it, and that wait for it
    double all_here = 0;                 // when the last one began it
    size_t linked = 0;                   // links that carry it
    size_t carrying = 0;                 // links and cores that must end before the next exchange begins
    size_t busy = 0;                     // what must end before it is done: the latency, too
    bool done = false;
  };

  // Exchanges of all hosts, and those of each slice, go one after the other.
  size_t group_count() const { return static_cast<size_t>(plan_.slices) + 1; }
  size_t line_of(int64_t rank, const Exchange& e) const {
    return e.whole ? 0 : 1 + static_cast<size_t>(plan_.slice_of[static_cast<size_t>(rank)]);
  }
  Group& group_of(size_t exchange, size_t line) { return groups_[exchange * group_count() + line]; }

  Machine& cores_of(int64_t rank) { return cores_[static_cast<size_t>(links_.machine_of(rank))]; }
  void count(int64_t rank, Part part, double until) {
    double& since = since_[static_cast<size_t>(rank)];
    out_.parts[static_cast<size_t>(part)] += until - since;
    since = until;
  }

  // Does what a host has to do until it computes or waits.
  void go_on(int64_t rank) {
    size_t& at = at_[static_cast<size_t>(rank)];
    for (; at < steps_.actions.size(); ++at) {
      const Action& action = steps_.actions[at];
      if (at == steps_.first_leaf) out_.leaves_begin = queue_.now();
      if (action.kind == Action::Kind::kCompute) {
        if (compute(rank, action)) return;
        continue;
      }
      const size_t line = line_of(rank, steps_.exchanges[action.exchange]);
      Group& group = group_of(action.exchange, line);
      if (action.kind == Action::Kind::kBegin) {
        arrive(rank, action.exchange, line);
      } else if (!group.done) {
        group.waiting.push_back(rank);
        return;
      }
    }
  }

  // False: there is nothing to compute.
  bool compute(int64_t rank, const Action& action) {
    const double seconds = action.seconds(rank) * slow_[static_cast<size_t>(rank)];
    const auto computed = [this, rank, part = action.part] {
      if (at_[static_cast<size_t>(rank)] == steps_.last_leaf) out_.leaves_end = queue_.now();
      count(rank, part, queue_.now());
    };
    if (seconds <= 0) {
      computed();
      return false;
    }
    cores_of(rank).work(seconds, [this, rank, computed] {
      computed();
      ++at_[static_cast<size_t>(rank)];
      go_on(rank);
    });
    return true;
  }

  void arrive(int64_t rank, size_t number, size_t line) {
    Group& group = group_of(number, line);
    group.here.push_back(rank);
    const int64_t size = line == 0 ? plan_.hosts : plan_.slice_sizes[line - 1];
    if (std::ssize(group.here) < size) return;
    group.all_here = queue_.now();
    lines_[line].push_back(number);
    if (lines_[line].size() == 1) carry(line);
  }

  // All are here: each works for its messages, and the links carry their bytes.
  void carry(size_t line) {
    const size_t number = lines_[line].front();
    const Exchange& e = steps_.exchanges[number];
    Group& group = group_of(number, line);
    const LinkLoad load = load_of(e, group, line);
    group.linked = load.machines.size() + 1;
    group.carrying = group.linked + group.here.size();
    group.busy = 1 + group.here.size();
    if (e.part == Part::kBetween) out_.between_links += load.longest();
    const auto worked = [this, number, line] {
      leave(number, line);
      end(number, line);
    };
    const auto carried = [this, number, line, latency = load.latency] {
      if (--group_of(number, line).linked == 0)
        queue_.after(latency, [this, number, line] { end(number, line); });
      leave(number, line);
    };
    for (const int64_t member : group.here) cores_of(member).work(links_.core_seconds(member, e), worked);
    for (const auto& [slice, seconds] : load.machines)
      wires_[static_cast<size_t>(slice)].work(seconds, carried);
    queue_.after(load.between, carried);
  }

  void leave(size_t number, size_t line) {
    if (--group_of(number, line).carrying > 0) return;
    lines_[line].pop_front();
    if (!lines_[line].empty()) carry(line);
  }

  LinkLoad load_of(const Exchange& e, const Group& group, size_t line) {
    const std::pair key{e.flow, line};
    auto known = loads_.find(key);
    if (known == loads_.end()) known = loads_.emplace(key, links_.load(group.here, e)).first;
    LinkLoad load = known->second;
    load.scale(e.share);
    // What the leaf program sends is sent while it works: only the rest is waited for, and the first layer.
    if (const double all = load.longest(); e.traffic == &HostWork::in_leaves && all > 0) {
      const double rest = all - (out_.leaves_end - out_.leaves_begin);
      load.scale(std::max(rest / all, 1 / static_cast<double>(plan_.layers)));
    }
    return load;
  }

  void end(size_t number, size_t line) {
    Group& group = group_of(number, line);
    if (--group.busy > 0) return;
    group.done = true;
    if (number == steps_.measured) out_.measured = queue_.now();
    for (const int64_t rank : std::exchange(group.waiting, {})) {
      // Until the last one came a host waited for it.
      count(rank, Part::kWait, std::max(group.all_here, since_[static_cast<size_t>(rank)]));
      count(rank, steps_.exchanges[number].part, queue_.now());
      ++at_[static_cast<size_t>(rank)];
      go_on(rank);
    }
  }

  const StepPlan& plan_;
  const SimulateOptions& o_;
  const StepLinks links_;
  std::vector<double> slow_;
  std::vector<HostSeconds> seconds_;  // by kind
  std::vector<int64_t> checked_;
  StepActions steps_;
  EventQueue queue_;
  std::deque<Machine> cores_;  // by machine
  std::deque<Machine> wires_;  // by slice: the link of one machine, which its exchanges share
  std::vector<size_t> at_;     // by rank: the action
  std::vector<double> since_;  // by rank: until when its time is counted
  std::vector<Group> groups_;  // by exchange and line
  std::vector<std::deque<size_t>> lines_;
  std::map<std::pair<size_t, size_t>, LinkLoad> loads_;  // by flow and line
  StepTime out_;
};

}  // namespace

StepTime time_step(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                   const std::vector<double>& speed, Random& jitter) {
  return StepSimulation(model, plan, options, speed, jitter).run();
}

StepTime mean_step(const std::vector<StepTime>& steps) {
  StepTime mean;
  const auto n = static_cast<double>(steps.size());
  for (const StepTime& s : steps) {
    mean.seconds += s.seconds / n;
    for (size_t i = 0; i < kParts; ++i) mean.parts[i] += s.parts[i] / n;
    mean.leaves_begin += s.leaves_begin / n;
    mean.leaves_end += s.leaves_end / n;
    mean.measured += s.measured / n;
    mean.between_links += s.between_links / n;
  }
  return mean;
}

}  // namespace ostro::simulate
