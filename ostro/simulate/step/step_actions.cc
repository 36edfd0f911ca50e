#include "ostro/simulate/step/step_actions.h"

#include <algorithm>

#include "ostro/simulate/step/units.h"

namespace ostro::simulate {
namespace {

using Level = Exchange::Level;

constexpr double kSumBytes = 3;           // a sum reads two gradients and writes one
constexpr double kUpdateBytes = 7.0 / 3;  // an update reads and writes the state, and reads gradients

class ActionList {
 public:
  ActionList(const StepPlan& plan, const std::vector<HostSeconds>& seconds,
             const std::vector<int64_t>& checked)
      : plan_(plan), seconds_(seconds), checked_(checked) {}

  StepActions make() {
    exchange({Part::kCommand});  // the leader's
    if (plan_.overlaps)
      leaves_beside();
    else
      leaves_alone();
    both(&HostWork::joined, false);
    out_.measured = exchange({Part::kInUpdate, true, &HostWork::in_update});
    compute(Part::kUpdate, [seconds = by_rank()](int64_t rank) { return seconds(rank).update; });
    compute(Part::kPrint, [seconds = by_rank()](int64_t rank) { return seconds(rank).prints; });
    exchange({Part::kCommand});  // the next step begins when all have finished
    return std::move(out_);
  }

 private:
  std::function<const HostSeconds&(int64_t)> by_rank() const {
    return [&plan = plan_, &seconds = seconds_](int64_t rank) -> const HostSeconds& {
      return seconds[plan.kind_of[static_cast<size_t>(rank)]];
    };
  }

  void compute(Part part, std::function<double(int64_t)> seconds) {
    out_.actions.push_back({Action::Kind::kCompute, 0, part, std::move(seconds)});
  }
  size_t add(Exchange e) {
    const auto same = std::find_if(out_.exchanges.begin(), out_.exchanges.end(), [&](const Exchange& x) {
      return x.whole == e.whole && x.traffic == e.traffic && x.level == e.level;
    });
    e.flow = same == out_.exchanges.end() ? flows_++ : same->flow;
    out_.exchanges.push_back(e);
    return out_.exchanges.size() - 1;
  }
  void begin(size_t number) { out_.actions.push_back({Action::Kind::kBegin, number, {}, {}}); }
  void wait(size_t number) { out_.actions.push_back({Action::Kind::kWait, number, {}, {}}); }
  size_t exchange(const Exchange& e) {
    const size_t number = add(e);
    begin(number), wait(number);
    return number;
  }

  bool sends(const Traffic HostWork::* kind, Level level) const {
    return std::any_of(plan_.kinds.begin(), plan_.kinds.end(), [&](const HostWork& w) {
      return level == Level::kInside ? (w.*kind).inside > 0 : (w.*kind).between > 0;
    });
  }
  Exchange inside(const Traffic HostWork::* kind, double share = 1) const {
    return {Part::kInside, !plan_.two_levels, kind, Level::kInside, share};
  }
  static Exchange between(const Traffic HostWork::* kind, double share = 1) {
    return {Part::kBetween, true, kind, Level::kBetween, share};
  }
  // What is sent inside slices, and between them, if anything is.
  void both(const Traffic HostWork::* kind, bool inside_first) {
    if (inside_first && sends(kind, Level::kInside)) exchange(inside(kind));
    if (sends(kind, Level::kBetween)) exchange(between(kind));
    if (!inside_first && sends(kind, Level::kInside)) exchange(inside(kind));
  }

  void leaves_alone() {
    both(&HostWork::parameters, false);
    out_.first_leaf = out_.last_leaf = out_.actions.size();
    compute(Part::kCompute, [&plan = plan_, seconds = by_rank()](int64_t rank) {
      const HostWork& w = plan.work(rank);
      return static_cast<double>(w.leaves) * seconds(rank).leaf + w.adds.total() * seconds(rank).add;
    });
    both(&HostWork::in_leaves, true);
    compare_leaves();
    both(&HostWork::gradients, true);
  }

  // trainer.cross_check: all wait until those that are drawn have computed leaves of others.
  void compare_leaves() {
    if (std::all_of(checked_.begin(), checked_.end(), [](int64_t leaves) { return leaves == 0; })) return;
    compute(Part::kCompute, [&checked = checked_, seconds = by_rank()](int64_t rank) {
      return static_cast<double>(checked[static_cast<size_t>(rank)]) * seconds(rank).leaf;
    });
    exchange({Part::kInUpdate});
  }

  // Computes from one place among a host's leaves, in leaves, to another, and so many sums.
  void compute_leaves(double from, double to, bool last_from, bool last_to, Sums sums) {
    compute(Part::kCompute, [=, &plan = plan_, seconds = by_rank(), read = read_](int64_t rank) {
      const HostWork& w = plan.work(rank);
      const auto place = [&](double at, bool last) {
        const auto before = static_cast<double>(w.leaves - 1);
        if (w.leaves == 0) return 0.0;
        return last ? std::max(read, before + at) : at;
      };
      const double adds = w.adds.leaves * sums.leaves + w.adds.last * sums.last + w.adds.slice * sums.slice +
                          w.adds.all * sums.all;
      return (place(to, last_to) - place(from, last_from)) * seconds(rank).leaf + adds * seconds(rank).add;
    });
  }
  void add_sums(const Sums& sums) { compute_leaves(0, 0, false, false, sums); }

  // SliceOverlap of fleet/workers.
  void leaves_beside() {
    std::vector<size_t> far, near;
    const bool gathers = sends(&HostWork::parameters, Level::kBetween);
    const bool passes_on = sends(&HostWork::parameters, Level::kInside);
    for (const LeafChunk& chunk : plan_.chunks.read)
      if (gathers) begin(far.emplace_back(add(between(&HostWork::parameters, chunk.share))));
    out_.first_leaf = out_.actions.size();
    double at = 0;
    for (size_t i = 0; i < plan_.chunks.read.size(); ++i) {
      const LeafChunk& chunk = plan_.chunks.read[i];
      compute_leaves(at, chunk.at, false, false, {});
      at = read_ = chunk.at;
      if (gathers) wait(far[i]);
      if (passes_on) exchange(inside(&HostWork::parameters, chunk.share));
    }
    far.clear();
    bool last = false;  // whether `at` is in the last leaf
    const std::vector<LeafChunk>& made = plan_.chunks.made;
    const auto pass_on = [&](size_t j) {
      if (!near.empty()) wait(near[j]);
      add_sums({.slice = made[j].share});
      if (sends(&HostWork::gradients, Level::kBetween))
        begin(far.emplace_back(add(between(&HostWork::gradients, made[j].share))));
    };
    for (size_t j = 0; j < made.size(); ++j) {
      compute_leaves(at, made[j].at, last, true, {.leaves = last ? 0.0 : 1.0, .last = made[j].share});
      at = made[j].at, last = true;
      if (sends(&HostWork::gradients, Level::kInside))
        begin(near.emplace_back(add(inside(&HostWork::gradients, made[j].share))));
      if (j > 0) pass_on(j - 1);
    }
    out_.last_leaf = out_.actions.size();
    compute_leaves(at, 1, last, true, {});
    both(&HostWork::in_leaves, true);
    if (!made.empty()) pass_on(made.size() - 1);
    compare_leaves();
    for (size_t j = 0; j < far.size(); ++j) {
      wait(far[j]);
      add_sums({.all = made[j].share});
    }
  }

  const StepPlan& plan_;
  const std::vector<HostSeconds>& seconds_;
  const std::vector<int64_t>& checked_;
  StepActions out_;
  size_t flows_ = 0;
  double read_ = 0;  // the place in the first leaf at which all parameters are there
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

StepActions step_actions(const StepPlan& plan, const std::vector<HostSeconds>& seconds,
                         const std::vector<int64_t>& checked) {
  return ActionList(plan, seconds, checked).make();
}

}  // namespace ostro::simulate
