// ostro verify
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ostro/audit/check_checkpoints.h"
#include "ostro/audit/verify.h"
#include "ostro/chain/canonical.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/sim_workers.h"
#include "ostro/io/files/path.h"
#include "ostro/run/report/console.h"

namespace ostro::cli {
namespace {

constexpr size_t kHashDigits = 64;

struct RunFindings {
  std::string head;         // the run hash
  std::string given;        // by --run_hash; empty: nothing
  int64_t given_step = -1;  // of the entry that has the given hash and is not the last
  std::vector<audit::CheckedCheckpoint> checkpoints;
  std::optional<audit::VerifyReport> replay;  // nothing with --no_replay, or when it could not be done

  bool hash_fits() const { return given.empty() || given == head; }
  bool good() const {
    return hash_fits() &&
           std::all_of(checkpoints.begin(), checkpoints.end(), [](const auto& c) { return c.fine(); }) &&
           (!replay || replay->equal);
  }
};

void print_json(const RunFindings& f) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  if (f.replay) {
    const audit::VerifyReport& r = *f.replay;
    j = {
        {"equal", r.equal}, {"start_step", r.start_step}, {"last_step", r.last_step}, {"entries", r.entries}};
    if (!r.equal) {
      j["different_step"] = r.different_step;
      j["what"] = r.what;
      j["recorded"] = r.recorded;
      j["replayed"] = r.replayed;
    }
  }
  j["run_hash"] = f.head;
  if (!f.given.empty()) j["run_hash_as_given"] = f.hash_fits();
  j["checkpoints"] = nlohmann::ordered_json::array();
  for (const audit::CheckedCheckpoint& c : f.checkpoints)
    j["checkpoints"].push_back({{"step", c.step},
                                {"path", c.path},
                                {"verdict", audit::verdict_name(c.verdict)},
                                {"name", c.name},
                                {"detail", c.detail}});
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

// " (steps 5, 10, 15)"; of many the first and the last, since all that are not fine are named.
std::string steps_text(const std::vector<int64_t>& steps) {
  constexpr size_t kMany = 8;
  if (steps.empty()) return "";
  if (steps.size() == 1) return fmt::format(" (step {})", steps[0]);
  if (steps.size() > kMany) return fmt::format(" (steps {} to {})", steps.front(), steps.back());
  return fmt::format(" (steps {})", fmt::join(steps, ", "));
}

void print_text(const RunFindings& f) {
  if (!f.given.empty() && f.hash_fits()) fmt::print("run hash: {}, as given\n", f.head);
  if (!f.hash_fits())
    fmt::print("run hash: {}, not {} as given{}\n", f.head, f.given,
               f.given_step < 0
                   ? ""
                   : fmt::format(", which is the run's hash after step {}: up to there it is that run",
                                 f.given_step));
  std::vector<int64_t> fine;
  for (const audit::CheckedCheckpoint& c : f.checkpoints)
    if (c.fine()) fine.push_back(c.step);
  fmt::print("checkpoints: {} fine{}\n", fine.size(), steps_text(fine));
  for (const audit::CheckedCheckpoint& c : f.checkpoints)
    if (c.verdict != audit::Verdict::kFine)
      fmt::print("{} is {}: {}\n", io::base_name(c.path), audit::verdict_name(c.verdict), c.detail);
  if (!f.replay) return;
  if (f.replay->equal)
    fmt::print("equal: steps {} to {} replayed, {} chain entries compared\n", f.replay->start_step + 1,
               f.replay->last_step, f.replay->entries);
  else
    fmt::print("differs at step {}: {} is {} in the chain, {} replayed\n", f.replay->different_step,
               f.replay->what, f.replay->recorded, f.replay->replayed);
}

// What can be said of chain and checkpoints without replaying.
Result<RunFindings> look(const Context& context, const std::string& run, const std::string& given) {
  if (!given.empty() && !chain::is_lower_hex(given, kHashDigits))
    return invalid_argument(fmt::format("--run_hash {}: use the {} digits (0-9, a-f) that ostro hash prints",
                                        given, kHashDigits));
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(run, chain::kChainFile)));
  RunFindings out;
  out.head = chain.head();
  out.given = given;
  if (const chain::ChainLink* link = chain.find_hash(given)) out.given_step = chain::entry_step(link->entry);
  ASSIGN_OR_RETURN(out.checkpoints, audit::check_checkpoints(fs, run, chain, context.models));
  return out;
}

Status replay(const Context& context, const std::string& run, audit::VerifyOptions options, RunFindings& f) {
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(options.workers, sim_workers());
  for (const audit::CheckedCheckpoint& c : f.checkpoints)
    if (c.verdict == audit::Verdict::kTemporary) options.name_steps.push_back(c.step);
  ASSIGN_OR_RETURN(f.replay, audit::verify_run(context.fs, *engine, run, options, context.models));
  audit::compare_with_replay(f.replay->names, f.checkpoints);
  return {};
}

}  // namespace

int verify_command(Args args) {
  std::string run, run_hash;
  audit::VerifyOptions options;
  std::optional<int64_t> from, to;
  bool json = false, no_replay = false;
  args.summary(
      "Reads every checkpoint of a run and says which are fine, which are damaged, which are not what the\n"
      "run's chain says (forged, or of another run) and which are missing. Then replays from the newest\n"
      "checkpoint at or before --from_step that the chain names and that is fine (without any, from the\n"
      "seed's initial state) to --to_step, and compares every chain entry, and the temporary checkpoints of\n"
      "these steps. Exit 0: equal and all fine, 1: something differs or is not fine, 2: cannot compare.");
  args.positional("RUN", &run, "run directory");
  args.option("--from_step", &from, "A", "step to begin at or before (default 0: the seed's initial state)");
  args.option("--to_step", &to, "B", "step to end at (default: the last of the chain)");
  args.option("--run_hash", &run_hash, "H",
              "the run hash that was published: the run must have it. A chain that was written anew for a\n"
              "forged run fits that run; only the hash, or a replay, tells");
  args.option("--cache", &options.cache, "DIR",
              "the token store, when it is no longer where the run used it (data.cache_dir)");
  args.flag("--no_replay", &no_replay, "only checks the chain and the checkpoints; needs no token store");
  args.flag("--json", &json, "print the result as JSON");
  if (auto code = args.parse()) return *code;
  options.from_step = from.value_or(0);
  options.to_step = to;
  const bool terminal = run::stderr_columns() > 0 && !json;
  if (terminal)
    options.on_step = [](int64_t step, int64_t first, int64_t last) {
      fmt::print(stderr, "\rreplayed step {} of {} to {} ", step, first, last);
      if (step == last) std::fputc('\n', stderr);
    };
  auto cannot = [](const Error& e) {
    report_error(e);
    return static_cast<int>(kExitUsage);
  };
  auto found = look(args.context(), run, run_hash);
  if (!found.ok()) return cannot(found.error());
  const Status replayed = no_replay ? Status() : replay(args.context(), run, options, *found);
  // What was found before a replay that cannot be done counts all the same.
  if (replayed.ok() || !found->good()) json ? print_json(*found) : print_text(*found);
  if (!replayed.ok()) {
    const int code = cannot(replayed.error());
    return found->good() ? code : kExitFailed;
  }
  return found->good() ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
