#include "ostro/fleet/processes/crew.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/dist/checked_group.h"
#include "ostro/fleet/processes/device_room.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::fleet {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // how often waiting threads see whether they still should
constexpr int kMostFailures = 20;                // epochs in a row that could not be formed
constexpr std::chrono::milliseconds kMostRest{1000};
constexpr int kMostUndecided = 3;  // disagreements without a majority
constexpr int kMostSizes = 3;      // messages whose size differs, after which it was no bit that flipped

std::string prepared_key(int64_t rank) { return fmt::format("prepared/{}", rank); }

// Whether another epoch may do what one could not: a worker was lost, or did not come in time.
bool is_loss(const Error& error) {
  return error.code() == ErrorCode::kIo || error.code() == ErrorCode::kBusy;
}

}  // namespace

Crew::Crew(Membership& membership, runtime::Engine& engine, std::function<bool()> stop,
           std::function<bool()> stop_asked, int64_t sharers)
    : membership_(membership),
      engine_(engine),
      stop_(std::move(stop)),
      stop_asked_(std::move(stop_asked)),
      sharers_(sharers) {}

Crew::~Crew() { stop_watch(); }

void Crew::set_run(const train::CanonicalPrograms& programs, const std::string& remat,
                   const train::TrainConfig& config, int64_t vocab) {
  run_.emplace(Run{programs, remat, config, vocab});
}

Result<EpochView> Crew::wait_epoch() {
  if (formed()) return epoch_;
  return membership_.next(epoch_.number, kLook);
}

Result<std::unique_ptr<Crew::Prepared>> Crew::prepare(const EpochView& epoch) const {
  auto out = std::make_unique<Prepared>();
  out->epoch = epoch;
  ASSIGN_OR_RETURN(WorkerOptions options, worker_options(run_->config, epoch.size));
  options.hosts = epoch.hosts;
  options.slices = epoch.slices;
  options.only = epoch.rank;
  ASSIGN_OR_RETURN(out->plan, make_worker_plan(run_->programs, engine_, run_->remat, options));
  out->worker = std::make_unique<Worker>(out->plan, epoch.rank);
  RETURN_IF_ERROR(out->worker->compile());
  // Later this process has memory that the next epoch uses again. Those that begin together have none yet.
  // What the host has is checked elsewhere, and compiling takes time.
  if (now_ == nullptr && &engine_.memory() != &runtime::host_memory()) {
    ASSIGN_OR_RETURN(const int64_t need, device_need(*out->worker, out->plan.options.leaves,
                                                     train::held_out_program(run_->config, run_->vocab)));
    RETURN_IF_ERROR(check_device_room(need, *out->worker, epoch.number == 1 ? sharers_ : 1));
  }
  return out;
}

Result<std::string> Crew::wait_for(int64_t epoch, const std::string& key,
                                   const std::function<bool()>& given_up) {
  while (true) {
    auto value = membership_.store(epoch).get(key, kLook);
    if (value.ok() || value.error().code() != ErrorCode::kBusy || given_up()) return value;
  }
}

// Every worker says that it is prepared; the leader says that all are.
Status Crew::meet(const EpochView& epoch, const std::function<bool()>& given_up) {
  dist::KeyValue& store = membership_.store(epoch.number);
  if (epoch.rank >= 0) RETURN_IF_ERROR(store.set(prepared_key(epoch.rank), ""));
  if (epoch.rank != 0) {
    RETURN_IF_ERROR(wait_for(epoch.number, dist::kAllPreparedKey, given_up));
    return Status();
  }
  for (int64_t rank = 0; rank < epoch.size; ++rank)
    RETURN_IF_ERROR(wait_for(epoch.number, prepared_key(rank), given_up));
  return store.set(dist::kAllPreparedKey, "");
}

Result<Settled> Crew::form() {
  phase("form workers");
  for (int failures = 0;;) {
    stop_watch();
    const auto epoch = wait_epoch();
    if (!epoch.ok()) {
      if (epoch.error().code() != ErrorCode::kBusy || stop_()) return epoch.error();
      continue;
    }
    if (epoch->rank < 0) {
      out_ = true;
      return busy("this worker leaves, and an epoch goes on without it");
    }
    const Status formed = try_form(*epoch);
    epoch_ = *epoch;
    if (formed.ok()) {
      membership_.began(epoch_.number);
      start_watch();
      return settled_;
    }
    if (!is_loss(formed.error()) || stop_()) return formed.error();
    log_warning(fmt::format("epoch {}: {}", epoch_.number, formed.error().message()));
    leave(formed.error().message());
    // A loss is over with the next epoch. A cause that lasts (no free port) must not keep all workers busy.
    if (++failures == kMostFailures)
      return formed.error().with_context(fmt::format("{} epochs in a row could not be formed", failures));
    std::this_thread::sleep_for(std::min(kMostRest, std::chrono::milliseconds(int64_t{1} << failures)));
  }
}

Status Crew::try_form(const EpochView& epoch) {
  std::unique_ptr<Prepared> made;
  {
    const std::scoped_lock lock(mutex_);
    made = std::move(next_);
  }
  if (made == nullptr || made->epoch.number != epoch.number) {
    ASSIGN_OR_RETURN(made, prepare(epoch));
  }
  membership_.ready();
  RETURN_IF_ERROR(meet(epoch, stop_));
  ASSIGN_OR_RETURN(group_, membership_.connect(epoch, made->plan.mesh()));
  if (made->plan.options.check.on())
    group_ = dist::make_checked_group(std::move(group_),
                                      [this, number = epoch.number](const auto& why, bool sizes) {
                                        membership_.fault(number, why);
                                        return !sizes || ++sizes_differed_ < kMostSizes;
                                      });
  // old_ has the state until all workers have their cells of it. A plan that never had a state is no loss.
  if (old_ == nullptr) old_ = std::move(now_);
  now_ = std::move(made);
  ASSIGN_OR_RETURN(settled_, settle_state());
  carries_ = settled_.has_state;
  return Status();
}

Result<Settled> Crew::settle_state() {
  WorkerState carried;
  if (old_ != nullptr && settled_.has_state) carried = {old_->epoch.number, old_->worker.get()};
  const auto layout_of = [&](int64_t workers) -> Result<StateLayout> {
    ASSIGN_OR_RETURN(const WorkerOptions options, worker_options(run_->config, workers));
    return make_state_layout(now_->plan.arrays, placement_for(run_->programs, options));
  };
  if (old_ != nullptr) now_->worker->carry_times(*old_->worker);
  ASSIGN_OR_RETURN(Settled settled, settle(now_->plan, *group_, carried, layout_of, *now_->worker));
  leaf_seconds_ = settled.leaf_seconds;
  old_.reset();
  if (!settled.lost.empty()) log_warning(settled.lost);
  return settled;
}

void Crew::adopted(int64_t step) {
  settled_ = {.has_state = true, .lost = "", .step = step};
  carries_ = true;
}

bool Crew::ended(int64_t epoch) const {
  if (!formed() || epoch_.number != epoch) return true;
  const auto nothing = membership_.store(epoch).get("nothing", std::chrono::milliseconds(1));
  return !nothing.ok() && nothing.error().code() != ErrorCode::kBusy;
}

void Crew::leave(const std::string& fault) {
  stop_watch();
  group_.reset();
  if (!fault.empty()) membership_.fault(epoch_.number, fault);
}

SharedSave Crew::shared_save(io::FileSystem& fs, std::string root, int64_t step) const {
  SharedSave place{&fs,         std::move(root), &membership_.store(epoch_.number), save_key(step),
                   epoch_.rank, epoch_.size};
  place.removed = [this, number = epoch_.number](const std::string& why) { membership_.fault(number, why); };
  return place;
}

Error Crew::differs(const Disagreement& found) {
  disagreements_.push_back(found);
  named_ = found.names(epoch_.rank);
  if (named_)
    return corrupt(
        fmt::format("this worker is left out, because its memory or processor is at fault: {}", found.text));
  if (found.differ.empty() && ++undecided_ == kMostUndecided)
    return Error(ErrorCode::kInternal,
                 fmt::format("{}; this has happened {} times: find the machine that is at fault "
                             "(ostro check cluster), and start the same command without it",
                             found.text, undecided_));
  return io_error(found.text);
}

void Crew::restart() {
  forget();
  restarts_ = true;
}

void Crew::start_watch() {
  watching_ = true;
  watcher_ = std::thread([this] {
    name_thread("epochs");
    watch();
  });
}

void Crew::stop_watch() {
  watching_ = false;
  if (watcher_.joinable()) watcher_.join();
  switch_due_ = false;
}

// Prepares whatever epoch comes after the present one, beside training. Only for one that is planned does it
// tell the others so: when the present one has ended, this process may be in the middle of a leaf, and they
// must not take it for one that comes at once.
void Crew::watch() {
  int64_t after = epoch_.number;
  const auto given_up = [this] { return !watching_; };
  while (watching_) {
    const auto next = membership_.next(after, kLook);
    if (!next.ok()) {
      if (next.error().code() == ErrorCode::kBusy) continue;
      return;  // the thread that uses the group gets the error, too
    }
    after = next->number;
    if (next->rank >= 0) {
      auto made = prepare(*next);
      if (!made.ok()) {
        log_warning(fmt::format("epoch {}: {}", next->number, made.error().message()));
        continue;
      }
      const std::scoped_lock lock(mutex_);
      next_ = std::move(*made);
    }
    if (ended(epoch_.number) || !meet(*next, given_up).ok()) continue;
    without_this_ = next->rank < 0;
    switch_due_ = true;
  }
}

}  // namespace ostro::fleet
