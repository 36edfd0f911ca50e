// ostro verify --sample and --leaf.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ostro/audit/findings_json.h"
#include "ostro/chain/canonical.h"
#include "ostro/cli/run/replay_progress.h"
#include "ostro/cli/run/verify_forms.h"
#include "ostro/io/files/path.h"
#include "ostro/leaf_audit/leaf_audit.h"
#include "ostro/run/report/console.h"
#include "ostro/shell/shared/sim_workers.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

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
Result<Verified> price_of_sample(const Context& context, runtime::Engine& engine, const VerifyAsked& asked) {
  RETURN_IF_ERROR(chain::check_run_hash(asked.audit.run_hash));
  ASSIGN_OR_RETURN(const chain::Chain chain,
                   chain::read_chain(context.fs, io::join_path(asked.run, chain::kChainFile)));
  std::optional<audit::Finding> wrong =
      audit::hash_finding(chain, asked.audit.run_hash, asked.audit.hash_from);
  auto sample = wrong ? Result<audit::Sample>(audit::Sample())
                      : audit::price_sample(context.fs, engine, asked.run, asked.audit.replay,
                                            asked.audit.sample, context.models);
  if (!sample.ok() && sample.error().code() == ErrorCode::kInvalidArgument) return sample.error();
  if (!sample.ok()) wrong = audit::finding_of_replay(context.fs, asked.run, chain, sample.error());
  if (wrong)
    return verified(asked.json ? audit::json_line(audit::findings_json(wrong->verdict, {*wrong}))
                               : audit::finding_text(*wrong) + "\n",
                    exit_code(wrong->verdict));
  return verified(asked.json ? audit::sample_json(*sample) + "\n" : audit::price_text(*sample), kExitOk);
}

// `bundle`: the one that the run is the record of; empty: none.
Result<Verified> verify_sample(const Context& context, std::unique_ptr<runtime::Engine> engine,
                               VerifyAsked asked, const std::string& bundle) {
  ReplayProgress progress(context.fs, asked.run, run::stderr_columns() > 0 && !asked.json);
  audit::SampleRequest& sample = asked.audit.sample;
  sample.count = *asked.count;
  sample.challenge = asked.challenge;
  sample.on_step = [&](int64_t done, int64_t all) {
    progress.count(done, all);
    if (asked.between_steps) asked.between_steps();
  };
  if (!asked.json)
    sample.on_priced = [](const audit::Sample& priced) {
      fmt::print(stderr, "{}", audit::price_text(priced));
    };
  if (asked.only_price) return price_of_sample(context, *engine, asked);
  ASSIGN_OR_RETURN(
      audit::Audit audit,
      audit::audit_run(
          context.fs, [&]() -> Result<std::unique_ptr<runtime::Engine>> { return std::move(engine); },
          asked.run, asked.audit, context.models));
  if (!bundle.empty()) audit.not_shown.push_back(model_not_shown(bundle));
  ASSIGN_OR_RETURN(const std::string stated, write_statement(context, asked, audit));
  return verified(asked.json ? audit::audit_json(audit) : audit::audit_text(audit) + stated,
                  exit_code(audit.verdict()));
}

Result<Verified> verify_leaf(const Context& context, runtime::Engine& engine, const VerifyAsked& asked) {
  ASSIGN_OR_RETURN(const auto place, step_and_leaf(asked.leaf));
  leaf_audit::LeafRequest request{place.first,      place.second,         asked.rows,           {},
                                  asked.only_price, asked.audit.run_hash, asked.audit.hash_from};
  if (!asked.json && !asked.only_price)
    request.on_priced = [](const leaf_audit::LeafPrice& price) {
      fmt::print(stderr, "{}", leaf_audit::leaf_price_text(price));
    };
  ASSIGN_OR_RETURN(const auto leaf, leaf_audit::audit_leaf(context.fs, engine, asked.run, asked.audit.replay,
                                                           request, context.models));
  const bool priced = asked.only_price && leaf.findings.empty();
  return verified(asked.json ? leaf_audit::leaf_json(leaf)
                  : priced   ? leaf_audit::leaf_price_text(leaf.price)
                             : leaf_audit::leaf_text(leaf),
                  exit_code(leaf.verdict()));
}

}  // namespace

Result<Verified> verify_spot(const Context& context, VerifyAsked asked) {
  std::string bundle;
  if (asked.as_bundle || bundle::is_bundle(context.fs, asked.run)) {
    bundle = asked.run;
    RETURN_IF_ERROR(use_bundle(context.fs, bundle, asked));
  }
  ASSIGN_OR_RETURN(asked.audit.replay.workers, sim_workers());
  ASSIGN_OR_RETURN(auto engine, context.engine());
  if (!asked.leaf.empty()) return verify_leaf(context, *engine, asked);
  return verify_sample(context, std::move(engine), std::move(asked), bundle);
}

}  // namespace ostro::cli
