#include "ostro/audit/record/traced_programs.h"

#include <fmt/format.h>

#include "ostro/trace/error.h"
#include "ostro/train/programs/run_model.h"

namespace ostro::audit {
namespace {

// The session in which the period began; null without a record of it.
const chain::Session* session_of(const chain::RunRecord& record, const Period& period) {
  const chain::Session* found = nullptr;
  for (const chain::Session& session : record.sessions)
    if (session.from_step <= period.first) found = &session;
  return found;
}

Status check_arrays(const ir::Program& stored, const ir::Program& traced, const std::string& where) {
  const auto differ = [&](const char* what, size_t at) {
    return Status(unsupported(fmt::format("{}: the program \"{}\" has another {} {} than this version traces",
                                          where, traced.name, what, at)));
  };
  const auto compare = [&](const char* what, const auto& its, const auto& ours, const auto& its_names,
                           const auto& our_names) {
    if (its.size() != ours.size() || its_names != our_names) return differ(what, its.size());
    for (size_t i = 0; i < its.size(); ++i)
      if (stored.body.shape(its[i]) != traced.body.shape(ours[i])) return differ(what, i);
    return Status();
  };
  RETURN_IF_ERROR(
      compare("parameter", stored.body.params, traced.body.params, stored.param_names, traced.param_names));
  return compare("result", stored.body.results, traced.body.results, stored.result_names,
                 traced.result_names);
}

}  // namespace

Result<train::CanonicalPrograms> traced_programs(const train::TrainConfig& config, int64_t vocab) {
  try {
    const models::ModelFunctions model = train::run_model(config, vocab);
    RETURN_IF_ERROR(train::check_vocabulary(model, vocab));
    return train::make_programs(config, model);
  } catch (const TraceError& e) {
    return invalid_argument(e.what());
  }
}

bool is_of_this_program(const chain::RunRecord& record, const Period& period) {
  const chain::Session* session = session_of(record, period);
  if (session == nullptr) return false;
  const std::string binary = chain::binary_sha256(), commit = chain::source_commit();
  if (!binary.empty() && session->binary_sha256 == binary) return true;
  return session->source_commit == commit && commit != "unknown" && !commit.ends_with("-dirty");
}

Status check_traced(const train::CanonicalPrograms& traced, const Period& period,
                    const std::optional<chain::RunRecord>& record) {
  const std::string hash = train::programs_hash(traced);
  if (hash == period.program_hash) return {};
  const std::string what = fmt::format(
      "the configuration{} gives other programs than the chain names: hash {} here, {} in the chain",
      period.first > 0 ? fmt::format(" after step {}", period.first) : "", hash, period.program_hash);
  if (record && is_of_this_program(*record, period))
    return corrupt(what +
                   "; run.json says that this very program wrote the run, so configuration and "
                   "programs are of two runs");
  const chain::Session* session = record ? session_of(*record, period) : nullptr;
  const std::string version =
      session == nullptr || session->source_commit.empty()
          ? "the version that wrote the run"
          : fmt::format("the version of commit {}, which wrote the run (run.json),", session->source_commit);
  return unsupported(fmt::format(
      "{}. Either the configuration was changed, or versions of Ostro trace it differently (this is commit "
      "{}); {} can tell. --stored_program replays program.ir all the same",
      what, chain::source_commit(), version));
}

Status check_same_arrays(const train::CanonicalPrograms& stored, const train::CanonicalPrograms& traced,
                         const std::string& where) {
  RETURN_IF_ERROR(check_arrays(stored.init, traced.init, where));
  RETURN_IF_ERROR(check_arrays(stored.leaf, traced.leaf, where));
  RETURN_IF_ERROR(check_arrays(stored.update, traced.update, where));
  if (stored.reference.has_value() != traced.reference.has_value())
    return unsupported(fmt::format("{}: only one of stored and traced programs has a reference", where));
  return stored.reference ? check_arrays(*stored.reference, *traced.reference, where) : Status();
}

}  // namespace ostro::audit
