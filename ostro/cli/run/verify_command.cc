// ostro verify
#include <fmt/core.h>

#include <chrono>
#include <cstdio>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/record/amend.h"
#include "ostro/chain/clock_text.h"
#include "ostro/chain/record.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/convert/check_model.h"
#include "ostro/io/files/path.h"
#include "ostro/leaf_audit/leaf_audit.h"
#include "ostro/provenance/provenance.h"
#include "ostro/run/report/console.h"

namespace ostro::cli {
namespace {

int exit_code(audit::Verdict verdict) {
  switch (verdict) {
    case audit::Verdict::kEqual:
      return kExitOk;
    case audit::Verdict::kIncomplete:
      return kExitIncomplete;
    case audit::Verdict::kCannotCheck:
      return kExitCannotCheck;
    case audit::Verdict::kDiffers:
      return kExitFailed;
  }
  return kExitFailed;
}

// Says on standard error how long a replay takes: beforehand from what the run's sessions took (run.json),
// then from the steps that were replayed. On a terminal a line that is rewritten, elsewhere only the
// estimate.
class ReplayProgress {
 public:
  ReplayProgress(io::FileSystem& fs, const std::string& run, bool terminal) : terminal_(terminal) {
    const auto record = chain::read_record(fs, io::join_path(run, chain::kRecordFile));
    if (record.ok()) recorded_ = chain::seconds_a_step(*record);
  }

  void begin(int64_t first, int64_t last) const {
    const double seconds = recorded_ * static_cast<double>(last - first + 1);
    if (seconds < kShort) return;
    fmt::print(stderr, "replaying steps {} to {}: these took {} to train (run.json)\n", first, last,
               chain::duration_text(seconds));
  }

  // Of a sampled audit: so many of the steps that are to be replayed are done.
  void count(int64_t done, int64_t all) {
    what_ = "of the sample's";
    (*this)(done, 1, all);
  }

  void operator()(int64_t step, int64_t first, int64_t last) {
    const Clock::time_point now = Clock::now();
    if (step == first) begin_ = now;  // what is compiled for the first step is not counted
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = seconds > 0 ? static_cast<double>(step - first) / seconds : 0;
    const bool is_last = step == last;
    if (!terminal_ || (!is_last && step > first && now - shown_ < std::chrono::milliseconds(200))) return;
    shown_ = now;
    fmt::print(stderr, "\rreplayed step {} {} {} to {}", step, what_, first, last);
    if (rate > 0)
      fmt::print(stderr, ", {:.2f} steps/s, ETA {}", rate,
                 chain::duration_text(static_cast<double>(last - step) / rate));
    std::fputs(is_last ? "   \n" : "   ", stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kShort = 30;  // seconds; a shorter replay needs no estimate
  const bool terminal_;
  const char* what_ = "of";
  double recorded_ = 0;  // seconds a step; 0: not known
  Clock::time_point begin_, shown_;
};

// Whether the directory is one of a model, and no run's.
Result<bool> is_model(io::FileSystem& fs, const std::string& directory) {
  const auto has = [&](const char* name) { return fs.exists(io::join_path(directory, name)); };
  for (const char* name : {chain::kChainFile, audit::kProgramFile}) {
    ASSIGN_OR_RETURN(const bool is_run, has(name));
    if (is_run) return false;
  }
  for (const char* name : {provenance::kProvenanceFile, "config.json", "adapter_config.json"}) {
    ASSIGN_OR_RETURN(const bool there, has(name));
    if (there) return true;
  }
  return false;
}

// A model's directory, with the record of its run or without.
int verify_model(const Context& context, const convert::ModelCheckRequest& request, bool json) {
  const auto check = convert::check_model(context, request);
  if (!check.ok()) return report_error(check.error());
  const Status written =
      write_stdout(json ? convert::model_check_json(*check) : convert::model_check_text(*check));
  return written.ok() ? exit_code(check->verdict()) : report_error(written.error());
}

// What is asked about a sample or a leaf, beside the options that a whole audit has, too.
struct SpotRequest {
  std::optional<int64_t> count;  // --sample
  std::string challenge, leaf, rows;
  bool price = false, json = false;
};

Status check_spot(const SpotRequest& r, bool has_range, bool no_replay) {
  const auto refuse = [](const std::string& what) { return Status(invalid_argument(what)); };
  if (r.count && !r.leaf.empty()) return refuse("--sample and --leaf: use one of them");
  if (r.count && r.challenge.empty())
    return refuse(
        "--sample: goes with --challenge TEXT, which the maker of the run could not know when the "
        "run hash was published");
  if (!r.count && !r.challenge.empty()) return refuse("--challenge: goes with --sample K");
  if (r.leaf.empty() && !r.rows.empty()) return refuse("--rows: goes with --leaf STEP:LEAF");
  if (!r.count && r.leaf.empty() && r.price) return refuse("--dry_run: goes with --sample or --leaf");
  if ((r.count || !r.leaf.empty()) && (has_range || no_replay))
    return refuse(
        "--sample and --leaf say what is replayed; leave out --from_step, --to_step and --no_replay");
  return {};
}

// "41:3".
Result<std::pair<int64_t, int64_t>> step_and_leaf(const std::string& text) {
  int64_t step = 0, leaf = 0;
  char end = 0;
  if (std::sscanf(text.c_str(), "%ld:%ld%c", &step, &leaf, &end) == 2 && step >= 1 && leaf >= 0)
    return std::pair{step, leaf};
  return invalid_argument(
      fmt::format("--leaf {}: use STEP:LEAF, steps from 1 and leaves from 0, e.g. 41:3", text));
}

// Only what a sampled audit would cost and find.
int price_of_sample(const Context& context, runtime::Engine& engine, const std::string& run,
                    const audit::AuditOptions& options, bool json) {
  const auto sample =
      audit::price_sample(context.fs, engine, run, options.replay, options.sample, context.models);
  if (!sample.ok()) return report_error(sample.error());
  const Status written = write_stdout(json ? audit::sample_json(*sample) + "\n" : audit::price_text(*sample));
  return written.ok() ? kExitOk : report_error(written.error());
}

int verify_leaf(const Context& context, runtime::Engine& engine, const std::string& run,
                const audit::VerifyOptions& options, const SpotRequest& asked) {
  const auto place = step_and_leaf(asked.leaf);
  if (!place.ok()) return report_error(place.error());
  leaf_audit::LeafRequest request{place->first, place->second, asked.rows, {}, asked.price};
  if (!asked.json && !asked.price)
    request.on_priced = [](const leaf_audit::LeafPrice& price) {
      fmt::print(stderr, "{}", leaf_audit::leaf_price_text(price));
    };
  const auto leaf = leaf_audit::audit_leaf(context.fs, engine, run, options, request, context.models);
  if (!leaf.ok()) return report_error(leaf.error());
  const bool priced = asked.price && leaf->findings.empty();
  const Status written = write_stdout(asked.json ? leaf_audit::leaf_json(*leaf)
                                      : priced   ? leaf_audit::leaf_price_text(leaf->price)
                                                 : leaf_audit::leaf_text(*leaf));
  return written.ok() ? exit_code(leaf->verdict()) : report_error(written.error());
}

}  // namespace

int verify_command(Args args) {
  std::string run, model;
  audit::AuditOptions options;
  std::optional<int64_t> from, to;
  SpotRequest spot;
  bool json = false;
  args.summary(
      "Checks a run's record. Compares every checkpoint with the chain, traces the programs of the\n"
      "configuration and compares them with the chain's, then replays from the newest checkpoint at or "
      "before\n"
      "--from_step that the chain names and that is fine (without any, from the seed's initial state) to\n"
      "--to_step, and compares every chain entry, and the temporary checkpoints of these steps.\n"
      "The first line is the verdict, and so is the exit code:\n"
      "  0 equal         all that was compared is the same\n"
      "  1 differs       the record contradicts itself, the replay or the run hash that was given\n"
      "  3 incomplete    nothing differs, but a part is missing: checkpoints, or the end of the chain\n"
      "  4 cannot check  nothing differs, but this program could not compare it: no data at hand, another\n"
      "                  version's programs, a model that it does not have\n"
      "2 is a command line that makes no sense.\n"
      "With --model it computes every file of an exported model again from the record's checkpoint, and\n"
      "compares the bytes; no step is replayed. Given a model's directory alone it compares the files with\n"
      "the model's provenance.json, and says what more is needed.");
  args.positional("RUN", &run, "run directory, or the directory of a model");
  args.option("--model", &model, "DIR",
              "the directory of a model that was made of RUN, which may be a run, a checkpoint or an import");
  args.option("--from_step", &from, "A", "step to begin at or before (default 0: the seed's initial state)");
  args.option("--to_step", &to, "B", "step to end at (default: the last of the chain)");
  args.option("--run_hash", &options.run_hash, "H",
              "the run hash that was published: the run must have it. A chain that was written anew for a\n"
              "forged run fits that run; only the hash, or a replay, tells");
  args.option(
      "--parent", &options.parent, "RUN",
      "of a fork: the run that it goes on with. Its chain must have the entry that the fork's genesis\n"
      "names, and the fork's first state; otherwise the copy of that chain in RUN/parent is taken");
  args.option("--cache", &options.replay.cache, "DIR",
              "the token store, when it is no longer where the run used it (data.cache_dir)");
  args.flag("--no_replay", &options.no_replay,
            "only checks chain, programs and checkpoints; needs no token store");
  args.flag("--stored_program", &options.replay.stored_programs,
            "where this version traces other programs from the configuration, replays those of program.ir;\n"
            "that they are the configuration's, it cannot say");
  args.option(
      "--sample", &spot.count, "K",
      "replays only K steps, which --challenge draws, each from the checkpoint before it; says before "
      "the\n"
      "work what it costs and what it would find. RUN may be a published bundle");
  args.option("--challenge", &spot.challenge, "TEXT",
              "that was chosen after the run hash was published, e.g. the numbers of a lottery");
  args.option("--leaf", &spot.leaf, "STEP:LEAF",
              "replays only one leaf (microbatch) of a step, and proves it against the chain's Merkle root");
  args.option(
      "--rows", &spot.rows, "FILE",
      "with --leaf: the leaf's rows with their proofs, in place of the token store (ostro data prove)");
  args.flag("--dry_run", &spot.price, "with --sample or --leaf: only says what it costs and would find");
  args.flag("--json", &json, "print the result as JSON");
  args.device();
  if (auto code = args.parse()) return *code;
  if (const Status fits = check_spot(spot, from || to, options.no_replay); !fits.ok())
    return report_error(fits.error());
  options.replay.from_step = from.value_or(0);
  options.replay.to_step = to;
  const Context& context = args.context();
  const auto alone = model.empty() ? is_model(context.fs, run) : Result<bool>(false);
  if (!alone.ok()) return report_error(alone.error());
  if (*alone || !model.empty()) {
    if (from || to || !options.replay.cache.empty() || options.replay.stored_programs)
      return report_error(invalid_argument(
          "--from_step, --to_step, --cache and --stored_program are for replaying a run; a model is compared "
          "with its record without it"));
    if (spot.count || !spot.leaf.empty())
      return report_error(invalid_argument(
          "--sample and --leaf replay steps of a run; leave out --model, and give the run's directory"));
    return verify_model(context, {*alone ? run : model, *alone ? "" : run, options.run_hash}, json);
  }
  const auto workers = sim_workers();
  if (!workers.ok()) return report_error(workers.error());
  options.replay.workers = *workers;
  // A device that is not there is told before anything is read.
  std::unique_ptr<runtime::Engine> engine;
  if (!options.no_replay) {
    auto made = context.engine();
    if (!made.ok()) return report_error(made.error());
    engine = std::move(*made);
  }
  const bool is_spot = spot.count || !spot.leaf.empty();
  if (is_spot) {
    auto record = audit::record_folder(context.fs, run);
    if (!record.ok()) return report_error(record.error());
    run = std::move(*record);
  }
  spot.json = json;
  if (!spot.leaf.empty()) return verify_leaf(context, *engine, run, options.replay, spot);
  ReplayProgress progress(context.fs, run, run::stderr_columns() > 0 && !json);
  options.replay.on_begin = [&](int64_t first, int64_t last) { progress.begin(first, last); };
  options.replay.on_step = [&](int64_t step, int64_t first, int64_t last) { progress(step, first, last); };
  if (spot.count) {
    options.sample.count = *spot.count;
    options.sample.challenge = spot.challenge;
    options.sample.on_step = [&](int64_t done, int64_t all) { progress.count(done, all); };
    if (!json)
      options.sample.on_priced = [](const audit::Sample& sample) {
        fmt::print(stderr, "{}", audit::price_text(sample));
      };
    if (spot.price) return price_of_sample(context, *engine, run, options, json);
  }
  const auto audit = audit::audit_run(
      context.fs, [&]() -> Result<std::unique_ptr<runtime::Engine>> { return std::move(engine); }, run,
      options, context.models);
  if (!audit.ok()) return report_error(audit.error());
  const Status written = write_stdout(json ? audit::audit_json(*audit) : audit::audit_text(*audit));
  return written.ok() ? exit_code(audit->verdict()) : report_error(written.error());
}

}  // namespace ostro::cli
