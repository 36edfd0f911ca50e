#include "ostro/lab_commands/lab_without.h"

#include <fmt/format.h>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/run/loop/dry_run.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/train_run.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/without/effect.h"
#include "ostro/without/price.h"

namespace ostro::cli {
namespace {

constexpr int64_t kMostControls = 1000;

// What all of it will take. Error: a run that does not fit into the memory.
Result<without::Price> priced(const Context& context, const without::WithoutRequest& request,
                              const without::RemovalPlan& plan, const data::BuildSettings& build) {
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(const int64_t workers, sim_workers());
  ASSIGN_OR_RETURN(const run::DryRun told, run::dry_run(context.fs, *engine, plan.config, workers, 1, build));
  RETURN_IF_ERROR(told.fits);
  return without::find_price(context, request, plan, told.cost);
}

Result<int> without(const Context& context, const without::WithoutRequest& request, bool dry_run, bool json,
                    const std::vector<std::string>& typed) {
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  ASSIGN_OR_RETURN(const without::RemovalPlan plan, without::plan_removals(context, request));
  const Context on = context.on(plan.config.trainer.device);
  ASSIGN_OR_RETURN(const without::Price price, priced(on, request, plan, build));
  const std::string said = without::plan_text(request, plan) + without::price_text(price);
  if (dry_run || !json) RETURN_IF_ERROR(write_stdout(said));
  if (dry_run) return kExitOk;
  const without::EffectServices services = {
      build, [&](const train::TrainConfig& config) { return train_here(on, config, typed, {}, false); }};
  ASSIGN_OR_RETURN(const auto report, without::find_effect(on, request, plan, services));
  line.end();
  if (!report) {
    fmt::print(stderr, "stopped; the same command goes on\n");
    return kExitInterrupted;
  }
  const std::string file = io::join_path(request.out, "effect.json"), text = without::effect_json(*report);
  RETURN_IF_ERROR(io::write_file_atomically(context.fs, file, text));
  RETURN_IF_ERROR(write_stdout(
      json ? text : without::effect_text(*report) + fmt::format("{}: every step, all bits\n", file)));
  return kExitOk;
}

}  // namespace

int lab_without(Args args) {
  without::WithoutRequest request;
  std::string as = "mask";
  bool dry_run = false, json = false;
  args.summary(
      "Trains a finished run again without some of its documents (data.without), all else as it was, and "
      "compares\n"
      "the two: loss by step, on held-out text, on the documents, on other texts. The run without is a fork "
      "at the\n"
      "last kept checkpoint before the first use; if there is none, it begins anew. Whatever is killed, the "
      "same\n"
      "command goes on. Start it where the run was started.");
  args.positional("RUN", &request.run, "run directory; it is only read");
  args.option(
      "--document", &request.documents, "FILE:N",
      "documents to leave out, together: source file, or the end of its path, and number in it, from 1");
  args.option(
      "--as", &as, "HOW",
      "mask (default): their tokens are no targets; blank: nor are they context (data.without_as); rebuild: "
      "the stores are made again without them, so all documents have another order");
  args.option("--control", &request.controls, "K",
              "do the same for K drawn documents of like length and time of use, and show the effect among "
              "theirs");
  args.option(
      "--seeds", &request.seeds, "N",
      "also train with N drawn seeds from the first step on, with and without the documents: what they do "
      "to training, and not to this run");
  args.option("--sample", &request.sample, "N",
              "in place of --document: N drawn documents, each left out alone, as a table of influences");
  args.option("--text", &request.texts, "FILE", "texts whose loss is compared, too");
  args.option("--out", &request.out, "DIR", "where the runs without go (default: RUN.without)");
  args.flag("--dry_run", &dry_run, "only say what would be done, with steps, time and memory");
  args.flag("--json", &json, "print what is in DIR/effect.json");
  if (const auto code = args.parse()) return *code;
  if (as != "mask" && as != "blank" && as != "rebuild")
    return report_error(invalid_argument(fmt::format("--as {}: use mask, blank or rebuild", as)));
  request.rebuild = as == "rebuild";
  request.as = as == "blank" ? data::WithoutAs::kBlank : data::WithoutAs::kMask;
  if (request.controls < 0 || request.controls > kMostControls)
    return report_error(
        invalid_argument(fmt::format("--control {}: use 0 to {}", request.controls, kMostControls)));
  for (const auto& [name, count] : {std::pair{"--seeds", request.seeds}, {"--sample", request.sample}})
    if (count < 0 || count > kMostControls)
      return report_error(invalid_argument(fmt::format("{} {}: use 0 to {}", name, count, kMostControls)));
  if (request.documents.empty() == (request.sample == 0))
    return report_error(invalid_argument("use one of --document FILE:N and --sample N"));
  if (request.sample > 0 && (request.controls > 0 || request.seeds > 0))
    return report_error(invalid_argument(
        "--sample: the documents of a sample stand beside each other; leave out --control and --seeds"));
  request.run = io::clean_path(request.run);
  const std::string run = io::absolute_path(request.run);
  if (request.out.empty()) request.out = run + ".without";
  if ((io::absolute_path(request.out) + "/").starts_with(run + "/"))
    return report_error(
        invalid_argument(fmt::format("--out {}: is in {}, which is only read", request.out, request.run)));
  Context context = args.context();
  const run::StopSignals signals;
  context.stop = [&] { return signals.stop_requested(); };
  const auto code = without(context, request, dry_run, json, args.typed());
  return code.ok() ? *code : report_error(code.error());
}

}  // namespace ostro::cli
