#include "ostro/simulate/run_history.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/simulate/step/units.h"
#include "ostro/train/options/mesh.h"

namespace ostro::simulate {
namespace {

constexpr int kSamples = 8;  // steps of a plan that are drawn
constexpr double kPieceSeconds =
    1.5e-8;                  // of a core, in fleet::pieces_for, for a part of an array and a host
constexpr double kBeat = 1;  // seconds between heartbeats

// The coordinator's decisions are logged; these are not of a real run.
class Silence {
 public:
  Silence() : before_(set_log_sink([](LogLevel, std::string_view) {})) {}
  ~Silence() { set_log_sink(std::move(before_)); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  LogSink before_;
};

// As run::coordinator_options gives them to a coordinator.
cluster::Sizes epoch_sizes(const train::ShardingOptions& sharding, const SimulateOptions& options) {
  const int64_t multiple = train::mesh_multiple(sharding);
  return {std::max(multiple, options.min_workers), options.hosts, multiple, train::outer_replicas(sharding),
          sharding.mesh.exchange == train::ExchangeSchedule::kLayer};
}

// A plan, and the times of some of its steps.
struct Planned {
  StepPlan plan;
  std::vector<StepTime> times;
};

class RunSimulation {
 public:
  RunSimulation(const RunModel& model, runtime::Engine& engine, const SimulateOptions& options,
                const StepPlan& first)
      : model_(model),
        engine_(engine),
        o_(options),
        random_(options.seed),
        failures_(options.seed + 1),
        job_(queue_, options, epoch_sizes(model.config.trainer.sharding, options),
             {[this](const std::vector<int64_t>& places) { formed(places); }, [this] { switch_due_ = true; },
              [this] { switch_due_ = false; }, [this] { ended(); }}),
        there_(static_cast<size_t>(options.hosts)),
        came_(there_.size()),
        rank_of_(there_.size(), -1),
        forming_(there_.size()) {
    for (int64_t place = 0; place < o_.hosts; ++place)
      speed_.push_back(o_.spread > 0 ? random_.log_normal(o_.spread) : 1);
    add_plan(first);
  }

  Result<RunHistory> run() {
    const double end = o_.hours * kHour;
    for (int64_t place = 0; place < o_.hosts; ++place) come(place, true);
    if (o_.slice_mtbf_hours > 0)
      for (int64_t slice = 0; slice < o_.slices; ++slice) plan_slice_loss(slice);
    while (!queue_.empty() && queue_.next() <= end) {
      queue_.step();
      if (!failed_.ok()) return failed_.error();
    }
    spend(use_, end);
    out_.seconds = end;
    out_.steps = most_steps_;
    out_.epochs = job_.epochs();
    out_.control = job_.traffic();
    out_.heartbeats = static_cast<int64_t>(host_seconds_there_ / kBeat);
    return out_;
  }

 private:
  const Planned& add_plan(StepPlan plan) {
    const std::vector<int64_t> sizes = plan.slice_sizes;
    auto made = std::make_unique<Planned>();
    made->plan = std::move(plan);
    std::vector<double> speed(speed_.begin(), speed_.begin() + made->plan.hosts);
    for (int i = 0; i < kSamples; ++i)
      made->times.push_back(time_step(model_, made->plan, o_, speed, random_));
    return *plans_.emplace(sizes, std::move(made)).first->second;
  }

  // The places in the order of the ranks of plan_for: the largest slices first. Slices of the same sizes in
  // another order have the same plan.
  std::vector<int64_t> in_plan_order(const std::vector<int64_t>& places) const {
    std::vector<std::vector<int64_t>> slices;
    for (const int64_t place : places) {
      if (slices.empty() || slice_of(slices.back().back()) != slice_of(place)) slices.emplace_back();
      slices.back().push_back(place);
    }
    std::stable_sort(slices.begin(), slices.end(),
                     [](const auto& x, const auto& y) { return x.size() > y.size(); });
    std::vector<int64_t> out;
    for (const std::vector<int64_t>& slice : slices) out.insert(out.end(), slice.begin(), slice.end());
    return out;
  }
  int64_t slice_of(int64_t place) const { return place / (o_.hosts / o_.slices); }

  Result<const Planned*> plan_for(const std::vector<int64_t>& places) {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < places.size(); ++i) {
      if (i == 0 || slice_of(places[i - 1]) != slice_of(places[i])) sizes.push_back(0);
      ++sizes.back();
    }
    const auto known = plans_.find(sizes);
    if (known != plans_.end()) return known->second.get();
    ASSIGN_OR_RETURN(StepPlan plan, plan_step(model_, engine_, sizes));
    return &add_plan(std::move(plan));
  }

  void come(int64_t place, bool first) {
    const auto at = static_cast<size_t>(place);
    there_[at] = true;
    const int64_t number = ++came_[at];
    job_.join(place, first);
    if (!first) ++out_.joins;
    if (o_.mtbf_hours <= 0) return;
    queue_.after(failures_.exponential(o_.mtbf_hours * kHour), [this, place, number] {
      if (!there_[static_cast<size_t>(place)] || came_[static_cast<size_t>(place)] != number) return;
      ++out_.host_losses;
      lose({place});
    });
  }

  void plan_slice_loss(int64_t slice) {
    queue_.after(failures_.exponential(o_.slice_mtbf_hours * kHour), [this, slice] {
      std::vector<int64_t> places;
      const int64_t each = o_.hosts / o_.slices;
      for (int64_t place = slice * each; place < (slice + 1) * each; ++place)
        if (there_[static_cast<size_t>(place)]) places.push_back(place);
      if (!places.empty()) {
        ++out_.slice_losses;
        lose(places);
      }
      plan_slice_loss(slice);
    });
  }

  // Counts the time since the last call as one use.
  void spend(TimeUse use, double until) {
    const double seconds = until - since_;
    out_.uses[static_cast<size_t>(use)] += seconds;
    out_.host_seconds += seconds * static_cast<double>(now_ == nullptr ? 0 : now_->plan.hosts);
    host_seconds_there_ += seconds * static_cast<double>(std::count(there_.begin(), there_.end(), true));
    since_ = until;
  }

  void begin_step() {
    training_ = true;
    step_ = now_->times[static_cast<size_t>(drawn_++ % kSamples)];
    step_begin_ = queue_.now();
    use_ = steps_ < most_steps_ ? TimeUse::kLost : TimeUse::kStep;
    queue_.after(step_.seconds, [this, turn = ++turn_] {
      if (turn == turn_) step_done();
    });
  }

  void step_done() {
    spend(use_, queue_.now());
    out_.longest_step = std::max(out_.longest_step, step_.seconds);
    ++steps_;
    most_steps_ = std::max(most_steps_, steps_);
    const auto& checkpointer = model_.config.trainer.checkpointer;
    const bool named = checkpointer.is_kept(steps_);
    const bool timed = checkpointer.save_interval &&
                       queue_.now() - last_timed_ >= static_cast<double>(checkpointer.save_interval->seconds);
    if (named || timed) {
      if (timed) last_timed_ = queue_.now();
      return save_when_free(named);
    }
    go_on();
  }

  // One checkpoint is written at a time: the next one waits for it, and the steps with it.
  void save_when_free(bool named) {
    if (!saving_) {
      begin_save(named);
      return go_on();
    }
    training_ = false;
    use_ = TimeUse::kCheckpoint;
    waits_to_save_ = named ? 2 : 1;
  }

  void begin_save(bool named) {
    saving_ = Saving{steps_, named, 0};
    write(steps_);
  }

  // In the background, by all hosts.
  void write(int64_t step) {
    saving_->number = ++saves_;
    const auto bytes = static_cast<double>(model_.state_bytes);
    const double of_machine = bytes / static_cast<double>(now_->plan.hosts) * hosts_a_machine(now_->plan);
    const double link = o_.machines() > 1 ? of_machine * kBitsAByte / (o_.inner_gbit * kGiga) : 0;
    const double seconds = std::max(bytes / (o_.store_gbytes * kGiga), link);
    queue_.after(seconds, [this, step, number = saves_] {
      if (!saving_ || saving_->number != number) return;
      saving_.reset();
      saved_ = step;
      ++out_.checkpoints;
      if (waits_to_save_ == 0 || recovering_) return;
      spend(TimeUse::kCheckpoint, queue_.now());
      begin_save(std::exchange(waits_to_save_, 0) == 2);
      go_on();
    });
  }

  // Between two steps: the hosts may change over to another epoch, but not while a checkpoint is written.
  void go_on() {
    if (!switch_due_ || saving_) return begin_step();
    interrupt(0);
    job_.change_over();
  }

  void interrupt(int64_t lost) {
    training_ = false;
    switch_due_ = false;
    ++turn_;
    use_ = TimeUse::kRecovery;
    if (!recovering_) recovering_ = Recovery{queue_.now(), 0, 0, now_->plan.hosts, 0, 0};
    recovering_->lost += lost;
  }

  void lose(const std::vector<int64_t>& places) {
    bool in_run = false, leader = false, settles = false;
    for (const int64_t place : places) {
      const auto at = static_cast<size_t>(place);
      there_[at] = false;
      settles = settles || forming_[at];
      if (now_ != nullptr && rank_of_[at] >= 0) {
        in_run = true;
        leader = leader || place == leader_;
        lost_[static_cast<size_t>(rank_of_[at])] = true;
      }
      job_.lose(place);
      queue_.after(o_.replace_minutes * kMinute, [this, place, number = came_[at]] {
        if (!there_[static_cast<size_t>(place)] && came_[static_cast<size_t>(place)] == number)
          come(place, false);
      });
    }
    // The epoch that forms ends without a step, also where the host that is lost has only just joined.
    if (settles) {
      ++turn_;
      forming_.assign(forming_.size(), false);
    }
    if (!in_run) return;
    if (leader && saving_) chain_behind_ = true;
    if (training_) cut_step();
    if (waits_to_save_ > 0) spend(TimeUse::kCheckpoint, queue_.now());
    interrupt(static_cast<int64_t>(places.size()));
    if (!saving_) return;
    owes_ = waits_to_save_ == 2;
    // A checkpoint that the chain names is written again by those that are left; another one is given up.
    rewrites_ = saving_->named ? std::optional<int64_t>(saving_->step) : std::nullopt;
    saving_.reset();
    waits_to_save_ = 0;
  }

  // The epoch is over although none of its hosts is lost: one that was to join is.
  void ended() {
    if (!training_) return;
    cut_step();
    interrupt(0);
  }

  // A step whose norm is known is finished by each host that is left; another one is begun again, when the
  // leaf that a host computes is done.
  void cut_step() {
    const double offset = queue_.now() - step_begin_;
    double busy = 0;
    if (offset >= step_.measured) {
      spend(use_, queue_.now());
      ++steps_;
      most_steps_ = std::max(most_steps_, steps_);
      busy = step_.seconds - offset;
    } else if (offset > step_.leaves_begin && offset < step_.leaves_end) {
      const double leaf = (step_.leaves_end - step_.leaves_begin) /
                          static_cast<double>(std::max<int64_t>(1, now_->plan.most_leaves()));
      const double done = (offset - step_.leaves_begin) / leaf;
      busy = (1 - (done - static_cast<double>(static_cast<int64_t>(done)))) * leaf;
    }
    job_.busy_until(queue_.now() + busy);
  }

  // The hosts of an epoch are connected; they settle which state they have, and cells move.
  void formed(const std::vector<int64_t>& by_rank) {
    if (training_) ended();
    leader_ = by_rank.front();
    const std::vector<int64_t> places = in_plan_order(by_rank);
    // A host that is left out takes its cells with it.
    std::vector<bool> in(rank_of_.size());
    for (const int64_t place : places) in[static_cast<size_t>(place)] = true;
    for (size_t place = 0; place < in.size(); ++place)
      if (!in[place] && rank_of_[place] >= 0) lost_[static_cast<size_t>(rank_of_[place])] = true;
    const auto planned = plan_for(places);
    if (!planned.ok()) {
      failed_ = planned.error();
      return;
    }
    const Planned* next = *planned;
    double seconds = 0;
    bool restart = false;
    if (now_ != nullptr) {
      restart = chain_behind_ || !state_survives(now_->plan, lost_);
      seconds = restart ? static_cast<double>(model_.state_bytes) / (o_.store_gbytes * kGiga)
                        : settle_seconds(next->plan);
    }
    forming_ = in;
    queue_.after(seconds, [this, places, next, restart, turn = ++turn_] {
      if (turn == turn_) settled(places, next, restart);
    });
  }

  // The hosts that share a machine's link.
  double hosts_a_machine(const StepPlan& plan) const {
    return static_cast<double>(std::min(o_.hosts_per_machine, plan.hosts));
  }

  double settle_seconds(const StepPlan& plan) const {
    const auto hosts = static_cast<double>(plan.hosts);
    const auto arrays = static_cast<double>(model_.arrays);
    const double busy = std::max(1.0, static_cast<double>(o_.hosts_per_machine) / o_.cores);
    const double latency = kMicro * (plan.slices > 1 ? o_.outer_latency_us : o_.inner_latency_us);
    const double told = 2 * ((hosts - 1) * o_.message_us * kMicro * busy + latency);
    const double plans = kPieceSeconds * arrays * static_cast<double>(now_->plan.parts()) * hosts * busy;
    const auto bytes = static_cast<double>(moved_bytes(plan));
    const double links =
        bytes * kBitsAByte *
        std::max(hosts_a_machine(plan) / (o_.inner_gbit * kGiga),
                 plan.slices > 1 ? hosts / static_cast<double>(plan.slices) / (o_.outer_gbit * kGiga) : 0);
    const double copies = o_.loopback_gbytes > 0 ? bytes / (o_.loopback_gbytes * kGiga) * busy : 0;
    return told + plans + (o_.machines() > 1 ? links : 0) + copies + arrays * latency;
  }

  void settled(const std::vector<int64_t>& places, const Planned* next, bool restart) {
    const TimeUse use = now_ == nullptr ? TimeUse::kStart : TimeUse::kRecovery;
    spend(use, queue_.now());
    if (restart) {
      ++out_.restarts;
      if (recovering_) recovering_->steps_back = steps_ - saved_;
      steps_ = saved_;
    }
    chain_behind_ = false;
    forming_.assign(forming_.size(), false);
    now_ = next;
    lost_.assign(places.size(), false);
    rank_of_.assign(rank_of_.size(), -1);
    for (size_t rank = 0; rank < places.size(); ++rank)
      rank_of_[static_cast<size_t>(places[rank])] = static_cast<int64_t>(rank);
    if (recovering_) {
      recovering_->seconds = queue_.now() - recovering_->at;
      recovering_->after = next->plan.hosts;
      out_.recoveries.push_back(*recovering_);
      recovering_.reset();
    }
    job_.began(most_steps_);
    if (rewrites_ && !restart) {
      saving_ = Saving{*rewrites_, true, 0};
      write(*rewrites_);
    }
    rewrites_.reset();
    if (std::exchange(owes_, false) && !restart) return save_when_free(true);
    begin_step();
  }

  struct Saving {
    int64_t step = 0;
    bool named = false;
    int64_t number = 0;
  };

  const RunModel& model_;
  runtime::Engine& engine_;
  const SimulateOptions& o_;
  const Silence silence_;
  Random random_, failures_;
  EventQueue queue_;
  Job job_;
  std::vector<bool> there_;
  std::vector<int64_t> came_;     // by place: how often a host came
  std::vector<int64_t> rank_of_;  // by place, in the plan of the epoch whose cells are the state; -1: none
  std::vector<bool> lost_;        // by rank of that epoch
  std::vector<bool> forming_;     // by place: whether it is in the epoch whose cells are on their way
  std::vector<double> speed_;
  std::map<std::vector<int64_t>, std::unique_ptr<Planned>> plans_;
  const Planned* now_ = nullptr;  // the epoch whose cells are the state; null: there is none yet
  StepTime step_;
  double step_begin_ = 0, since_ = 0, last_timed_ = 0, host_seconds_there_ = 0;
  int64_t leader_ = 0;
  int64_t drawn_ = 0, turn_ = 0, steps_ = 0, most_steps_ = 0, saved_ = 0, saves_ = 0;
  int waits_to_save_ = 0;  // 2: for a checkpoint that the chain names
  bool training_ = false, switch_due_ = false, chain_behind_ = false;
  bool owes_ = false;  // a checkpoint that the chain names and that was not begun
  TimeUse use_ = TimeUse::kStart;
  std::optional<Saving> saving_;
  std::optional<int64_t> rewrites_;
  std::optional<Recovery> recovering_;
  Status failed_;
  RunHistory out_;
};

}  // namespace

int64_t moved_bytes(const StepPlan& plan) {
  int64_t most = 0;
  for (const HostWork& kind : plan.kinds) most = std::max(most, kind.state);
  return most;
}

Result<RunHistory> simulate_run(const RunModel& model, runtime::Engine& engine,
                                const SimulateOptions& options, const StepPlan& first) {
  return RunSimulation(model, engine, options, first).run();
}

}  // namespace ostro::simulate
