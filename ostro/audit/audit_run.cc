#include "ostro/audit/audit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/audit/bare_model.h"
#include "ostro/audit/beginning.h"
#include "ostro/audit/cause.h"
#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/chain/canonical.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::audit {
namespace {

void check_hash(const chain::Chain& chain, Audit& out) {
  if (auto finding = hash_finding(chain, out.given, out.given_from))
    out.findings.push_back(std::move(*finding));
}

void check_length(const std::string& chain_path, Audit& out) {
  if (out.length && out.steps < *out.length)
    out.findings.push_back({Verdict::kIncomplete, fmt::format("{} ends at step {} of {}: the run was not "
                                                              "finished, or its end was cut off",
                                                              chain_path, out.steps, *out.length)});
}

// Of one kind, and at the same place in the run, checkpoints are one finding (folded()).
void add_checkpoints(const AuditOptions& options, Audit& out) {
  for (const CheckedCheckpoint& c : out.checkpoints) {
    if (c.fine() || (options.parameters_only && c.verdict == CheckpointVerdict::kPartial)) continue;
    const bool is_absent =
        c.verdict == CheckpointVerdict::kMissing || c.verdict == CheckpointVerdict::kPartial;
    const Verdict verdict = is_absent                                  ? Verdict::kIncomplete
                            : c.verdict == CheckpointVerdict::kUnknown ? Verdict::kCannotCheck
                                                                       : Verdict::kDiffers;
    out.findings.push_back(
        {verdict, fmt::format("{} is {}: {}", io::base_name(c.path), verdict_name(c.verdict), c.detail)});
  }
}

// The run's own copy, which exports and samples use. A run can do without it.
void check_tokenizer(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                     Audit& out) {
  const std::string path = io::join_path(run, "tokenizer.json");
  const auto tokenizer = tokenizer::load_tokenizer(fs, path);
  if (!tokenizer.ok()) {
    if (tokenizer.error().code() != ErrorCode::kNotFound)
      out.findings.push_back({Verdict::kDiffers, fmt::format("the run's tokenizer cannot be read: {}",
                                                             tokenizer.error().message())});
  } else if (const std::string hash = tokenizer->hash(); hash != genesis.tokenizer_hash) {
    out.findings.push_back(
        {Verdict::kDiffers,
         fmt::format("{} is another tokenizer than the chain's: hash {} here, {} in the chain", path, hash,
                     genesis.tokenizer_hash)});
  }
}

Finding replay_finding(const VerifyReport& r) {
  if (!r.equal)
    return {Verdict::kDiffers,
            fmt::format("at step {}: {} is {} in the chain, {} replayed{}", r.different_step, r.what,
                        r.recorded, r.replayed, r.cause.empty() ? "" : "; " + r.cause)};
  if (!r.unproven.empty())
    return {Verdict::kCannotCheck,
            fmt::format("steps {} to {} follow from program.ir ({} chain entries compared), but {}",
                        r.start_step + 1, r.last_step, r.entries, r.unproven)};
  return {Verdict::kCannotCheck,
          fmt::format("no step was replayed: the state after step {} is where the replay "
                      "begins and ends; name an earlier --from_step",
                      r.last_step)};
}

// Steps that the request draws, from states that were found to be fine.
void replay_drawn(io::FileSystem& fs, runtime::Engine& engine, const std::string& run,
                  const VerifyOptions& options, const SampleRequest& request, const chain::Chain& chain,
                  const models::ModelChoices& models, Audit& out) {
  auto states = states_of(fs, run, chain);
  if (!states.ok()) {
    out.findings.push_back(finding_of(states.error()));
    return;
  }
  for (const CheckedCheckpoint& c : out.checkpoints)
    if (c.verdict != CheckpointVerdict::kFine && c.step != states->front()) std::erase(*states, c.step);
  auto sample = replay_sample(fs, engine, run, options, request, *states, models);
  if (!sample.ok()) {
    out.findings.push_back(finding_of_replay(fs, run, chain, sample.error()));
    return;
  }
  VerifyReport& report = sample->report;
  if (!report.equal) report.cause = cause_of(fs, engine, run, options, report, models);
  compare_with_replay(report.names, report.different_step, out.checkpoints);
  if (!report.equal || !report.unproven.empty()) out.findings.push_back(replay_finding(report));
  out.sample = std::move(*sample);
}

void replay(io::FileSystem& fs, const std::function<Result<std::unique_ptr<runtime::Engine>>()>& make_engine,
            const std::string& run, VerifyOptions options, const SampleRequest& sample,
            const chain::Chain& chain, const models::ModelChoices& models, Audit& out) {
  for (const CheckedCheckpoint& c : out.checkpoints)
    if (c.verdict == CheckpointVerdict::kTemporary) options.name_steps.push_back(c.step);
  const auto engine = make_engine();
  if (!engine.ok()) {
    out.findings.push_back(finding_of(engine.error()));
    return;
  }
  if (sample.count != 0) {
    replay_drawn(fs, **engine, run, options, sample, chain, models, out);
    return;
  }
  auto report = verify_run(fs, **engine, run, options, models);
  if (!report.ok()) {
    out.findings.push_back(finding_of(report.error()));
    return;
  }
  if (!report->equal) report->cause = cause_of(fs, **engine, run, options, *report, models);
  out.replay = *report;
  compare_with_replay(report->names, report->different_step, out.checkpoints);
  if (!report->equal || !report->unproven.empty() || report->last_step == report->start_step)
    out.findings.push_back(replay_finding(*report));
}

// 0 stands for the beginning, wherever that is.
Status check_request(const AuditOptions& options, const std::string& run, const chain::Chain& chain) {
  const int64_t before = chain.genesis().step(), steps = chain.last_step(), from = options.replay.from_step,
                to = options.replay.to_step.value_or(steps);
  if ((from == 0 || from >= before) && std::max(from, before) <= to && to <= steps) return {};
  return invalid_argument(
      fmt::format("steps {} to {}: the chain of {} has steps {} to {}", from, to, run, before + 1, steps));
}

}  // namespace

std::optional<Finding> hash_finding(const chain::Chain& chain, const std::string& given,
                                    const std::string& from) {
  if (given.empty() || given == chain.head()) return std::nullopt;
  const chain::ChainLink* link = chain.find_hash(given);
  return Finding{
      Verdict::kDiffers,
      fmt::format("the run hash is {}, not {} {}{}", chain.head(), given, from,
                  link == nullptr
                      ? ""
                      : fmt::format(", which is the run's hash after step {}: up to there it is that run",
                                    chain::entry_step(link->entry)))};
}

std::optional<int64_t> length_of(const chain::Chain& chain) {
  const auto steps_in = [](const nlohmann::json& value) -> std::optional<int64_t> {
    if (!value.is_number_integer()) return std::nullopt;
    return value.get<int64_t>();
  };
  std::optional<int64_t> length;
  const auto config = nlohmann::json::parse(chain.genesis().config, nullptr, /*allow_exceptions=*/false);
  if (config.is_object() && config.contains("trainer") && config["trainer"].is_object())
    length = steps_in(config["trainer"].value("num_train_steps", nlohmann::json()));
  for (const chain::ChainLink& link : chain.links) {
    const auto* amend = std::get_if<chain::AmendEntry>(&link.entry);
    if (amend == nullptr) continue;
    const auto change = nlohmann::json::parse(amend->difference, nullptr, /*allow_exceptions=*/false);
    if (!change.is_object() || !change.contains("trainer.num_train_steps")) continue;
    const auto& steps = change["trainer.num_train_steps"];
    if (steps.is_object() && steps.contains("to")) length = steps_in(steps["to"]);
  }
  return length;
}

Result<Audit> audit_run(io::FileSystem& fs,
                        const std::function<Result<std::unique_ptr<runtime::Engine>>()>& engine,
                        const std::string& run, const AuditOptions& options,
                        const models::ModelChoices& models) {
  RETURN_IF_ERROR(chain::check_run_hash(options.run_hash));
  const std::string chain_path = io::join_path(run, chain::kChainFile);
  Audit out;
  out.given = options.run_hash;
  out.given_from = options.hash_from;
  const auto chain = chain::read_chain(fs, chain_path);
  if (!chain.ok()) {
    out.findings.push_back(finding_of(no_run(fs, run, chain.error())));
    return out;
  }
  out.head = chain->head();
  out.steps = chain->last_step();
  out.before = chain->genesis().step();
  out.length = length_of(*chain);
  if (!options.no_replay) RETURN_IF_ERROR(check_request(options, run, *chain));
  if (options.sample.count != 0) {
    const auto drawn =
        drawn_steps(out.head, options.sample.challenge, chain::entry_step(chain->links.front().entry) + 1,
                    out.steps, options.sample.count);
    if (!drawn.ok()) return drawn.error();
  }
  auto checkpoints = check_checkpoints(fs, run, *chain, models);
  if (checkpoints.ok())
    out.checkpoints = std::move(*checkpoints);
  else
    out.findings.push_back(finding_of(checkpoints.error()));
  if (const auto& taken = options.checkpoints)
    std::erase_if(out.checkpoints, [&](const CheckedCheckpoint& c) {
      return c.verdict == CheckpointVerdict::kMissing &&
             std::find(taken->begin(), taken->end(), c.step) == taken->end();
    });
  if (!options.no_replay) {
    replay(fs, engine, run, options.replay, options.sample, *chain, models, out);
  } else if (const auto opened = open_recorded(fs, run, models, options.replay.stored_programs);
             !opened.ok()) {
    out.findings.push_back(finding_of(opened.error()));
  } else if (!opened->unproven.empty()) {
    out.findings.push_back({Verdict::kCannotCheck, opened->unproven});
  }
  ASSIGN_OR_RETURN(Beginning beginning,
                   check_beginning(fs, run, *chain, options.parent, models, options.parameters_only));
  out.beginning = std::move(beginning.text);
  out.not_shown = std::move(beginning.not_shown);
  out.findings.insert(out.findings.end(), beginning.findings.begin(), beginning.findings.end());
  check_hash(*chain, out);
  check_tokenizer(fs, run, chain->genesis(), out);
  add_checkpoints(options, out);
  check_length(chain_path, out);
  if (options.no_replay && out.checkpoints.empty())
    out.findings.push_back({Verdict::kCannotCheck, "there is no checkpoint to compare, and --no_replay"});
  sort_worst_first(out.findings);
  out.findings = folded(out.findings);
  return out;
}

}  // namespace ostro::audit
