// ostro launch ssh
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/net/listen.h"
#include "ostro/cli/launch/bring_to_hosts.h"
#include "ostro/cli/launch/brought_run.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/ssh_machines.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/ssh/remote_command.h"
#include "ostro/cluster/wire/worker_variables.h"
#include "ostro/run/job/coordinator_options.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {
namespace {

struct SshCall : SshMachines {
  std::string bind = kAnyAddress;
  int64_t min_workers = 1, port = 0;
  int64_t failures = 3, left_out = 600;
  BringOptions bring;
  bool amend = false;
};

// The device of the command line is in the kept configuration.
const std::set<std::string> kOwn = {"--hosts",       "--ssh",      "--bind",     "--program",
                                    "--folder",      "--port",     "--device",   "--failures",
                                    "--min_workers", "--left_out", "--bring_to", "--bring_mib"};

constexpr int64_t kMostSeconds = 30 * 24 * 3600;

// How long after a worker has left, because its machine was to be taken away, another is tried there.
constexpr std::chrono::seconds kBack{60};

// How often a copy in which a worker runs is touched there.
constexpr std::chrono::hours kCopyTold{24};

// Which workers were silent, from the coordinator's thread to the launcher's.
class SilentPlaces {
 public:
  void silent(const cluster::Hello& hello) {
    const std::lock_guard lock(mutex_);
    silent_.emplace_back(hello.host, hello.pid);
  }
  void said(size_t place, std::string_view bytes) { processes_.said(place, bytes); }
  std::vector<size_t> take() {
    std::vector<std::pair<std::string, int64_t>> silent;
    {
      const std::lock_guard lock(mutex_);
      silent.swap(silent_);
    }
    std::vector<size_t> out;
    for (const auto& [host, pid] : silent)
      if (const auto place = processes_.place_of(host, pid)) out.push_back(*place);
    return out;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, int64_t>> silent_;
  cluster::RemoteProcesses processes_;  // of the launcher's thread
};

int64_t worker_count(const std::vector<cluster::SshHost>& hosts) {
  int64_t count = 0;
  for (const cluster::SshHost& host : hosts) count += static_cast<int64_t>(host.devices.size());
  return count;
}

Status check(const SshCall& call, const std::vector<cluster::SshHost>& hosts,
             const train::TrainConfig& config) {
  const int64_t workers = worker_count(hosts);
  if (call.min_workers < 1 || call.min_workers > workers)
    return invalid_argument(fmt::format("--min_workers: {} is not a number from 1 to the {} workers of {}",
                                        call.min_workers, workers, call.hosts));
  RETURN_IF_ERROR(check_worker_count(workers, call.hosts, config));
  if (call.port < 0 || call.port > 65535)
    return invalid_argument(fmt::format("--port: {} is not a number from 0 to 65535", call.port));
  if (call.failures < 0)
    return invalid_argument(
        fmt::format("--failures: {} is negative; 0 leaves no machine out", call.failures));
  if (call.left_out < 1 || call.left_out > kMostSeconds)
    return invalid_argument(
        fmt::format("--left_out: {} is not a number from 1 to {} seconds", call.left_out, kMostSeconds));
  if (call.bring.on && (!call.program.empty() || !call.folder.empty()))
    return invalid_argument(
        "--bring: the copies have a program and a folder of their own; leave out --program and --folder");
  return check_bring(call.bring);
}

// Brings the copy to all machines. Error: fewer than min_workers workers are on machines that have it.
Result<std::unique_ptr<BringToHosts>> bring_to(const SshCall& call, const BroughtRun& brought,
                                               const std::vector<cluster::SshHost>& hosts,
                                               const Context& context) {
  std::vector<std::string> names;
  for (const cluster::SshHost& host : hosts) names.push_back(host.name);
  auto bringer = std::make_unique<BringToHosts>(context.fs, brought.copy, names,
                                                [&call, names](size_t host, const std::string& script) {
                                                  std::vector<std::string> words = ssh_words(call.ssh);
                                                  words.insert(words.end(), {"--", names[host], script});
                                                  return cluster::LineProcess::start(words);
                                                });
  const auto workers_on = [&](const std::vector<bool>& has) {
    int64_t workers = 0;
    for (size_t i = 0; i < hosts.size(); ++i)
      if (has[i]) workers += static_cast<int64_t>(hosts[i].devices.size());
    return workers;
  };
  const int64_t workers = workers_on(bringer->all(
      context.progress, [&](const std::vector<bool>& has) { return workers_on(has) >= call.min_workers; }));
  if (workers < call.min_workers)
    return io_error(fmt::format(
        "--bring: machines for {} workers have the copy, and {} workers are needed (--min_workers); what "
        "was said before names what is wrong on the others",
        workers, call.min_workers));
  return bringer;
}

// Says where each worker runs, and with which words.
Status place_workers(const SshCall& call, const std::vector<cluster::SshHost>& hosts,
                     const std::vector<std::string>& words, const WorkerPlace& place, int port,
                     cluster::LocalWorkers& job) {
  cluster::RemoteWorker remote;
  remote.folder = place.folder, remote.program = place.program;
  if (call.bring.on) remote.touched = cluster::kListOfCopy;
  remote.port = port;
  remote.if_killed = cluster::kExitLostPlace;  // another takes its place at once
  remote.address = is_any_address(call.bind) ? "" : call.bind;
  job.command = ssh_words(call.ssh);
  for (const cluster::SshHost& host : hosts) {
    remote.workers = static_cast<int64_t>(host.devices.size());
    for (const std::string& device : host.devices) {
      remote.words = words;
      if (!host.slice.empty()) remote.words.insert(remote.words.end(), {"--slice", host.slice});
      if (!host.advertise.empty()) remote.words.insert(remote.words.end(), {"--advertise", host.advertise});
      if (!device.empty()) {
        const auto sharers = std::count(host.devices.begin(), host.devices.end(), device);
        remote.words.insert(remote.words.end(), {"--device", device, "--sharers", std::to_string(sharers)});
      }
      job.more.push_back({"--", host.name, cluster::remote_script(remote)});
      job.names.push_back(" on " + host.name);
      job.machines.push_back(static_cast<size_t>(&host - hosts.data()));
    }
  }
  return {};
}

Result<int> launch(const SshCall& call, const train::TrainConfig& config, const Context& context,
                   const std::vector<std::string>& typed) {
  ASSIGN_OR_RETURN(const auto hosts, read_hosts(context.fs, call.hosts));
  RETURN_IF_ERROR(check(call, hosts, config));
  cluster::LocalWorkers local;
  local.count = worker_count(hosts);
  local.least = call.min_workers;
  ASSIGN_OR_RETURN(cluster::CoordinatorOptions options,
                   run::coordinator_options(config, call.min_workers, local.count));
  options.bind = call.bind;
  options.port = static_cast<int>(call.port);
  options.secret = job_secret();
  SilentPlaces silent;
  options.on_silence = [&](const cluster::Hello& hello) { silent.silent(hello); };
  local.said = [&](size_t place, std::string_view bytes) { silent.said(place, bytes); };
  local.hopeless_places = [&] { return silent.take(); };
  local.left_out_after = call.failures;
  local.left_out_for = std::chrono::seconds(call.left_out);
  local.back_after = kBack;
  local.input = cluster::worker_variables(environ, options.secret);
  std::vector<std::string> words;
  WorkerPlace place;
  std::unique_ptr<BringToHosts> bringer;
  if (call.bring.on) {
    ASSIGN_OR_RETURN(const BroughtRun brought, brought_run(context, config, call.bring));
    words = brought_words(call.amend);
    place = {brought.folder, brought.program};
    ASSIGN_OR_RETURN(bringer, bring_to(call, brought, hosts, context));
    local.ready = [&](size_t host) { return bringer->ready(host); };
    local.failed = [&](size_t host) { bringer->look_again(host); };
    local.mended = [&] { return bringer->take_brought(); };
    local.line_feed_every = kCopyTold;
  } else {
    ASSIGN_OR_RETURN(words, with_kept_config(config, worker_words(typed, kOwn, {"--bring"})));
    ASSIGN_OR_RETURN(place, worker_place(call.folder, call.program));
  }
  log_info(fmt::format("starting {} worker{} on {} machine{}", local.count, local.count == 1 ? "" : "s",
                       hosts.size(), hosts.size() == 1 ? "" : "s"));
  return run_job(config, "ostro launch ssh", options, std::move(local),
                 [&](int port, cluster::LocalWorkers& job) {
                   return place_workers(call, hosts, words, place, port, job);
                 });
}

}  // namespace

int launch_ssh_command(Args args) {
  SshCall call;
  args.summary(
      "Trains on machines that ssh reaches without a question: starts a worker on each, and another in the "
      "place of one that is lost. The run's hash is the one of ostro train. All machines see the run's "
      "folder, the data and the program under the same paths; with --bring they share the run's folder "
      "only.");
  args.option(
      "--hosts", &call.hosts, "FILE",
      "a machine in each line: HOST [slots=N] [devices=LIST] [slice=NAME] [advertise=HOST[:PORTS]]; N "
      "workers, or one for each device",
      Args::kRequired);
  args.option("--min_workers", &call.min_workers, "N",
              "go on with as few when others are lost; 1 by default, or the smallest that the mesh allows");
  args.option("--failures", &call.failures, "N",
              "a machine on which N workers in a row failed is left out; 0: none is");
  args.option("--left_out", &call.left_out, "SECONDS", "so long; then it is tried again");
  take_ssh_options(args, call);
  args.flag(
      "--bring", &call.bring.on,
      "copies this program, the configuration, the tokenizer and token stores to machines that do not have "
      "them yet, through ssh");
  args.option("--bring_to", &call.bring.to, "DIR",
              fmt::format("the folder of copies there; {} by default", kCopies));
  take_bring_mib(args, call.bring);
  args.option("--bind", &call.bind, "ADDRESS",
              "where the coordinator listens on this machine; any: at all its addresses, and each worker "
              "takes the one from which ssh came");
  args.option("--port", &call.port, "N", "where the coordinator listens; 0: any free one");
  args.flag("--amend", &call.amend, "as of ostro train");
  args.device();
  args.config();
  if (auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto code = launch(call, *config, args.context(), args.typed());
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
