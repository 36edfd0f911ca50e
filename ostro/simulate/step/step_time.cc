#include "ostro/simulate/step/step_time.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "ostro/simulate/step/event_queue.h"
#include "ostro/simulate/step/machine.h"
#include "ostro/simulate/step/units.h"

namespace ostro::simulate {
namespace {

constexpr double kSumBytes = 3;           // a sum reads two gradients and writes one
constexpr double kUpdateBytes = 7.0 / 3;  // an update reads and writes the state, and reads gradients

// A phase in which all hosts take part: they compute, or exchange with those of a group.
struct Phase {
  Part part = Part::kCompute;
  bool exchange = false;
  bool whole = true;                            // the group: all hosts, or those of a slice
  const Traffic HostWork::* traffic = nullptr;  // what is sent; null: one word
  enum class Level { kInside, kBetween, kBoth } level = Level::kBoth;
  std::function<double(int64_t rank)> seconds;  // of computing
};

class StepSimulation {
 public:
  StepSimulation(const RunModel& model, const StepPlan& plan, const SimulateOptions& options,
                 const std::vector<double>& speed, Random& jitter)
      : plan_(plan), o_(options) {
    for (int64_t rank = 0; rank < plan.hosts; ++rank)
      slow_.push_back((speed.empty() ? 1 : speed[static_cast<size_t>(rank)]) *
                      (o_.jitter > 0 ? jitter.log_normal(o_.jitter) : 1));
    for (const HostWork& kind : plan.kinds) seconds_.push_back(host_seconds(model, plan, options, kind));
    machines_ = (plan.hosts + o_.hosts_per_machine - 1) / o_.hosts_per_machine;
    phase_of_.resize(static_cast<size_t>(plan.hosts));
    since_.resize(phase_of_.size());
    make_phases();
  }

  StepTime run() {
    for (int64_t m = 0; m < machines_; ++m) cores_.emplace_back(queue_, o_.cores);
    for (int64_t rank = 0; rank < plan_.hosts; ++rank) begin(rank);
    while (queue_.step()) {
    }
    out_.seconds = queue_.now();
    for (double& part : out_.parts) part /= static_cast<double>(plan_.hosts);
    return out_;
  }

 private:
  using Level = Phase::Level;
  struct Gathering {
    std::vector<int64_t> here;
    int64_t busy = 0;
  };

  void make_phases() {
    const auto sends = [&](Traffic HostWork::* kind, Level level) {
      return std::any_of(plan_.kinds.begin(), plan_.kinds.end(), [&](const HostWork& w) {
        return level == Level::kInside ? (w.*kind).inside > 0 : (w.*kind).between > 0;
      });
    };
    const auto exchange = [&](Part part, bool whole, const Traffic HostWork::* kind, Level level) {
      phases_.push_back({part, true, whole, kind, level, {}});
    };
    const auto compute = [&](Part part, std::function<double(int64_t)> seconds) {
      phases_.push_back({part, false, false, nullptr, Level::kBoth, std::move(seconds)});
    };
    exchange(Part::kCommand, true, nullptr, Level::kBoth);  // the leader's
    if (sends(&HostWork::parameters, Level::kBetween))
      exchange(Part::kBetween, true, &HostWork::parameters, Level::kBetween);
    if (sends(&HostWork::parameters, Level::kInside))
      exchange(Part::kInside, !plan_.two_levels, &HostWork::parameters, Level::kInside);
    leaves_phase_ = phases_.size();
    compute(Part::kCompute, [this](int64_t rank) {
      const HostSeconds& s = seconds_of(rank);
      const HostWork& w = plan_.work(rank);
      return static_cast<double>(w.leaves) * s.leaf + w.adds * s.add;
    });
    if (sends(&HostWork::in_leaves, Level::kInside))
      exchange(Part::kInside, !plan_.two_levels, &HostWork::in_leaves, Level::kInside);
    if (sends(&HostWork::in_leaves, Level::kBetween))
      exchange(Part::kBetween, true, &HostWork::in_leaves, Level::kBetween);
    if (sends(&HostWork::gradients, Level::kInside))
      exchange(Part::kInside, !plan_.two_levels, &HostWork::gradients, Level::kInside);
    if (sends(&HostWork::gradients, Level::kBetween))
      exchange(Part::kBetween, true, &HostWork::gradients, Level::kBetween);
    measured_phase_ = phases_.size();
    exchange(Part::kInUpdate, true, &HostWork::in_update, Level::kBoth);
    compute(Part::kUpdate, [this](int64_t rank) { return seconds_of(rank).update; });
    compute(Part::kPrint, [this](int64_t rank) { return seconds_of(rank).prints; });
    exchange(Part::kCommand, true, nullptr, Level::kBoth);  // the next step begins when all have finished
  }

  const HostSeconds& seconds_of(int64_t rank) const {
    return seconds_[plan_.kind_of[static_cast<size_t>(rank)]];
  }
  int64_t machine_of(int64_t rank) const { return rank / o_.hosts_per_machine; }
  Machine& cores_of(int64_t rank) { return cores_[static_cast<size_t>(machine_of(rank))]; }
  void count(int64_t rank, Part part) {
    double& since = since_[static_cast<size_t>(rank)];
    out_.parts[static_cast<size_t>(part)] += queue_.now() - since;
    since = queue_.now();
  }

  void begin(int64_t rank) {
    const size_t number = phase_of_[static_cast<size_t>(rank)];
    if (number == phases_.size()) return;
    const Phase& phase = phases_[number];
    if (number == leaves_phase_) out_.leaves_begin = queue_.now();
    if (phase.exchange) return arrive(rank, number);
    const double seconds = phase.seconds(rank) * slow_[static_cast<size_t>(rank)];
    cores_of(rank).work(seconds, [this, rank, number] {
      if (number == leaves_phase_) out_.leaves_end = queue_.now();
      count(rank, phases_[number].part);
      next(rank);
    });
  }

  void next(int64_t rank) {
    ++phase_of_[static_cast<size_t>(rank)];
    begin(rank);
  }

  void arrive(int64_t rank, size_t number) {
    const Phase& phase = phases_[number];
    const int64_t slice = plan_.slice_of[static_cast<size_t>(rank)];
    const int64_t size = phase.whole ? plan_.hosts : plan_.slice_sizes[static_cast<size_t>(slice)];
    Gathering& group = groups_[{number, phase.whole ? -1 : slice}];
    group.here.push_back(rank);
    if (static_cast<int64_t>(group.here.size()) < size) return;
    // All are here: each works for its messages, and the links carry their bytes.
    group.busy = size + 1;
    const auto finish = [this, number, &group] {
      if (--group.busy > 0) return;
      if (number == measured_phase_) out_.measured = queue_.now();
      for (const int64_t member : group.here) {
        count(member, phases_[number].part);
        next(member);
      }
    };
    const std::vector<int64_t> members = group.here;
    for (const int64_t member : members) count(member, Part::kWait);
    for (const int64_t member : members) cores_of(member).work(core_seconds(member, phase), finish);
    queue_.after(link_seconds(members, phase), finish);
  }

  int64_t bytes_of(int64_t rank, const Phase& phase, Level level) const {
    if (phase.traffic == nullptr || (phase.level != Level::kBoth && phase.level != level)) return 0;
    const Traffic& t = plan_.work(rank).*phase.traffic;
    return level == Level::kInside ? t.inside : t.between;
  }

  // Of a core, for the messages and, on loopback, for their bytes.
  double core_seconds(int64_t rank, const Phase& phase) const {
    if (phase.traffic == nullptr) return o_.message_us * kMicro;
    const Traffic& t = plan_.work(rank).*phase.traffic;
    const auto bytes =
        static_cast<double>(bytes_of(rank, phase, Level::kInside) + bytes_of(rank, phase, Level::kBetween));
    const double share =
        t.bytes() > 0 && phase.level != Level::kBoth ? bytes / static_cast<double>(t.bytes()) : 1;
    return share * static_cast<double>(t.messages) * o_.message_us * kMicro +
           (o_.loopback_gbytes > 0 ? bytes / (o_.loopback_gbytes * kGiga) : 0);
  }

  // Of the links, which all members use at the same time: of machines and, between slices, of slices.
  double link_seconds(const std::vector<int64_t>& members, const Phase& phase) const {
    const bool far = plan_.slices > 1 && (phase.whole || phase.level == Level::kBetween);
    const double latency = kMicro * (far ? o_.outer_latency_us : o_.inner_latency_us);
    int64_t exchanges = 1;
    std::map<int64_t, double> machines, slices;  // bytes that leave them
    for (const int64_t rank : members) {
      const auto inside = static_cast<double>(bytes_of(rank, phase, Level::kInside));
      const auto between = static_cast<double>(bytes_of(rank, phase, Level::kBetween));
      if (phase.traffic != nullptr)
        exchanges = std::max(exchanges, (plan_.work(rank).*phase.traffic).exchanges);
      const int64_t slice = plan_.slice_of[static_cast<size_t>(rank)];
      machines[machine_of(rank)] +=
          inside * leaves_machine(phase.whole && !plan_.two_levels
                                      ? plan_.hosts
                                      : plan_.slice_sizes[static_cast<size_t>(slice)]) +
          between;
      slices[slice] += between;
    }
    if (machines_ == 1) return 0;
    double seconds = 0;
    for (const auto& [machine, bytes] : machines)
      seconds = std::max(seconds, bytes * kBitsAByte / (o_.inner_gbit * kGiga));
    for (const auto& [slice, bytes] : slices)
      seconds = std::max(seconds, bytes * kBitsAByte / (o_.outer_gbit * kGiga));
    // What the leaf program sends is sent while it works: only the rest is waited for, and the first layer.
    if (phase.traffic == &HostWork::in_leaves) {
      const double beside = out_.leaves_end - out_.leaves_begin;
      seconds = std::max(seconds - beside, seconds / static_cast<double>(plan_.layers));
      return seconds + latency;
    }
    return seconds + latency * static_cast<double>(exchanges);
  }

  // The share of what a host sends in a group of this size that leaves its machine.
  double leaves_machine(int64_t group) const {
    const int64_t here = std::min(o_.hosts_per_machine, group);
    return group <= 1 ? 0 : static_cast<double>(group - here) / static_cast<double>(group - 1);
  }

  const StepPlan& plan_;
  const SimulateOptions& o_;
  std::vector<double> slow_;
  std::vector<HostSeconds> seconds_;  // by kind
  int64_t machines_ = 1;
  std::vector<Phase> phases_;
  size_t leaves_phase_ = 0, measured_phase_ = 0;
  EventQueue queue_;
  std::deque<Machine> cores_;
  std::vector<size_t> phase_of_;
  std::vector<double> since_;
  std::map<std::pair<size_t, int64_t>, Gathering> groups_;
  StepTime out_;
};

}  // namespace

HostSeconds host_seconds(const RunModel& model, const StepPlan& plan, const SimulateOptions& o,
                         const HostWork& work) {
  const double rate = o.memory_gbytes * kGiga;
  const auto all = static_cast<double>(model.parameter_bytes), state = static_cast<double>(work.state);
  const auto whole = static_cast<double>(std::max<int64_t>(1, model.state_bytes));
  HostSeconds s;
  s.leaf = o.leaf_seconds > 0 ? o.leaf_seconds : plan.leaf_flops / o.flops;
  s.add = o.add_seconds > 0 ? o.add_seconds : kSumBytes * all / rate;
  s.update = o.update_seconds > 0 ? o.update_seconds * state / whole : kUpdateBytes * state / rate;
  // Of the cells that it owns, without copies: at most what it updates.
  const double owned = std::min(1.0, plan.holders.empty() ? state / whole : state / whole / 2);
  s.prints = owned * (o.print_seconds > 0 ? o.print_seconds : all / rate);
  return s;
}

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
  }
  return mean;
}

}  // namespace ostro::simulate
