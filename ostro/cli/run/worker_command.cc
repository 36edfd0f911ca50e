// ostro worker
#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <optional>

#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/run/leave_on_signal.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cluster/local_launcher.h"
#include "ostro/cluster/member.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/cluster/wire/socket.h"
#include "ostro/io/files/path.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/run/job/coordinated_membership.h"
#include "ostro/run/job/job_hello.h"
#include "ostro/run/job/worker_hang.h"
#include "ostro/run/loop/follower.h"
#include "ostro/run/report/goodput.h"

namespace ostro::cli {
namespace {

struct WorkerCall {
  std::string coordinator, bind = "127.0.0.1", secret;
  bool amend = false;
  TrainSession session;
};

Result<std::pair<std::string, int>> parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) < 1 ||
      std::stoi(port) > 65535)
    return invalid_argument(fmt::format("--coordinator: \"{}\" is not ADDRESS:PORT", text));
  return std::pair(text.substr(0, colon), std::stoi(port));
}

// Leads or follows, from one epoch to the next, until the run is over.
class WorkerLoop {
 public:
  WorkerLoop(WorkerCall& call, runtime::Engine& engine, cluster::Member& member)
      : call_(call),
        engine_(engine),
        member_(member),
        membership_(member, call.bind, call.secret),
        leave_(member),
        crew_(membership_, engine, [this] { return stopped() || (leave_.asked() && !crew_.formed()); }) {}

  int run() {
    while (true) {
      // One that comes later learns what is trained before it is taken in.
      if (!crew_.has_run() && under_way())
        if (const auto code = learn()) return *code;
      const auto epoch = crew_.wait_epoch();
      if (leave_.asked() && !crew_.formed()) return cluster::kExitLeft;
      if (!epoch.ok() && epoch.error().code() == ErrorCode::kBusy && !stopped()) continue;
      if (!epoch.ok()) return ended(epoch.error());
      epoch_ = epoch->number;
      const auto code = epoch->rank == 0 && !crew_.has_run() && !under_way() ? lead() : work();
      if (code) return *code;
    }
  }

 private:
  bool stopped() const { return member_.stop_asked() || member_.over().has_value(); }

  bool another_epoch() { return membership_.next(epoch_, std::chrono::milliseconds(1)).ok(); }

  int ended(const Error& error) {
    if (const auto over = member_.over()) return static_cast<int>(*over);
    if (crew_.out()) return cluster::kExitLeft;
    if (member_.stop_asked() && error.code() == ErrorCode::kBusy) return kExitInterrupted;
    member_.goes(error.message());
    const int code = report_error(error);
    return error.code() == ErrorCode::kIo ? cluster::kExitLostPlace : code;
  }

  // Whether somebody has said what is trained: then this process learns it, whatever its rank.
  bool under_way() { return membership_.job().get(fleet::kConfigKey, std::chrono::milliseconds(1)).ok(); }

  // The exit status, if there is an error.
  std::optional<int> learn() {
    BuildProgressLine line;
    const auto build = build_settings(line);
    if (!build.ok()) return ended(build.error());
    const run::Environment environment{.fs = io::default_file_system(),
                                       .engine = engine_,
                                       .workers = 1,
                                       // Whoever was to say what is trained may be gone.
                                       .stop = [this] { return stopped() || another_epoch(); },
                                       .build = *build,
                                       .argv = {}};
    auto made = run::Follower::create(call_.session.config, environment, crew_);
    if (!made.ok() && made.error().code() == ErrorCode::kBusy && !stopped()) return std::nullopt;
    if (!made.ok()) return ended(made.error());
    follower_ = std::move(*made);
    return std::nullopt;
  }

  // The exit status; nothing when another epoch is to be waited for.
  std::optional<int> work() {
    if (follower_ == nullptr) {
      if (const auto code = learn()) return *code;
      if (follower_ == nullptr) return std::nullopt;
    }
    if (!crew_.formed()) {
      const auto formed = crew_.form();
      if (!formed.ok()) return ended(formed.error());
    }
    if (crew_.leads()) return lead();
    const auto followed = follower_->follow();
    if (followed.ok() && *followed == run::Followed::kOver)
      fault_point("barrier", call_.session.config.trainer.num_train_steps, crew_.epoch().rank);
    if (!followed.ok()) return ended(followed.error());
    if (*followed == run::Followed::kLeads) return std::nullopt;
    if (*followed == run::Followed::kLeft) return cluster::kExitLeft;
    wait_for_end();
    return static_cast<int>(member_.over().value_or(kExitOk));
  }

  // The same; the run ends with this process, or another one leads it from here.
  std::optional<int> lead() {
    call_.session.crew = &crew_;
    call_.session.stop = [this] { return member_.stop_asked(); };
    // Its connections may have ended while nobody looked.
    if (crew_.formed() && crew_.ended(crew_.epoch().number)) {
      crew_.leave("the epoch has ended");
      return std::nullopt;
    }
    crew_.restarted();
    const auto outcome = run_session(call_.session, engine_);
    if (!outcome.ok() && crew_.restarts()) {
      log_warning(outcome.error().message());
      return std::nullopt;
    }
    if (outcome.ok() && outcome->handed_over) {
      (void)fleet::send_command(crew_.group(), {fleet::Command::Kind::kSwitch});
      crew_.leave("another epoch goes on");
      return cluster::kExitLeft;
    }
    if (!outcome.ok() && (crew_.out() || (leave_.asked() && !crew_.formed()))) return cluster::kExitLeft;
    if (outcome.ok()) fault_point("barrier", outcome->steps, 0);
    if (outcome.ok() && crew_.formed()) (void)fleet::send_command(crew_.group(), {});
    if (!outcome.ok()) member_.goes(outcome.error().message());
    const int code = report_outcome(outcome);
    if (outcome.ok()) {
      member_.done(code);
      wait_for_end();
    }
    return code;
  }

  // Until the coordinator knows that the run is over, or is gone.
  void wait_for_end() {
    while (!member_.over()) {
      const auto next = member_.wait_epoch(std::numeric_limits<int64_t>::max(), std::chrono::seconds(1));
      if (!next.ok() && next.error().code() != ErrorCode::kBusy) return;
    }
  }

  WorkerCall& call_;
  runtime::Engine& engine_;
  cluster::Member& member_;
  run::CoordinatedMembership membership_;
  LeaveOnSignal leave_;
  fleet::Crew crew_;
  int64_t epoch_ = 0;  // the last that was seen
  std::unique_ptr<run::Follower> follower_;
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

Result<int> work(WorkerCall& call) {
  ASSIGN_OR_RETURN(const auto address, parse_address(call.coordinator));
  // An address that is not this host's is told here, not by peers that wait for connections in vain.
  if (const auto listens = cluster::listen_at(call.bind, 0, false); !listens.ok())
    return listens.error().with_context("--bind");
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  const std::string directory = train::run_directory(call.session.config);
  const cluster::Hello hello =
      run::job_hello(call.session.config, run::find_place_of_run(directory, std::chrono::seconds(5)));
  ASSIGN_OR_RETURN(const auto member, cluster::Member::join(address.first, address.second, call.secret, hello,
                                                            std::chrono::seconds(30)));
  member->report(progress_now);
  // For its goodput: what was before this job is not its time.
  const std::string state_file = io::join_path(directory, cluster::kClusterFile);
  if (const auto state = cluster::read_cluster_file(io::default_file_system(), state_file); state.ok())
    run::set_job_begin(state->started);
  const auto hangs = run::watch_for_hangs(call.session.config);
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
