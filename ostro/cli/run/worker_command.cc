// ostro worker
#include <fmt/format.h>

#include <cstdlib>

#include "ostro/base/net/host_port.h"
#include "ostro/base/watch/said.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cluster/wire/addresses.h"
#include "ostro/run/job/worker_loop.h"
#include "ostro/shell/shared/profile_option.h"
#include "ostro/shell/shared/train_run.h"

namespace ostro::cli {
namespace {

constexpr int64_t kMostWait = 24 * 3600;

// Checks the words that are no addresses.
Status check(const run::WorkerRequest& request, int64_t wait) {
  if (request.slice.size() > 256)
    return invalid_argument(
        fmt::format("the slice (--slice, or OSTRO_SLICE): a name of {} bytes; use one of 256 at most",
                    request.slice.size()));
  if (request.sharers < 1 || request.sharers > 1024)
    return invalid_argument(fmt::format("--sharers: {} is not a number from 1 to 1024", request.sharers));
  if (wait < 1 || wait > kMostWait)
    return invalid_argument(fmt::format("--wait: {} is not a number from 1 to {}", wait, kMostWait));
  return {};
}

Status read_addresses(const std::string& coordinator, run::WorkerRequest& request) {
  const auto place = parse_host_port(coordinator);
  if (!place.ok()) return place.error().with_context("--coordinator");
  if (place->port == 0) return invalid_argument(fmt::format("--coordinator: {} has no port", coordinator));
  request.coordinator = *place;
  if (request.bind != "auto") return {};
  auto address = cluster::address_towards(place->host, request.patience);
  if (!address.ok()) return address.error().with_context("--bind auto");
  request.bind = *address;
  return {};
}

}  // namespace

int worker_command(Args args) {
  run::WorkerRequest request;
  std::string coordinator, profile_text;
  int64_t wait = request.patience.count();
  args.summary(
      "One worker of a run on several processes. Launchers start it (ostro launch); it joins the coordinator "
      "and trains with the others until the run ends.");
  args.option("--coordinator", &coordinator, "ADDRESS:PORT",
              "where the coordinator listens; of IPv6 [ADDRESS]:PORT", Args::kRequired);
  args.option(
      "--bind", &request.bind, "ADDRESS",
      "address of this host that the other workers can reach; auto: the one from which it reaches the "
      "coordinator; any: all of them, with --advertise");
  args.option(
      "--advertise", &request.advertise, "HOST[:PORTS]",
      "the host that the other workers are told, where it leads to this one, such as the machine of a "
      "container; with PORTS (FIRST-LAST), the n-th of them leads to the n-th of trainer.worker_ports; "
      "OSTRO_ADVERTISE by default");
  args.option("--wait", &wait, "SECONDS",
              "how long it waits for the coordinator, and for its name to have an address");
  args.option("--sharers", &request.sharers, "N",
              "how many workers, this one included, share the memory of its GPU; launchers set it");
  args.option("--slice", &request.slice, "NAME",
              "the name of its slice, a group of workers with fast links; OSTRO_SLICE by default");
  args.flag("--amend", &request.amend, "as of ostro train");
  take_profile(args, &profile_text, "; of the worker of rank N, from 1 on: profile-FIRST-END.N.json");
  args.device();
  args.config();
  if (const char* slice = std::getenv("OSTRO_SLICE")) request.slice = slice;
  if (const char* advertise = std::getenv("OSTRO_ADVERTISE")) request.advertise = advertise;
  if (auto code = args.parse()) return *code;
  const auto profile = profile_range(profile_text);
  if (!profile.ok()) return report_error(profile.error());
  keep_said();
  if (const Status sane = check(request, wait); !sane.ok()) return report_error(sane.error());
  request.patience = std::chrono::seconds(wait);
  if (const Status read = read_addresses(coordinator, request); !read.ok()) return report_error(read.error());
  auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  request.config = *config;
  if (const char* secret = std::getenv("OSTRO_JOB_SECRET")) request.secret = secret;
  BuildProgressLine line;
  request.environment = [&](runtime::Engine& engine) -> Result<run::Environment> {
    ASSIGN_OR_RETURN(run::Environment environment,
                     training_environment(args.context(), engine, request.config, line));
    environment.argv = args.typed();
    environment.profile = *profile;
    return environment;
  };
  request.on_error = report_error;
  request.on_outcome = report_outcome;
  const auto code = run::work(args.context(), request);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
