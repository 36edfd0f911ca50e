// ostro worker
#include <fmt/format.h>

#include <cstdlib>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/run/train_run.h"
#include "ostro/cluster/wire/addresses.h"
#include "ostro/run/job/worker_loop.h"

namespace ostro::cli {

int worker_command(Args args) {
  run::WorkerRequest request;
  args.summary(
      "One worker of a run on several processes. Launchers start it (ostro launch); it joins the coordinator "
      "and trains with the others until the run ends.");
  args.option("--coordinator", &request.coordinator, "ADDRESS:PORT", "where the coordinator listens",
              Args::kRequired);
  args.option(
      "--bind", &request.bind, "ADDRESS",
      "address of this host that the other workers can reach; auto: the one from which it reaches the "
      "coordinator");
  args.option("--sharers", &request.sharers, "N",
              "how many workers, this one included, share the memory of its GPU; launchers set it");
  args.option("--slice", &request.slice, "NAME",
              "the name of its slice, a group of workers with fast links; OSTRO_SLICE by default");
  args.flag("--amend", &request.amend, "as of ostro train");
  args.device();
  args.config();
  if (const char* slice = std::getenv("OSTRO_SLICE")) request.slice = slice;
  if (auto code = args.parse()) return *code;
  if (request.slice.size() > 256)
    return report_error(invalid_argument(
        fmt::format("the slice (--slice, or OSTRO_SLICE): a name of {} bytes; use one of 256 at most",
                    request.slice.size())));
  if (request.sharers < 1 || request.sharers > 1024)
    return report_error(
        invalid_argument(fmt::format("--sharers: {} is not a number from 1 to 1024", request.sharers)));
  if (request.bind == "auto") {
    auto address = cluster::address_towards(request.coordinator.substr(0, request.coordinator.rfind(':')));
    if (!address.ok()) return report_error(address.error().with_context("--bind auto"));
    request.bind = *address;
  }
  auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  request.config = *config;
  if (const char* secret = std::getenv("OSTRO_JOB_SECRET")) request.secret = secret;
  BuildProgressLine line;
  request.environment = [&](runtime::Engine& engine) -> Result<run::Environment> {
    ASSIGN_OR_RETURN(run::Environment environment,
                     training_environment(args.context(), engine, request.config, line));
    environment.argv = args.typed();
    return environment;
  };
  request.on_error = report_error;
  request.on_outcome = report_outcome;
  const auto code = run::work(args.context(), request);
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
