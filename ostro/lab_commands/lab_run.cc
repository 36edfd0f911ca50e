#include "ostro/lab_commands/lab_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "ostro/lab/drive/driver.h"
#include "ostro/lab/places/ray_tasks.h"
#include "ostro/lab/places/slurm_jobs.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/record/scaling_record.h"
#include "ostro/lab_commands/lab_dry_run.h"
#include "ostro/lab_commands/lab_products.h"
#include "ostro/lab_commands/lab_services.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// Says of each forecast whether the runs that check it lie inside.
Status tell_forecasts(const Context& context, const lab::Plan& plan, const lab::LabState& state) {
  if (std::none_of(plan.steps.begin(), plan.steps.end(),
                   [](const lab::Step& step) { return step.kind->name == "forecast"; }))
    return {};
  ASSIGN_OR_RETURN(const lab::Database record, lab::make_forecasts(context.fs, plan, state));
  ASSIGN_OR_RETURN(const std::vector<std::string> lines, lab::forecast_lines(record));
  for (const std::string& line : lines) fmt::print("{}\n", line);
  return {};
}

constexpr int64_t kMostJobs = 256, kMostWorkers = 1024, kMostCpus = 1024;

// Where steps are done.
struct Places {
  std::string place = "local", sbatch, address, resources;
  std::optional<int64_t> cpus, workers;
};

// An option that is given, and is of another place.
Status check_place(const Places& places) {
  const std::string& place = places.place;
  if (place != "local" && place != "ray" && place != "slurm")
    return invalid_argument(fmt::format("--place {}: use local, ray or slurm", place));
  const auto wrong = [&](const char* option, bool given, const char* of) {
    return given && std::string_view(of).find(place) == std::string_view::npos
               ? Status(invalid_argument(
                     fmt::format("{}: goes with --place {}, and this is --place {}", option, of, place)))
               : Status();
  };
  RETURN_IF_ERROR(wrong("--cpus", places.cpus.has_value(), "ray or slurm"));
  RETURN_IF_ERROR(wrong("--sbatch", !places.sbatch.empty(), "slurm"));
  RETURN_IF_ERROR(wrong("--address", !places.address.empty(), "ray"));
  RETURN_IF_ERROR(wrong("--resources", !places.resources.empty(), "ray"));
  if (places.cpus && (*places.cpus < 1 || *places.cpus > kMostCpus))
    return invalid_argument(fmt::format("--cpus {}: use 1 to {}", *places.cpus, kMostCpus));
  return {};
}

// Of options that say how steps are done: those that would have no effect.
Status check_effects(const Places& places, const lab::RunRequest& request, bool dry_run) {
  if (dry_run && !request.pin.empty())
    return invalid_argument("--pin: --dry_run writes nothing; leave out one of them");
  if (dry_run && request.audit > 0)
    return invalid_argument("--audit: --dry_run does no step; leave out one of them");
  if (!request.by.empty() && request.audit <= 0)
    return invalid_argument("--by: goes with --audit SHARE; give both, or leave it out");
  if (places.workers && (*places.workers < 1 || *places.workers > kMostWorkers))
    return invalid_argument(fmt::format("--workers {}: use 1 to {}", *places.workers, kMostWorkers));
  if (places.workers && places.place != "local")
    return invalid_argument(fmt::format(
        "--workers: is of trainings in this process, and --place {} trains elsewhere, as the plan "
        "says; leave out one of them",
        places.place));
  if (dry_run && places.workers)
    return invalid_argument("--workers: --dry_run does no step; leave out one of them");
  if (dry_run && places.place != "local")
    return invalid_argument("--place: --dry_run does no step; leave out one of them");
  return {};
}

// Null: here.
Result<std::unique_ptr<lab::Cluster>> open_place(io::FileSystem& fs, const Places& places) {
  const int cpus = static_cast<int>(places.cpus.value_or(1));
  if (places.place == "slurm") return lab::slurm_jobs(fs, {places.sbatch, cpus});
  if (places.place == "ray")
    return lab::ray_tasks(fs, {places.address.empty() ? "auto" : places.address, cpus, places.resources});
  return std::unique_ptr<lab::Cluster>();
}

}  // namespace

int lab_run(Args args) {
  std::string file, check = "status";
  bool dry_run = false, sanity = false;
  int64_t jobs = 1;
  Places places;
  lab::RunRequest request;
  args.summary(
      "Does the steps of a plan that are not done yet; of each it says what it does and why. Whatever is "
      "killed,\n"
      "the same command goes on. A step is skipped when the journal has its fingerprint (kind, version, "
      "parameters,\n"
      "contents of its inputs) and its output is unchanged.");
  args.positional("FILE", &file, "the plan (docs/guide/lab.md)");
  args.flag("--dry_run", &dry_run,
            "say what would be done, with FLOPs, time, memory and checkpoints of trainings "
            "whose inputs are there, and do nothing");
  args.option("--check", &check, "HOW",
              "how outputs are compared with the journal: status (read files whose size or time has changed; "
              "the default) or full (read every byte)");
  args.option("-j,--jobs", &jobs, "N",
              "do up to N steps side by side, each in a process with its share of the threads; what they "
              "print is in the folder logs. The outputs are those of -j 1");
  args.option("--workers", &places.workers, "N",
              "with local: train with N workers in this process, whatever the plan says; they change no bit "
              "(default: as the plan says)");
  args.option(
      "--place", &places.place, "PLACE",
      "where steps are done: local (this machine; the default), ray (on a Ray cluster) or slurm (as "
      "jobs). The outputs are the same. All machines must see the plan, the lab and this program under "
      "the same paths");
  args.option("--cpus", &places.cpus, "N",
              "with ray and slurm: processors of each step, and its threads (default: 1)");
  args.option("--sbatch", &places.sbatch, "WORDS",
              "with slurm: further options of sbatch for each job, for instance '--partition=long "
              "--time=4:00:00 --gres=gpu:1'");
  args.option("--address", &places.address, "ADDRESS",
              "with ray: of the cluster, HOST:PORT; without it: the one of this machine");
  args.option("--resources", &places.resources, "JSON",
              "with ray: what each step needs besides processors, as '{\"GPU\": 1}'");
  args.option("--audit", &request.audit, "SHARE",
              "do a drawn share of the skipped steps again, from 0 to 1, and compare; two outputs of one "
              "fingerprint are an error, and nothing goes on from there");
  args.option("--by", &request.by, "NAME", "with --audit: who does it, for the journal and the record");
  args.flag("--sanity", &sanity,
            "the same steps small, as a trial: the first 200 rows of each source, trainings of at most 20 "
            "steps, in a folder of their own (NAME.sanity.lab)");
  args.option("--pin", &request.pin, "SOURCE", "take the files of these sources as they are now");
  if (const auto code = args.parse()) return *code;
  if (check != "status" && check != "full")
    return report_error(invalid_argument(fmt::format("--check {}: use status or full", check)));
  if (jobs < 1 || jobs > kMostJobs)
    return report_error(invalid_argument(fmt::format("-j {}: use 1 to {}", jobs, kMostJobs)));
  if (!(request.audit >= 0 && request.audit <= 1))
    return report_error(invalid_argument(
        fmt::format("--audit {}: use a share from 0 to 1, for instance 0.05", request.audit)));
  if (const Status good = check_place(places); !good.ok()) return report_error(good.error());
  if (const Status good = check_effects(places, request, dry_run); !good.ok())
    return report_error(good.error());
  request.every_byte = check == "full";
  request.jobs = static_cast<int>(jobs);
  Context context = args.context();
  auto plan = lab::read_plan(context.fs, file);
  if (!plan.ok()) return report_error(plan.error());
  plan->sanity = sanity;
  if (dry_run) return lab_dry_run(context, *plan, request.every_byte);
  const run::StopSignals signals;
  context.stop = [&] { return signals.stop_requested(); };
  BuildProgressLine line;
  auto build = build_settings(line);
  if (!build.ok()) return report_error(build.error());
  request.threads = build->threads_or_all();
  const lab::Services services = lab_services(context, *build, args.typed(), places.workers);
  request.on_begin = [](const lab::StepState& step) {
    fmt::print("{}", state_line(step));
    std::fflush(stdout);
  };
  request.on_end = [&line](const lab::StepState& step) {
    line.end();
    fmt::print("{}", state_line(step));
    std::fflush(stdout);
  };
  const auto elsewhere = open_place(context.fs, places);
  if (!elsewhere.ok()) return report_error(elsewhere.error());
  request.elsewhere = elsewhere->get();
  request.argv = args.typed();
  const auto state = lab::run_plan(context, services, *plan, request);
  if (!state.ok()) return report_error(state.error());
  if (state->stopped) {
    fmt::print(stderr, "stopped; the same command goes on\n");
    return kExitInterrupted;
  }
  for (const lab::StepState& step : state->steps)
    if (step.action == lab::Action::kFail)
      (void)report_error(
          corrupt(fmt::format("{}: step {}: {}", step.step->where, step.step->name, step.reason)));
  if (!state->is_done()) return kExitFailed;
  if (const Status told = tell_forecasts(context, *plan, *state); !told.ok())
    return report_error(told.error());
  // Report and pages last: the hash stands whatever becomes of them.
  const Status products = make_products(context, *plan);
  fmt::print("lab hash: {}\n", state->hash());
  return products.ok() ? kExitOk : report_error(products.error());
}

}  // namespace ostro::cli
