// ostro worker
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cli/shared/build_progress.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cluster/local_launcher.h"
#include "ostro/cluster/member.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/dist/gloo_group.h"
#include "ostro/io/files/path.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/train/record/version.h"
#include "ostro/train/report/goodput.h"
#include "ostro/train/run/follower.h"
#include "ostro/train/run/signals.h"

namespace ostro::cli {
namespace {

// Connections that end when their epoch does, and say when they failed.
class EpochGroup final : public dist::Group {
 public:
  EpochGroup(std::unique_ptr<dist::Group> group, cluster::Member& member, int64_t epoch,
             train::ProcessGroup& processes)
      : group_(std::move(group)), member_(member), epoch_(epoch), processes_(processes) {
    member_.on_end(epoch_, [this](const std::string& reason) { group_->abort(reason); });
  }
  ~EpochGroup() override { member_.on_end(epoch_, nullptr); }

  int64_t rank() const override { return group_->rank(); }
  int64_t size() const override { return group_->size(); }
  int64_t bytes_sent() const override { return group_->bytes_sent(); }
  std::vector<int64_t> peers(std::string_view axes) const override { return group_->peers(axes); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    const int64_t before = group_->bytes_sent();
    Status status;
    {
      const PulseWait wait;
      status = group_->exchange(peers, send, receive);
    }
    pulse_sent(group_->bytes_sent() - before);
    // Anything else is a defect, which another epoch would have again.
    if (!status.ok() && status.error().code() == ErrorCode::kIo) processes_.lost = status.error().message();
    return status;
  }
  void abort(const std::string& reason) override { group_->abort(reason); }

 private:
  std::unique_ptr<dist::Group> group_;
  cluster::Member& member_;
  int64_t epoch_;
  train::ProcessGroup& processes_;
};

struct WorkerCall {
  std::string coordinator, bind = "127.0.0.1", secret;
  bool amend = false;
  TrainSession session;
};

Result<std::pair<std::string, int>> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(port) < 1 || std::stoi(port) > 65535)
    return invalid_argument(fmt::format("--coordinator: \"{}\" is not ADDRESS:PORT", text));
  return std::pair(text.substr(0, colon), std::stoi(port));
}

// Waits until the leader has left: then the job is over for everyone.
void wait_for_end(cluster::Member& member, int64_t epoch) {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  member.on_end(epoch, [&](const std::string&) {
    const std::scoped_lock lock(mutex);
    ended = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ended; });
  lock.unlock();
  member.on_end(epoch, nullptr);
}

// One epoch after another, until the run is over.
class WorkerLoop {
 public:
  WorkerLoop(WorkerCall& call, runtime::Engine& engine, cluster::Member& member)
      : call_(call), engine_(engine), member_(member) {}

  int run() {
    for (int64_t number = 0;;) {
      const auto epoch = member_.wait_epoch(number, std::chrono::seconds(1));
      if (!epoch.ok() && epoch.error().code() == ErrorCode::kBusy) {
        if (stopped()) return kExitInterrupted;
        continue;
      }
      if (!epoch.ok()) {
        const int code = report_error(epoch.error());
        return epoch.error().code() == ErrorCode::kIo ? cluster::kExitLostPlace : code;
      }
      number = epoch->number;
      pulse_epoch(number);
      if (const auto code = run_epoch(*epoch)) return *code;
    }
  }

 private:
  bool stopped() const { return signals_.stop_requested(); }

  // The exit status; nothing when the epoch ended before the run did.
  std::optional<int> run_epoch(const cluster::Epoch& epoch) {
    train::ProcessGroup group;
    group.rank = epoch.rank;
    group.size = epoch.size;
    group.store = &member_.store(epoch.number);
    group.connect = [&](const ir::Mesh& mesh) { return connect(epoch, mesh, group); };
    const auto again = [&](const Error& error) {
      log_warning(fmt::format("epoch {} ended: {}", epoch.number, error.message()));
      member_.fault(epoch.number, *group.lost);
    };
    if (epoch.rank > 0) {
      BuildProgressLine line;
      const auto build = build_settings(line);
      if (!build.ok()) return report_error(build.error());
      const train::Environment environment{.fs = io::default_file_system(),
                                           .engine = engine_,
                                           .workers = 1,
                                           .stop = {},
                                           .build = *build,
                                           .argv = {}};
      const Status followed = train::follow(call_.session.config, environment, group);
      if (followed.ok()) {
        fault_point("barrier", call_.session.config.trainer.num_train_steps, epoch.rank);
        wait_for_end(member_, epoch.number);
        return kExitOk;
      }
      if (!group.lost) return report_error(followed.error());
      again(followed.error());
      return std::nullopt;
    }
    call_.session.processes = &group;
    call_.session.stop = [this] { return stopped(); };
    const auto outcome = run_session(call_.session, engine_);
    if (outcome.ok() || !group.lost) return report_outcome(outcome);
    again(outcome.error());
    return std::nullopt;
  }

  Result<std::unique_ptr<dist::Group>> connect(const cluster::Epoch& epoch, const ir::Mesh& mesh,
                                               train::ProcessGroup& processes) {
    dist::GlooOptions options;
    options.bind = call_.bind;
    options.secret = call_.secret;
    options.epoch = epoch.number;
    auto group = dist::connect_gloo(mesh, epoch.rank, member_.store(epoch.number),
                                    fmt::format("gloo/{}", epoch.number), options);
    if (!group.ok()) {
      if (group.error().code() == ErrorCode::kIo) processes.lost = group.error().message();
      return group.error();
    }
    return std::unique_ptr<dist::Group>(
        std::make_unique<EpochGroup>(std::move(*group), member_, epoch.number, processes));
  }

  WorkerCall& call_;
  runtime::Engine& engine_;
  cluster::Member& member_;
  const train::StopSignals signals_;
};

cluster::Progress progress_now() {
  const Pulse pulse = read_pulse();
  return {.epoch = pulse.epoch,
          .step = pulse.step,
          .phase = pulse.phase,
          .compute_microseconds = static_cast<int64_t>(pulse.compute_seconds * 1e6),
          .wait_microseconds = static_cast<int64_t>(pulse.wait_seconds * 1e6),
          .work = pulse.work,
          .bytes_sent = pulse.bytes_sent};
}

std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

Result<int> work(WorkerCall& call) {
  ASSIGN_OR_RETURN(const auto address, parse_address(call.coordinator));
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  cluster::Hello hello;
  hello.job = call.session.config.trainer.log_dir + "/" + call.session.config.trainer.id;
  hello.equal = {{"numerics version", train::kNumericsVersion},
                 {"configuration", train::canonical_text(call.session.config)}};
  hello.host = host_name();
  hello.pid = ::getpid();
  ASSIGN_OR_RETURN(const auto member, cluster::Member::join(address.first, address.second, call.secret, hello,
                                                            std::chrono::seconds(30)));
  member->report(progress_now);
  // For its goodput: what was before this job is not its time.
  const std::string state_file =
      io::join_path(train::run_directory(call.session.config), cluster::kClusterFile);
  if (const auto state = cluster::read_cluster_file(io::default_file_system(), state_file); state.ok())
    train::set_job_begin(state->started);
  return WorkerLoop(call, *engine, *member).run();
}

}  // namespace

int worker_command(Args args) {
  WorkerCall call;
  args.summary(
      "One worker of a run on several processes. Launchers start it (ostro launch); it joins the coordinator "
      "and trains with the others until the run ends.");
  args.option("--coordinator", &call.coordinator, "ADDRESS:PORT", "where the coordinator listens",
              Args::kRequired);
  args.option("--bind", &call.bind, "ADDRESS", "address of this host that the other workers can reach");
  args.flag("--amend", &call.session.amend, "as of ostro train");
  args.config();
  if (auto code = args.parse()) return *code;
  auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  call.session.config = *config;
  call.session.argv = args.typed();
  if (const char* secret = std::getenv("OSTRO_JOB_SECRET")) call.secret = secret;
  const auto code = work(call);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
