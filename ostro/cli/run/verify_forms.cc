#include "ostro/cli/run/verify_forms.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/attest/replay_statement.h"
#include "ostro/audit/findings_json.h"
#include "ostro/audit/record/amend.h"
#include "ostro/cli/run/replay_progress.h"
#include "ostro/config/utf8.h"
#include "ostro/convert/check_model.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/publication/check/check_publication.h"
#include "ostro/publication/parts/manifest.h"
#include "ostro/run/report/console.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

Status refuse(const std::string& what) { return invalid_argument(what); }

Result<bool> has_one_of(io::FileSystem& fs, const std::string& directory,
                        std::initializer_list<const char*> names) {
  for (const char* name : names) {
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(directory, name)));
    if (there) return true;
  }
  return false;
}

Result<bool> is_run(io::FileSystem& fs, const std::string& directory) {
  return has_one_of(fs, directory, {chain::kChainFile, audit::kProgramFile});
}

Result<bool> has_model(io::FileSystem& fs, const std::string& directory) {
  return has_one_of(fs, directory,
                    {provenance::kProvenanceFile, "config.json", "adapter_config.json", "model.safetensors",
                     "model.safetensors.index.json", "adapter_model.safetensors"});
}

// Whether the directory is one of a model, and no run's.
Result<bool> is_model(io::FileSystem& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const bool run, is_run(fs, directory));
  return run ? Result<bool>(false) : has_model(fs, directory);
}

// Adds what was found about a model that lies beside the record of `audit`.
void add_findings(const convert::ModelCheck& model, audit::Audit& audit) {
  std::vector<audit::Finding>& all = audit.findings;
  all.insert(all.end(), model.findings.begin(), model.findings.end());
  audit::sort_worst_first(all);
}

// The audit's text or JSON, and behind it or in its member `model` what was compared of the model.
std::string with_model(const audit::Audit& audit, const std::optional<convert::ModelCheck>& model,
                       bool json) {
  if (!model) return json ? audit::audit_json(audit) : audit::audit_text(audit);
  convert::ModelCheck rest = *model;
  rest.findings.clear();  // they are among the audit's
  if (!json) return audit::audit_text(audit) + convert::model_check_text(rest);
  auto out = nlohmann::ordered_json::parse(audit::audit_json(audit));
  out["model"] = {{"shown", model->shown}, {"not_shown", model->open}};
  return audit::json_line(out);
}

// The options of a check of a bundle or of a published lab.
bundle::BundleOptions options_of(const VerifyAsked& asked) {
  bundle::BundleOptions options = asked.bundle;
  options.run_hash = asked.audit.run_hash;
  return options;
}

// An option that only a replay has a use for; empty: there is none.
std::string replay_option(const VerifyAsked& asked) {
  if (asked.from || asked.to) return asked.from ? "--from_step" : "--to_step";
  if (!asked.audit.replay.cache.empty()) return "--cache";
  if (asked.audit.replay.stored_programs) return "--stored_program";
  return asked.audit.parent.empty() ? "" : "--parent";
}

// An option that the check of a receipt, or of a log of them, has no use for; empty: there is none.
std::string other_option(const VerifyAsked& asked) {
  if (asked.count && asked.receipt.log.empty()) return "--sample";
  if (!asked.leaf.empty()) return "--leaf";
  if (asked.only_price) return "--dry_run";
  if (!asked.model.empty()) return "--model";
  if (asked.as_bundle) return "--bundle";
  if (asked.audit.no_replay) return "--no_replay";
  if (!asked.audit.run_hash.empty() && asked.receipt.log.empty()) return "--run_hash";
  return asked.bundle.time_authority.empty() ? replay_option(asked) : "--time_ca";
}

}  // namespace

// Findings quote files of strangers, which may bring bytes that are no UTF-8.
Verified verified(const std::string& text, int code) { return {config::as_utf8(text), code}; }

int exit_code(audit::Verdict verdict) {
  switch (verdict) {
    case audit::Verdict::kEqual: return kExitOk;
    case audit::Verdict::kIncomplete: return kExitIncomplete;
    case audit::Verdict::kCannotCheck: return kExitCannotCheck;
    case audit::Verdict::kDiffers: return kExitFailed;
  }
  return kExitFailed;
}

Result<std::string> write_statement(const Context& context, const VerifyAsked& asked,
                                    const audit::Audit& audit) {
  const auto& wanted = asked.statement;
  if (wanted.file.empty()) return std::string();
  if (audit.verdict() != audit::Verdict::kEqual) return std::string("statement: none was written\n");
  std::optional<bundle::SigningKey> key;
  if (!wanted.sign.empty()) {
    ASSIGN_OR_RETURN(key, bundle::SigningKey::read(context.fs, wanted.sign));
  }
  ASSIGN_OR_RETURN(const attest::ReplayStatement statement, attest::statement_of(audit, wanted.by));
  RETURN_IF_ERROR(io::write_file_atomically(context.fs, wanted.file,
                                            attest::statement_text(statement, key ? &*key : nullptr)));
  return fmt::format("statement: {}: {}\n", wanted.file, statement.verified());
}

Status check_asked(const VerifyAsked& asked) {
  const auto& statement = asked.statement;
  if (statement.file.empty() != statement.by.empty())
    return refuse("--statement FILE and --by NAME go together; give both");
  if (statement.file.empty() && !statement.sign.empty()) return refuse("--sign: goes with --statement FILE");
  if (!statement.file.empty() &&
      (asked.only_price || asked.audit.no_replay || !asked.leaf.empty() || !asked.model.empty() ||
       asked.as_bundle || !asked.receipt.path.empty() || !asked.receipt.log.empty()))
    return refuse(
        "--statement: is of a replay of a run's steps; leave out --dry_run, --no_replay, --leaf, --model, "
        "--bundle, --receipt and --receipts");
  const bool has_leaf = !asked.leaf.empty();
  if (asked.count && has_leaf) return refuse("--sample and --leaf: use one of them");
  if (asked.count && *asked.count < 1)
    return refuse(fmt::format("--sample {}: at least one step is drawn; use 1 or more", *asked.count));
  if (asked.count && asked.challenge.empty())
    return refuse(
        "--sample: goes with --challenge TEXT, which the maker of the run could not know when the "
        "run hash was published");
  if (!asked.count && !asked.challenge.empty()) return refuse("--challenge: goes with --sample K");
  if (!has_leaf && !asked.rows.empty()) return refuse("--rows: goes with --leaf STEP:LEAF");
  if (!asked.is_spot() && asked.only_price) return refuse("--dry_run: goes with --sample or --leaf");
  if (asked.is_spot() && (asked.from || asked.to || asked.audit.no_replay))
    return refuse(
        "--sample and --leaf say what is replayed; leave out --from_step, --to_step and --no_replay");
  if (has_leaf && !asked.audit.parent.empty())
    return refuse("--leaf replays one leaf of the run itself; leave out --parent");
  if (asked.is_spot() && !asked.model.empty())
    return refuse("--sample and --leaf replay steps of a run; leave out --model");
  if (asked.as_bundle && !asked.model.empty())
    return refuse("--bundle and --model: a bundle has its model in it; leave out --model");
  const bool has_receipt = !asked.receipt.path.empty(), has_log = !asked.receipt.log.empty();
  if (has_log && !asked.count && !asked.receipt.checkpoint.empty())
    return refuse(
        "--checkpoint: with --receipts it goes with --sample N --challenge TEXT, which draw the receipts "
        "whose "
        "answers it chooses again");
  if (has_log && !asked.count && !asked.receipt.openings.empty())
    return refuse("--openings: goes with --sample N --challenge TEXT");
  if (has_log && asked.receipt.checkpoint.empty() &&
      !(asked.receipt.tokenizer.empty() && asked.receipt.adapters.empty()))
    return refuse("--tokenizer and --adapter: go with --checkpoint K");
  if (!has_log && !asked.receipt.openings.empty()) return refuse("--openings: goes with --receipts FILE");
  if (has_receipt && asked.receipt.checkpoint.empty())
    return refuse("--receipt: goes with --checkpoint K, the one that the receipt names");
  if (!has_receipt && !has_log &&
      !(asked.receipt.checkpoint.empty() && asked.receipt.tokenizer.empty() &&
        asked.receipt.adapters.empty()))
    return refuse("--checkpoint, --tokenizer and --adapter: go with --receipt FILE or --receipts FILE");
  if (has_receipt || has_log)
    if (const std::string option = other_option(asked); !option.empty())
      return refuse(fmt::format("{}: is not for a receipt; leave it out", option));
  return {};
}

Result<Verified> verify(const Context& context, VerifyAsked asked) {
  RETURN_IF_ERROR(check_asked(asked));
  if (!asked.receipt.path.empty()) return verify_receipt(context, asked);
  if (!asked.receipt.log.empty()) return verify_receipt_log(context, asked);
  if (asked.model.empty() && !asked.as_bundle && publication::is_publication(context.fs, asked.run))
    return verify_publication(context, asked);
  const bool is_bundle = asked.model.empty() && (asked.as_bundle || bundle::is_bundle(context.fs, asked.run));
  const bool has_seal = !asked.bundle.key.empty() || !asked.bundle.time_authority.empty();
  if (has_seal && (!is_bundle || asked.is_spot()))
    return invalid_argument(
        is_bundle
            ? fmt::format("--key and --time_ca are for the check of the whole bundle: ostro verify {} "
                          "--key KEY; then --sample or --leaf",
                          asked.run)
            : fmt::format("--key and --time_ca are for bundles (ostro publish); {} is none", asked.run));
  if (asked.is_spot()) return verify_spot(context, std::move(asked));
  if (is_bundle && !asked.statement.file.empty())
    return invalid_argument(
        fmt::format("--statement: a bundle is checked without a replay; --sample replays some of its steps, "
                    "ostro verify {} "
                    "all that its states allow",
                    io::join_path(asked.run, bundle::kRecordFolder)));
  if (is_bundle) return verify_bundle(context, asked);
  ASSIGN_OR_RETURN(const bool alone,
                   asked.model.empty() ? is_model(context.fs, asked.run) : Result<bool>(false));
  if (alone && !asked.statement.file.empty())
    return invalid_argument(fmt::format("--statement: {} is no run, so no step is replayed", asked.run));
  if (alone) return verify_model(context, asked, asked.run, "");
  if (!asked.model.empty()) {
    const std::string record = bundle::is_bundle(context.fs, asked.run)
                                   ? io::join_path(asked.run, bundle::kRecordFolder)
                                   : asked.run;
    return verify_model(context, asked, asked.model, record);
  }
  return verify_run(context, std::move(asked));
}

Status use_bundle(io::FileSystem& fs, const std::string& directory, VerifyAsked& asked) {
  ASSIGN_OR_RETURN(const bundle::BundleRecord opened, bundle::open_record(fs, directory));
  asked.run = opened.folder;
  asked.audit.checkpoints = opened.checkpoints;
  asked.audit.parameters_only = !opened.has_moments;
  if (asked.audit.run_hash.empty()) {
    asked.audit.run_hash = opened.head;
    asked.audit.hash_from = "as bundle.json has";
  }
  return {};
}

std::string model_not_shown(const std::string& bundle) {
  return fmt::format(
      "that the bundle's files are those that were signed, and its weights those of the record; ostro "
      "verify {} compares them",
      bundle);
}

Result<Verified> verify_run(const Context& context, VerifyAsked asked) {
  audit::AuditOptions& options = asked.audit;
  const std::string parent = io::parent_path(asked.run);
  const bool in_bundle =
      io::base_name(asked.run) == bundle::kRecordFolder && bundle::is_bundle(context.fs, parent);
  if (in_bundle) RETURN_IF_ERROR(use_bundle(context.fs, parent, asked));
  ASSIGN_OR_RETURN(options.replay.workers, sim_workers());
  options.replay.from_step = asked.from.value_or(0);
  options.replay.to_step = asked.to;
  // A device that is not there is told before anything is read.
  std::unique_ptr<runtime::Engine> engine;
  if (!options.no_replay) {
    ASSIGN_OR_RETURN(engine, context.engine());
  }
  ReplayProgress progress(context.fs, asked.run, run::stderr_columns() > 0 && !asked.json);
  options.replay.on_begin = [&](int64_t first, int64_t last) { progress.begin(first, last); };
  options.replay.on_step = [&](int64_t step, int64_t first, int64_t last) {
    progress(step, first, last);
    if (asked.between_steps) asked.between_steps();
  };
  ASSIGN_OR_RETURN(
      audit::Audit audit,
      audit::audit_run(
          context.fs, [&]() -> Result<std::unique_ptr<runtime::Engine>> { return std::move(engine); },
          asked.run, options, context.models));
  if (in_bundle) audit.not_shown.push_back(model_not_shown(parent));
  // A run's directory that holds a model, too, is believed in neither before both were compared.
  std::optional<convert::ModelCheck> model;
  ASSIGN_OR_RETURN(const bool there, has_model(context.fs, asked.run));
  if (there) {
    ASSIGN_OR_RETURN(model, convert::check_model(context, {asked.run, asked.run, options.run_hash}));
    add_findings(*model, audit);
  }
  ASSIGN_OR_RETURN(const std::string stated, write_statement(context, asked, audit));
  return verified(with_model(audit, model, asked.json) + (asked.json ? "" : stated),
                  exit_code(audit.verdict()));
}

Result<Verified> verify_model(const Context& context, const VerifyAsked& asked, const std::string& model,
                              const std::string& record) {
  if (const std::string option = replay_option(asked); !option.empty())
    return invalid_argument(
        fmt::format("{} is for replaying a run; a model is compared with its record without it", option));
  ASSIGN_OR_RETURN(const convert::ModelCheck check,
                   convert::check_model(context, {model, record, asked.audit.run_hash}));
  return verified(asked.json ? convert::model_check_json(check) : convert::model_check_text(check),
                  exit_code(check.verdict()));
}

Result<Verified> verify_bundle(const Context& context, const VerifyAsked& asked) {
  if (const std::string option = replay_option(asked); !option.empty())
    return invalid_argument(fmt::format(
        "{} is for replaying a run, and a bundle is checked without it: --sample and --leaf replay some of "
        "its steps, ostro verify {} all that its states allow",
        option, io::join_path(asked.run, bundle::kRecordFolder)));
  ASSIGN_OR_RETURN(const auto audit, bundle::check_bundle(context, asked.run, options_of(asked)));
  return verified(asked.json ? bundle::bundle_json(audit) : bundle::bundle_text(audit),
                  exit_code(audit.verdict()));
}

Result<Verified> verify_publication(const Context& context, const VerifyAsked& asked) {
  std::string option = replay_option(asked);
  if (asked.audit.no_replay) option = "--no_replay";
  if (asked.is_spot()) option = asked.leaf.empty() ? "--sample" : "--leaf";
  if (!asked.statement.file.empty()) option = "--statement";
  if (!option.empty())
    return invalid_argument(fmt::format(
        "{} is for replaying a run, and a published lab is checked without it: name one of its bundles, "
        "{}/*",
        option, io::join_path(asked.run, publication::kBundlesFolder)));
  ASSIGN_OR_RETURN(const auto audit, publication::check_publication(context, asked.run, options_of(asked)));
  return verified(asked.json ? bundle::bundle_json(audit) : publication::publication_text(audit),
                  exit_code(audit.verdict()));
}

}  // namespace ostro::cli
