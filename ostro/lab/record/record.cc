#include "ostro/lab/record/record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ostro/attest/replay_statement.h"
#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/data_record.h"
#include "ostro/chain/record.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/plan/phases.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/record/outcome.h"
#include "ostro/lab/record/scaling_record.h"
#include "ostro/lab/steps/halving.h"
#include "ostro/lab/steps/run_data.h"
#include "ostro/lab/steps/rung.h"
#include "ostro/provenance/provenance.h"
#include "ostro/run/phases/period_facts.h"
#include "ostro/train/options/config.h"

namespace ostro::lab {
namespace {

Status add_source(Database& db, const Plan& plan, const StepState& state, const Made& made) {
  const auto recipe = nlohmann::json::parse(state.recipe);
  const std::string licence = recipe["parameters"]["licence"];
  // Keys of the recipe are sorted, the files are in the order in which they are read: sizes by name.
  for (const auto& [file, hash] : recipe["inputs"].items())
    for (const data::SourceFile& found : made.files)
      if (found.path == file || found.path == io::join_path(plan.folder, file)) {
        RETURN_IF_ERROR(
            db.insert("sources", {state.step->name, file, hash.get<std::string>(), found.size, licence}));
        break;
      }
  return {};
}

// What a program made: its author alone says what it is.
Status add_outputs(Database& db, io::FileSystem& fs, const std::string& name, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, files_below(fs, folder));
  for (const std::string& file : files) {
    const std::string path = io::join_path(folder, file);
    ASSIGN_OR_RETURN(const std::string hash, io::file_sha256(fs, path));
    ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(path));
    RETURN_IF_ERROR(db.insert("outputs", {name, file, hash, info.size}));
  }
  return {};
}

// How many rows the texts of a store lack, by reason. The ledger has the reasons of the step that was there
// when the store was made, and others that leave out the same rows may stand before it now. Of several steps
// the first that leaves out a row has the reason.
Result<std::map<std::string, int64_t>> left_out_of(io::FileSystem& fs, const Plan& plan,
                                                   const LabState& state, const Step& tokens) {
  std::vector<std::string> steps;  // that give verdicts, the last one first
  for (const Step* step = plan.find(tokens.inputs.at("from")); step->kind->gives_verdicts();
       step = plan.find(step->inputs.at("from")))
    steps.push_back(step->name);
  std::map<std::string, int64_t> out;
  std::set<std::pair<size_t, int64_t>> before;  // file and row
  for (auto name = steps.rbegin(); name != steps.rend(); ++name) {
    ASSIGN_OR_RETURN(const data::RowVerdicts verdicts,
                     data::read_row_verdicts(fs, io::join_path(state.made.at(*name).folder, kVerdictsFile)));
    for (size_t i = 0; i < verdicts.files.size(); ++i)
      for (const data::RowVerdict& v : verdicts.files[i].said)
        if (!v.drop.empty() && before.emplace(i, v.row).second) ++out[v.drop];
  }
  return out;
}

Status add_store(Database& db, io::FileSystem& fs, const Plan& plan, const LabState& state,
                 const Step& tokens, const std::string& folder) {
  const std::string& name = tokens.name;
  ASSIGN_OR_RETURN(const data::StoreLedger ledger, data::read_ledger(fs, folder));
  for (const data::Split split : data::kSplits) {
    const data::SplitLedger& s = ledger.split(split);
    RETURN_IF_ERROR(db.insert("stores", {name, data::split_name(split), s.rows, s.tokens, s.bytes}));
  }
  ASSIGN_OR_RETURN(const auto left_out, left_out_of(fs, plan, state, tokens));
  for (const auto& [reason, rows] : left_out) RETURN_IF_ERROR(db.insert("left_out", {name, reason, rows}));
  return {};
}

// What the chain says of each part of the run between amends, with the plan's name where it has the same
// steps.
Status add_phases(Database& db, io::FileSystem& fs, const Plan& plan, const Step& step,
                  const std::string& folder, const chain::Chain& chain) {
  const std::string path = chain::config_file(fs, folder);
  ASSIGN_OR_RETURN(const std::string yaml, fs.read_file(path));
  const auto base = train::parse_train_config(yaml, path, models::builtin_models());
  if (!base.ok()) return {};  // of a model of another program
  ASSIGN_OR_RETURN(const std::vector<run::PeriodFacts> all,
                   run::period_facts(*base, chain, io::join_path(folder, chain::kChainFile)));
  const std::vector<Phase> phases = phases_of(plan, step);
  const auto or_null = [](const auto& value) { return value ? Value(*value) : Value(); };
  for (const run::PeriodFacts& facts : all) {
    Value name;
    for (const Phase& phase : phases)
      if (phase.from + 1 == facts.first_step && phase.to == facts.last_step) name = phase.name;
    RETURN_IF_ERROR(db.insert("phases", {step.name, name, facts.first_step, facts.last_step, facts.changes,
                                         facts.data_hash, or_null(facts.first_rate), or_null(facts.last_rate),
                                         or_null(facts.first_batch), facts.tokens}));
  }
  return {};
}

Status add_run(Database& db, io::FileSystem& fs, const Plan& plan, const Step& step,
               const std::string& folder) {
  const std::string& name = step.name;
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(folder, chain::kChainFile)));
  const chain::GenesisEntry& genesis = chain.genesis();
  RETURN_IF_ERROR(db.insert(
      "runs", {name, chain.head(), chain.last_step(), genesis.program_hash, genesis.data_hash,
               genesis.tokenizer_hash, genesis.numerics_version, chain::data_records(chain).back().hash}));
  if (genesis.fork) RETURN_IF_ERROR(db.insert("forks", {name, step.inputs.at("of"), genesis.fork->step}));
  for (const auto& [path, value] : chain::values_by_path(genesis.config))
    RETURN_IF_ERROR(db.insert("config", {name, path, value}));
  for (const chain::ChainLink& link : chain.links) {
    if (const auto* done = std::get_if<chain::StepEntry>(&link.entry))
      RETURN_IF_ERROR(db.insert("chain", {name, done->step, done->loss, done->tokens, link.hash}));
    if (const auto* saved = std::get_if<chain::CheckpointEntry>(&link.entry))
      RETURN_IF_ERROR(db.insert("checkpoints", {name, saved->step, saved->name}));
  }
  return add_phases(db, fs, plan, step, folder, chain);
}

Status add_sessions(Database& db, io::FileSystem& fs, const std::string& name, const std::string& folder) {
  ASSIGN_OR_RETURN(const chain::RunRecord record,
                   chain::read_record(fs, io::join_path(folder, chain::kRecordFile)));
  int64_t number = 0;
  for (const chain::Session& s : record.sessions) {
    double seconds = 0;
    for (const auto& [use, time] : s.seconds) seconds += time;
    RETURN_IF_ERROR(db.insert(
        "sessions", {name, ++number, s.started, s.ended, s.outcome, s.from_step, s.to_step, seconds, s.cpu}));
  }
  return {};
}

// A run that diverged has "nan" or "inf", and NULL in the record.
Result<Value> loss_value(const std::string& given) {
  for (const char* diverged : {"nan", "-nan", "inf", "-inf"})
    if (given == diverged) return Value();
  ASSIGN_OR_RETURN(const double value, chain::parse_hex_float(given));
  return std::isfinite(value) ? Value(value) : Value();
}

// What an evaluation says of one state.
Status add_evaluated(Database& db, const Step& step, const nlohmann::json& json) {
  const auto number = [](const nlohmann::json& of, const char* key) -> Result<Value> {
    if (!of.contains(key) || !of[key].is_string()) return Value();
    return loss_value(of[key]);
  };
  for (const auto& part : json.value("parts", nlohmann::json::array())) {
    ASSIGN_OR_RETURN(const Value loss, number(part, "loss"));
    ASSIGN_OR_RETURN(const Value bits, number(part, "bits_per_byte"));
    RETURN_IF_ERROR(db.insert("evaluation_parts",
                              {step.name, json["step"].get<int64_t>(), part["component"].get<std::string>(),
                               loss, bits, part["tokens"].get<int64_t>()}));
  }
  ASSIGN_OR_RETURN(const Value loss, number(json, "loss"));
  ASSIGN_OR_RETURN(const Value bits, number(json, "bits_per_byte"));
  return db.insert("evaluations",
                   {step.name, step.inputs.at("of"), json["step"].get<int64_t>(),
                    json["state"].get<std::string>(), loss, bits, json["tokens"].get<int64_t>()});
}

Status add_evaluation(Database& db, io::FileSystem& fs, const Step& step, const std::string& folder) {
  const std::string path = io::join_path(folder, "evaluation.json");
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt(fmt::format("{}: is no evaluation", path));
  for (const auto& earlier : json.value("earlier", nlohmann::json::array()))
    RETURN_IF_ERROR(add_evaluated(db, step, earlier));
  return add_evaluated(db, step, json);
}

// Texts are in it where those of all sources that the run stands on may be shown.
Status add_samples(Database& db, io::FileSystem& fs, const Plan& plan, const Step& step,
                   const std::string& folder) {
  const std::string path = io::join_path(folder, kSamplesFile);
  ASSIGN_OR_RETURN(const std::string list, fs.read_file(path));
  std::string texts;
  const bool shown = texts_may_be_shown(plan, step);
  if (shown) {
    ASSIGN_OR_RETURN(texts, fs.read_file(io::join_path(folder, kTextsFile)));
  }
  const auto json = nlohmann::json::parse(list, nullptr, false);
  if (!json.is_object() || !json["samples"].is_array())
    return corrupt(fmt::format("{}: is no list of samples", path));
  int64_t number = 0;
  size_t begin = 0;
  for (const auto& sample : json["samples"]) {
    Value text;
    if (shown) {
      const size_t end = std::min(texts.find('\n', begin), texts.size());
      const auto line = nlohmann::json::parse(texts.substr(begin, end - begin), nullptr, false);
      if (!line.is_object() || !line["text"].is_string())
        return corrupt(fmt::format("{}: line {} is no text", io::join_path(folder, kTextsFile), number + 1));
      text = line["text"].get<std::string>();
      begin = std::min(end + 1, texts.size());
    }
    RETURN_IF_ERROR(
        db.insert("samples", {step.name, step.inputs.at("of"), json["step"].get<int64_t>(),
                              json["state"].get<std::string>(), ++number, sample["prompt"].get<std::string>(),
                              text, sample["tokens"].get<int64_t>(), sample["sha256"].get<std::string>()}));
  }
  return {};
}

// A row for each member; the run is that of the training which was halved.
Status add_rung(Database& db, io::FileSystem& fs, const Plan& plan, const Step& step,
                const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<RungMember> members, read_rung(fs, folder));
  for (const RungMember& m : members) {
    const Step* part = plan.find(m.run);
    if (part == nullptr || part->kind->name != "train")
      return corrupt(
          fmt::format("{}: {} is no training of the plan", io::join_path(folder, kRungFile), m.run));
    const std::string& run = parts_of_member(plan, *part).back()->name;
    ASSIGN_OR_RETURN(const Value loss, loss_value(m.loss));
    RETURN_IF_ERROR(db.insert("rungs", {step.name, run, m.step, loss, m.place, int64_t{m.kept ? 1 : 0}}));
  }
  return {};
}

Status add_model(Database& db, io::FileSystem& fs, const Step& step, const std::string& folder) {
  const std::string model = step.kind->name == kPublishKind ? io::join_path(folder, kBundleFolder) : folder;
  ASSIGN_OR_RETURN(const auto made, provenance::read_provenance(fs, model));
  if (!made) return corrupt(fmt::format("{}: has no {}", model, provenance::kProvenanceFile));
  int64_t bytes = 0;
  for (const auto& [unused, file] : made->files) bytes += file.bytes;
  ASSIGN_OR_RETURN(const std::string hash,
                   io::file_sha256(fs, io::join_path(model, provenance::kProvenanceFile)));
  const provenance::Source& state = made->sources.front();
  return db.insert("models", {step.name, step.inputs.at("of"), state.step, state.state, made->weights.dtype,
                              std::ssize(made->files), bytes, hash});
}

// The statement of others that a line of the journal has, read again, so that no line says more than was
// signed. Nothing: it is none of this version, or not about this run. An earlier version took such ones, and
// a line cannot be taken out of the journal.
Result<std::optional<attest::ReplayStatement>> statement_of(io::FileSystem& fs, const LabState& state,
                                                            const StepState& s, const Replay& replay) {
  const std::string where = fmt::format("a statement about {} in {}", s.step->name, kJournalFile);
  const auto left_out = [](const std::string& why) {
    log_warning(fmt::format("{}. Its line is left out", why));
    return std::optional<attest::ReplayStatement>();
  };
  Result<attest::ReplayStatement> statement = attest::read_statement(replay.statement, where);
  if (!statement.ok()) return left_out(statement.error().message());
  ASSIGN_OR_RETURN(
      const chain::Chain chain,
      chain::read_chain(fs, io::join_path(state.made.at(s.step->name).folder, chain::kChainFile)));
  if (const Status fits = attest::check_is_of(*statement, chain, where); !fits.ok())
    return left_out(fits.error().message());
  return std::optional<attest::ReplayStatement>(std::move(*statement));
}

// What was done again of each step that is done, by whom. Of a training that went on behind a rung an audit
// of this lab does what is behind it: its parts have rows of their own.
Status add_replays(Database& db, io::FileSystem& fs, const Plan& plan, const LabState& state,
                   const Journal& journal) {
  for (const StepState& s : state.steps) {
    if (s.action != Action::kSkip) continue;
    for (const Replay& replay : journal.replays()) {
      if (replay.fingerprint != s.fingerprint) continue;
      std::string who = replay.by.empty() ? "this lab" : replay.by, verified = replay.verified;
      bool whole = replay.whole;
      if (!replay.statement.empty()) {
        ASSIGN_OR_RETURN(const auto statement, statement_of(fs, state, s, replay));
        if (!statement) continue;
        who = statement->who(), verified = statement->verified(), whole = statement->is_whole();
      } else if (const int64_t behind = began_behind(plan, state.made, *s.step); whole && behind > 0) {
        verified = fmt::format("done again, the steps behind step {}", behind);
      }
      RETURN_IF_ERROR(db.insert("replays", {s.step->name, who, verified, int64_t{whole ? 1 : 0}}));
    }
  }
  return {};
}

}  // namespace

Result<Database> make_record(io::FileSystem& fs, const Plan& plan, const LabState& state, bool measured) {
  ASSIGN_OR_RETURN(Database db, Database::create(measured));
  RETURN_IF_ERROR(db.insert("lab", {plan.name, plan.question, sha256_hex(canonical_plan(plan)),
                                    state.is_done() ? Value(state.hash()) : Value()}));
  if (plan.price) RETURN_IF_ERROR(db.insert("price", {plan.price->machine_hour, plan.price->currency}));
  for (const StepState& s : state.steps) {
    if (s.action != Action::kSkip) continue;
    const Step& step = *s.step;
    const Made& made = state.made.at(step.name);
    RETURN_IF_ERROR(db.insert("steps", {step.name, step.kind->name, s.fingerprint, s.content}));
    // A rung and a fit did without those that are left out.
    for (const auto& [parameter, input] : step.inputs)
      if (state.made.contains(input)) RETURN_IF_ERROR(db.insert("inputs", {step.name, parameter, input}));
    for (const auto& [variable, label] : step.labels)
      RETURN_IF_ERROR(db.insert("variables", {step.name, variable, label}));
    const std::string& kind = step.kind->name;
    if (kind == "source") RETURN_IF_ERROR(add_source(db, plan, s, made));
    if (kind == kCommandKind) RETURN_IF_ERROR(add_outputs(db, fs, step.name, made.folder));
    if (kind == "tokens") RETURN_IF_ERROR(add_store(db, fs, plan, state, step, made.folder));
    // The training that was halved has all of what its parts have.
    const bool is_run = step.kind->makes_run() && !is_part_of_halving(plan, step);
    if (is_run) RETURN_IF_ERROR(add_run(db, fs, plan, step, made.folder));
    if (is_run && measured) RETURN_IF_ERROR(add_sessions(db, fs, step.name, made.folder));
    if (kind == "eval" && !is_part_of_halving(plan, step))
      RETURN_IF_ERROR(add_evaluation(db, fs, step, made.folder));
    if (kind == kRung) RETURN_IF_ERROR(add_rung(db, fs, plan, step, made.folder));
    if (kind == "sample") RETURN_IF_ERROR(add_samples(db, fs, plan, step, made.folder));
    if (step.kind->gives_model()) RETURN_IF_ERROR(add_model(db, fs, step, made.folder));
    if (kind == "fit") RETURN_IF_ERROR(add_fit(db, fs, step.name, made.folder));
  }
  ASSIGN_OR_RETURN(const Registry registry, Registry::open(fs, plan.directory()));
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(fs, plan.directory()));
  RETURN_IF_ERROR(add_replays(db, fs, plan, state, journal));
  RETURN_IF_ERROR(add_forecasts(db, fs, plan, state, registry, journal));
  ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                   find_outcomes(fs, db, plan, state, registry, journal));
  RETURN_IF_ERROR(add_outcomes(db, outcomes, registry));
  return db;
}

Result<Database> make_forecasts(io::FileSystem& fs, const Plan& plan, const LabState& state) {
  ASSIGN_OR_RETURN(Database db, Database::create(/*measured=*/false));
  for (const StepState& s : state.steps)
    if (s.action == Action::kSkip && s.step->kind->name == "eval" && !is_part_of_halving(plan, *s.step))
      RETURN_IF_ERROR(add_evaluation(db, fs, *s.step, state.made.at(s.step->name).folder));
  ASSIGN_OR_RETURN(const Registry registry, Registry::open(fs, plan.directory()));
  ASSIGN_OR_RETURN(const Journal journal, Journal::open(fs, plan.directory()));
  RETURN_IF_ERROR(add_forecasts(db, fs, plan, state, registry, journal));
  return db;
}

Result<LabState> finished_lab(const Context& context, const Plan& plan, bool every_byte) {
  ASSIGN_OR_RETURN(LabState state, look_at(context, plan, every_byte));
  for (const StepState& s : state.steps)
    if (!s.is_settled())
      return invalid_argument(
          fmt::format("{}: step {}: {}{}. `ostro lab run {}` comes first", s.step->where, s.step->name,
                      s.action == Action::kFail ? "" : "is not done: ", s.reason, plan.file));
  return state;
}

}  // namespace ostro::lab
