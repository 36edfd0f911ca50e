// ostro check cluster
#include <fmt/format.h>

#include "ostro/base/text_parts.h"
#include "ostro/cli/launch/launch_job.h"
#include "ostro/cli/launch/ssh_machines.h"
#include "ostro/cli/launch/worker_words.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster_check/agent.h"
#include "ostro/cluster_check/check_cluster.h"
#include "ostro/io/files/path.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/shell/words/version.h"

namespace ostro::cli {
namespace {

struct ClusterCall : SshMachines {
  bool agent = false, no_selftest = false, json = false;
  int64_t link_mebibytes = 32;
};

constexpr int64_t kMostLinkMebibytes = 4096;

// What the machines need of the places of a configuration, but for the folders that they share. Without one,
// each needs room where its programs run.
void add_places(const train::TrainConfig* config, cluster_check::CheckRequest& request) {
  if (config == nullptr) {
    request.disks.push_back({"--folder", "."});
    return;
  }
  const train::TrainerOptions& trainer = config->trainer;
  if (!io::path_scheme(trainer.log_dir).empty()) {
    request.stores.push_back({"trainer.log_dir", trainer.log_dir});
    if (trainer.scratch_dir) request.disks.push_back({"trainer.scratch_dir", *trainer.scratch_dir});
  }
  for (const data::Component& component : data::components_of(config->data))
    if (!io::path_scheme(component.cache_dir).empty())
      request.readable.push_back({component.key + ".cache_dir", component.cache_dir});
  if (config->data.tokenizer) request.readable.push_back({"data.tokenizer", *config->data.tokenizer});
  if (trainer.initialize_from)
    request.readable.push_back({"trainer.initialize_from", *trainer.initialize_from});
}

Result<cluster_check::ClusterReport> check_machines(const ClusterCall& call, const Context& context,
                                                    const train::TrainConfig* config) {
  cluster_check::CheckRequest request;
  ASSIGN_OR_RETURN(request.hosts, read_hosts(context.fs, call.hosts));
  if (config != nullptr) {
    request.folders = shared_folders(*config);
    request.ports = config->trainer.worker_ports.value_or("");
    request.relay = config->trainer.relay.value_or("");
  }
  add_places(config, request);
  request.selftest = !call.no_selftest;
  request.link_bytes = call.link_mebibytes << 20;
  request.on_progress = [&](const std::string& what, double part) { context.progress.show(what, part); };
  ASSIGN_OR_RETURN(const WorkerPlace place, worker_place(call.folder, call.program));
  const std::string script = fmt::format("cd {} && exec {} check cluster --agent", shell_word(place.folder),
                                         shell_word(place.program));
  request.start = [&](const cluster::SshHost& host) {
    std::vector<std::string> words = ssh_words(call.ssh);
    words.insert(words.end(), {"--", host.name, "exec sh -c " + shell_word(script)});
    return cluster::LineProcess::start(words);
  };
  auto report = cluster_check::check_cluster(context, request);
  context.progress.end();
  return report;
}

}  // namespace

int check_cluster_command(Args args) {
  ClusterCall call;
  args.summary(
      "Says whether a run can be started on the machines of a list, before anything is started: builds, "
      "clocks,\n"
      "self-test and devices of each, the folders that they must share, the object store of the run, what "
      "each\n"
      "reads and writes on its disks, and whether each can connect to each, and how fast. Exit code 0: no\n"
      "problem was found; 1: some were.");
  args.option("--hosts", &call.hosts, "FILE",
              "a machine in each line, as for ostro launch ssh: HOST [slots=N] [devices=LIST]");
  take_ssh_options(args, call);
  args.option("--link_mib", &call.link_mebibytes, "N",
              "MiB sent over each link that is measured (default 32); 0: only connect");
  args.flag("--no_selftest", &call.no_selftest, "leaves out the self-test, which takes some seconds");
  args.flag("--json", &call.json, "print JSON");
  args.flag("--agent", &call.agent,
            "answer the questions of such a check on this machine: what ssh starts there");
  args.config(/*required=*/false);
  if (const auto code = args.parse()) return *code;
  // Signals end neither the check nor an agent in the middle of a file.
  const run::StopSignals signals;
  if (call.agent) {
    cluster_check::run_agent(args.context(), program_version(), stdin, stdout);
    return kExitOk;
  }
  if (call.hosts.empty()) return report_error(invalid_argument("--hosts: name the file with the machines"));
  if (call.link_mebibytes < 0 || call.link_mebibytes > kMostLinkMebibytes)
    return report_error(
        invalid_argument(fmt::format("--link_mib {}: use 0 to {}", call.link_mebibytes, kMostLinkMebibytes)));
  Result<train::TrainConfig> config = train::TrainConfig();
  if (args.has_config()) config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  Context context = args.context();
  context.stop = [&] { return signals.stop_requested(); };
  const auto report = check_machines(call, context, args.has_config() ? &*config : nullptr);
  if (!report.ok() && signals.stop_requested()) {
    fmt::print(stderr, "stopped; nothing of the check stays behind\n");
    return kExitInterrupted;
  }
  if (!report.ok()) return report_error(report.error());
  if (const Status written = write_stdout(call.json ? report_json(*report) : report_text(*report));
      !written.ok())
    return report_error(written.error());
  return report->problems.empty() ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
