#include "ostro/run/job/worker_loop.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "ostro/base/log.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/said.h"
#include "ostro/cluster/local/local_launcher.h"
#include "ostro/cluster/member.h"
#include "ostro/cluster/relay_caller.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/cluster/wire/secret.h"
#include "ostro/dist/reach.h"
#include "ostro/io/files/path.h"
#include "ostro/run/job/coordinated_membership.h"
#include "ostro/run/job/follower.h"
#include "ostro/run/job/job_hello.h"
#include "ostro/run/job/leave_when_asked.h"
#include "ostro/run/job/machine_text.h"
#include "ostro/run/job/worker_hang.h"
#include "ostro/run/report/goodput.h"

namespace ostro::run {
namespace {

// How the other workers reach this one.
Result<dist::Reach> reach_of(const WorkerRequest& request, dist::Relay& relay) {
  const train::TrainerOptions& options = request.config.trainer;
  dist::Reach reach;
  reach.bind = request.bind;
  reach.relay = &relay;
  if (options.relay) reach.use = *options.relay == "auto" ? dist::RelayUse::kAuto : dist::RelayUse::kAlways;
  if (options.worker_ports) {
    ASSIGN_OR_RETURN(reach.ports, parse_ports(*options.worker_ports));
  }
  if (!request.advertise.empty()) {
    auto advertised = dist::parse_advertised(request.advertise);
    if (!advertised.ok()) return advertised.error().with_context("--advertise");
    reach.advertised = *advertised;
  }
  // What is wrong is told here, not by peers that wait for connections that never come.
  const bool listens = reach.use != dist::RelayUse::kAlways;
  if (const Status usable = dist::check_reach(reach); !usable.ok())
    return usable.error().with_context(!listens               ? "--advertise (OSTRO_ADVERTISE)"
                                       : options.worker_ports ? "--bind and trainer.worker_ports"
                                                              : "--bind");
  if (!listens && options.worker_ports)
    log_info(fmt::format(
        "trainer.worker_ports: {} is not used: with trainer.relay: always this worker does not listen",
        *options.worker_ports));
  return reach;
}

// Leads or follows, from one epoch to the next, until the run is over.
class WorkerLoop {
 public:
  WorkerLoop(const WorkerRequest& request, Environment environment, cluster::Member& member,
             const dist::Reach& reach)
      : request_(request),
        environment_(std::move(environment)),
        member_(member),
        membership_(member, reach, request.secret, request.config.trainer, [this] { return gives_up(); }),
        leave_(member, request.config.trainer),
        crew_(
            membership_, environment_.engine, [this] { return gives_up(); },
            [this] { return member_.stop_asked(); }, request.sharers) {}

  int run() {
    while (true) {
      // One that comes later learns what is trained before it is taken in.
      if (!crew_.has_run() && under_way())
        if (const auto code = learn()) return *code;
      const auto epoch = crew_.wait_epoch();
      if (leave_.asked() && !crew_.formed()) return cluster::kExitLeft;
      if (!epoch.ok() && epoch.error().code() == ErrorCode::kBusy && !gives_up()) continue;
      if (!epoch.ok()) return ended(epoch.error());
      epoch_ = epoch->number;
      const auto code = epoch->rank == 0 && !crew_.has_run() && !under_way() ? lead() : work();
      if (code) return *code;
    }
  }

 private:
  // Whether to wait no more for an epoch, and for those in it. A worker that is to stop, and that carries a
  // part of the state, waits for an epoch in which it is saved.
  bool gives_up() const {
    if (member_.over() || (leave_.asked() && !crew_.formed())) return true;
    return member_.stop_asked() && !crew_.carries();
  }
  bool stopped() const { return member_.stop_asked() || member_.over().has_value(); }

  bool another_epoch() { return membership_.next(epoch_, std::chrono::milliseconds(1)).ok(); }

  int ended(const Error& error) {
    if (const auto over = member_.over()) return static_cast<int>(*over);
    if (crew_.out()) return cluster::kExitLeft;
    if (leave_.asked() && !crew_.formed() && error.code() == ErrorCode::kBusy) return cluster::kExitLeft;
    if (member_.stop_asked() && error.code() == ErrorCode::kBusy) return cluster::kExitInterrupted;
    member_.goes(last_word(error));
    const int code = request_.on_error(error);
    if (crew_.named()) return cluster::kExitCorrupt;
    return error.code() == ErrorCode::kIo ? cluster::kExitLostPlace : code;
  }

  // Whether a leader has said what is trained: then this process learns it, whatever its rank.
  bool under_way() { return membership_.job().get(fleet::kConfigKey, std::chrono::milliseconds(1)).ok(); }

  // The exit status, if there is an error.
  std::optional<int> learn() {
    Environment environment = environment_;
    // The leader that was to say what is trained may be gone.
    environment.stop = [this] { return stopped() || another_epoch(); };
    auto made = Follower::create(request_.config, environment, crew_);
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
    if (followed.ok() && *followed == Followed::kOver)
      fault_point("barrier", request_.config.trainer.num_train_steps, crew_.epoch().rank);
    if (!followed.ok()) return ended(followed.error());
    if (*followed == Followed::kLeads) return std::nullopt;
    if (*followed == Followed::kLeft) return cluster::kExitLeft;
    wait_for_end();
    return static_cast<int>(member_.over().value_or(0));
  }

  // The same; the run ends with this process, or another one leads it from here.
  std::optional<int> lead() {
    // Its connections may have ended while this process did something else.
    if (crew_.formed() && crew_.ended(crew_.epoch().number)) {
      crew_.leave("the epoch has ended");
      return std::nullopt;
    }
    crew_.restarted();
    Environment environment = environment_;
    environment.crew = &crew_;
    environment.stop = [this] { return member_.stop_asked(); };
    const auto outcome = run_session(request_.config, environment, request_.amend);
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
    if (!outcome.ok())
      if (const auto over = member_.over()) return static_cast<int>(*over);
    if (!outcome.ok()) member_.goes(last_word(outcome.error()));
    const int code = request_.on_outcome(outcome);
    if (!outcome.ok() && crew_.named()) return cluster::kExitCorrupt;
    if (outcome.ok() || is_of_the_run(outcome.error())) {
      member_.done(code);
      wait_for_end();
    }
    return code;
  }

  std::string last_word(const Error& error) const {
    return (crew_.named() ? std::string(cluster::kCorruptWord) : "") + error.message();
  }

  // Until the coordinator knows that the run is over, or is gone.
  void wait_for_end() {
    while (!member_.over()) {
      const auto next = member_.wait_epoch(std::numeric_limits<int64_t>::max(), std::chrono::seconds(1));
      if (!next.ok() && next.error().code() != ErrorCode::kBusy) return;
    }
  }

  const WorkerRequest& request_;
  const Environment environment_;
  cluster::Member& member_;
  CoordinatedMembership membership_;
  LeaveWhenAsked leave_;
  fleet::Crew crew_;
  int64_t epoch_ = 0;  // the last that was seen
  std::unique_ptr<Follower> follower_;
};

cluster::Progress progress_now() {
  const Pulse pulse = read_pulse();
  return {.epoch = pulse.epoch,
          .step = pulse.step,
          .phase = pulse.phase,
          .compute_microseconds = static_cast<int64_t>(pulse.compute_seconds * 1e6),
          .wait_microseconds = static_cast<int64_t>(pulse.wait_seconds * 1e6),
          .work = pulse.work,
          .bytes_sent = pulse.bytes_sent,
          .bytes_between_slices = pulse.bytes_between_slices};
}

}  // namespace

Result<int> work(const Context& context, const WorkerRequest& request) {
  cluster::RelayCaller relay(request.coordinator.host, request.coordinator.port, request.secret);
  ASSIGN_OR_RETURN(const dist::Reach reach, reach_of(request, relay));
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(Environment environment, request.environment(*engine));
  if (const auto notice = notice_now(request.config.trainer)) {
    log_info(fmt::format("no worker joins from this machine: {}", *notice));
    return cluster::kExitLeft;
  }
  RETURN_IF_ERROR(cluster::check_secret(request.secret, request.config.trainer.tls.has_value()));
  const std::string directory = train::run_directory(request.config);
  cluster::Hello hello =
      job_hello(request.config, find_place_of_run(context.fs, directory, std::chrono::seconds(5)));
  hello.slice = request.slice;
  if (request.config.trainer.sharding.mesh.slices == train::SliceNames::kAuto) hello.machine = machine_text();
  ASSIGN_OR_RETURN(const auto member,
                   cluster::Member::join(request.coordinator.host, request.coordinator.port, request.secret,
                                         hello, request.patience, request.config.trainer.tls.has_value()));
  member->report(progress_now);
  member->pass_on(take_said);
  relay.follow([&member = *member] { return member.coordinator_address(); });
  // For its goodput: what was before this job is not its time.
  const std::string state_file = io::join_path(directory, cluster::kClusterFile);
  if (const auto state = cluster::read_cluster_file(context.fs, state_file); state.ok())
    set_job_begin(state->started);
  const auto hangs = watch_for_hangs(request.config);
  return WorkerLoop(request, std::move(environment), *member, reach).run();
}

}  // namespace ostro::run
