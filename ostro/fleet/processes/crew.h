// Crew: the part that one process has in a run on several processes, through all its epochs: its connections,
// its worker, and the state that it carries from one epoch to the next.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ostro/fleet/cells/save_cells.h"
#include "ostro/fleet/processes/command.h"
#include "ostro/fleet/processes/membership.h"
#include "ostro/fleet/processes/settle.h"
#include "ostro/train/options/config.h"

namespace ostro::fleet {

// Keys in the job's store, whose values a worker must know before it can train with others.
inline constexpr const char* kConfigKey = "config";        // the resolved configuration, from the leader
inline constexpr const char* kProgramKey = "program";      // hash of the canonical programs
inline constexpr const char* kDataKey = "data";            // hash of the data set
inline constexpr const char* kReferenceKey = "reference";  // hash of the reference of preference pairs
inline constexpr const char* kNoReference = "none";        // the value for a run without pairs

// Rank 0 of an epoch is the leader: it holds the run (directory, chain, checkpoints, reports) and sends the
// commands. One thread uses a crew. When a call gives an error of kIo, connections were lost: form() makes
// new ones; with any other error this process cannot go on.
class Crew {
 public:
  // `membership` and `engine` must outlive the crew. `stop` is called while the crew waits for an epoch; when
  // it returns true, the wait ends with kBusy. `stop_asked`: whether the run is to be saved and to stop.
  // `sharers`: the workers, this one included, that share the memory of the engine's device.
  Crew(Membership& membership, runtime::Engine& engine, std::function<bool()> stop,
       std::function<bool()> stop_asked = {}, int64_t sharers = 1);
  ~Crew();

  Membership& membership() { return membership_; }

  // Sets the run that is trained. Call it once, before form(). `vocab`: of its tokenizer.
  void set_run(const train::CanonicalPrograms& programs, const std::string& remat,
               const train::TrainConfig& config, int64_t vocab);
  bool has_run() const { return run_.has_value(); }
  const train::TrainConfig& config() const { return run_->config; }

  // The epoch that is formed, or that is to be formed. Waits a little for it. Error: kBusy when there is none
  // yet.
  Result<EpochView> wait_epoch();
  // Connects with the workers of the newest epoch and settles the state that they carry. Tries again when
  // epochs end meanwhile.
  Result<Settled> form();
  // Reports that all workers have adopted the state after `step` steps.
  void adopted(int64_t step);

  bool formed() const { return group_ != nullptr; }
  const EpochView& epoch() const { return epoch_; }
  bool stopped() const { return stop_(); }
  bool stop_asked() const { return stop_asked_ && stop_asked_(); }
  bool leads() const { return epoch_.rank == 0; }
  // True when this process carries a part of a state, to the next epoch or to a checkpoint.
  bool carries() const { return carries_; }
  // The result of the last form(): whether the workers have a state, and after which step.
  const Settled& settled() const { return settled_; }
  dist::Group& group() { return *group_; }
  Worker& worker() { return *now_->worker; }
  const WorkerPlan& plan() const { return now_->plan; }
  // The seconds that a leaf usually took each worker, by rank, when this epoch was formed; 0: not known.
  const std::vector<double>& known_leaf_seconds() const { return leaf_seconds_; }
  // Sets the shares of the workers' plan; all of them call it between the same two steps.
  void set_shares(const LeafShares& shares) { now_->plan.shares = shares; }

  // True when another epoch is known and all its workers are prepared. The leader then sends kSwitch, and all
  // leave this epoch.
  bool switch_due() const { return switch_due_ && !held_; }
  // Keeps the leader in this epoch for a while.
  void hold(bool on) { held_ = on; }
  // True when a switch is due and this process is not in the next epoch. If it leads, it must close the run
  // first.
  bool leaves_next() const { return switch_due() && without_this_; }
  // Takes note of what the checks of a step found (trainer.cross_check). Returns the error with which this
  // worker goes on: kIo with the others, in an epoch without those that were named; kCorrupt when it was
  // named itself; kInternal when no majority named a worker for the third time. Then the run ends.
  Error differs(const Disagreement& found);
  // Whether this worker was named.
  bool named() const { return named_; }
  // What differs() was told since the last call.
  std::vector<Disagreement> take_disagreements() { return std::exchange(disagreements_, {}); }
  // True when an epoch was formed to which this process does not belong.
  bool out() const { return out_; }
  // True if this epoch is over, or is not the one that is formed.
  bool ended(int64_t epoch) const;
  // Ends the connections and keeps the state. `fault` is the reason, "" when all workers leave together.
  void leave(const std::string& fault);
  // The place of the checkpoint of a step that this epoch's workers write below `root`. The epoch ends when
  // the folder of the checkpoint is removed meanwhile.
  SharedSave shared_save(io::FileSystem& fs, std::string root, int64_t step) const;
  // forget() discards the state that this process carries. restart() also asks the caller to open the run
  // again, from a checkpoint.
  void forget() {
    settled_ = Settled();
    carries_ = false;
  }
  void restart();
  // Asks the caller to open the run again, or to hand it to another worker. The state is kept.
  void reopen() { restarts_ = true; }
  bool restarts() const { return restarts_; }
  // Reports that the run is open again.
  void restarted() { restarts_ = false; }

 private:
  struct Run {
    train::CanonicalPrograms programs;
    std::string remat;
    train::TrainConfig config;
    int64_t vocab = 0;
  };
  // A plan for one epoch and the worker made for it.
  struct Prepared {
    EpochView epoch;
    WorkerPlan plan;
    std::unique_ptr<Worker> worker;
  };

  Result<std::unique_ptr<Prepared>> prepare(const EpochView& epoch) const;
  // Waits for a key of an epoch; kBusy when `given_up`.
  Result<std::string> wait_for(int64_t epoch, const std::string& key, const std::function<bool()>& given_up);
  Status meet(const EpochView& epoch, const std::function<bool()>& given_up);
  Status try_form(const EpochView& epoch);
  Result<Settled> settle_state();
  void watch();
  void start_watch();
  void stop_watch();

  Membership& membership_;
  runtime::Engine& engine_;
  const std::function<bool()> stop_, stop_asked_;
  const int64_t sharers_;
  std::optional<Run> run_;
  EpochView epoch_;                      // the one that is formed, or that is to be formed
  std::unique_ptr<Prepared> now_, old_;  // old: its cells are the state until the new ones are settled
  std::unique_ptr<dist::Group> group_;
  Settled settled_;
  std::vector<double> leaf_seconds_;  // known_leaf_seconds()
  bool restarts_ = false, out_ = false, held_ = false, named_ = false;
  std::vector<Disagreement> disagreements_;
  int undecided_ = 0;                    // disagreements without a majority
  std::atomic<int> sizes_differed_ = 0;  // messages of another size than was expected

  std::atomic<bool> carries_ = false;

  // Another epoch is prepared beside training.
  std::thread watcher_;
  std::atomic<bool> watching_ = false, switch_due_ = false, without_this_ = false;
  std::mutex mutex_;
  std::unique_ptr<Prepared> next_;
};

}  // namespace ostro::fleet
