#include "ostro/convert/model_record.h"

#include <fmt/core.h>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/record/witness.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/origin.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"

namespace ostro::convert {
namespace {

using audit::Finding, audit::Verdict;

// Of a run's directory, or of a checkpoint in one. Nothing for an import.
Result<std::string> run_of(io::FileSystem& fs, const std::string& where) {
  ASSIGN_OR_RETURN(const bool has_chain, fs.exists(io::join_path(where, chain::kChainFile)));
  if (has_chain) return where;
  ASSIGN_OR_RETURN(const bool is_checkpoint, fs.exists(io::join_path(where, checkpoint::kManifestName)));
  if (!is_checkpoint) return std::string();
  ASSIGN_OR_RETURN(const auto run, audit::run_of_checkpoint(fs, where));
  return run.value_or("");
}

// Whether there is an import here: it has an origin.json.
Result<bool> is_import_of(io::FileSystem& fs, const std::string& where) {
  const auto found = checkpoint::find_checkpoints(fs, where);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound) return found.error();
  if (!found.ok()) return false;
  ASSIGN_OR_RETURN(const auto origin, chain::read_origin(fs, found->front()));
  return origin.has_value();
}

// Whether the chain is of the run that the provenance names, and has the state; what contradicts it.
void join(const provenance::Source& source, ModelRecord& record, std::vector<Finding>& findings) {
  const chain::Chain& chain = *record.chain;
  const std::string& genesis = chain.links.front().hash;
  const auto other_run = [&](std::string text) {
    record.is_of_model = false;
    findings.push_back({Verdict::kDiffers, std::move(text)});
  };
  if (!source.genesis)
    return other_run(fmt::format(
        "the model is of no run: provenance.json names the state {}, which an import made, and {} is a run",
        source.state, record.where));
  if (*source.genesis != genesis)
    return other_run(
        fmt::format("the model is of another run: provenance.json names the run that begins "
                    "with {}, the chain of {} begins with {}",
                    *source.genesis, record.where, genesis));
  const int64_t step = source.step;
  if (step > chain.last_step())
    return findings.push_back(
        {Verdict::kIncomplete,
         fmt::format("the model is of step {}, but the chain of {} ends at step {}: its end is missing", step,
                     record.where, chain.last_step())});
  const chain::ChainLink* link =
      step == chain::entry_step(chain.genesis()) ? &chain.links.front() : chain.find_step(step);
  if (link == nullptr || source.head != link->hash)
    findings.push_back(
        {Verdict::kDiffers, fmt::format("provenance.json names the chain's entry {} for step {}, {} has {}",
                                        source.head.value_or("null"), step, record.where,
                                        link == nullptr ? "none" : link->hash)});
  const std::string* name = chain.find_checkpoint(step);
  if (name != nullptr && *name != source.state)
    findings.push_back({Verdict::kDiffers,
                        fmt::format("provenance.json names the state {} for step {}, the chain of {} has {}",
                                    source.state, step, record.where, *name)});
}

// config.yaml, programs and amends against the chain; a record of a chain alone has none of them.
Status check_recorded(const Context& context, const std::string& run, std::vector<Finding>& findings) {
  ASSIGN_OR_RETURN(const bool has_config, context.fs.exists(io::join_path(run, chain::kConfigFile)));
  if (!has_config) return {};
  const auto opened = audit::open_recorded(context.fs, run, context.models, /*stored_programs=*/false);
  if (!opened.ok()) findings.push_back(audit::finding_of(opened.error()));
  return {};
}

}  // namespace

Result<ModelRecord> open_record(const Context& context, const std::string& where,
                                const std::optional<provenance::Provenance>& made,
                                std::vector<Finding>& findings) {
  io::FileSystem& fs = context.fs;
  ModelRecord out;
  out.where = where;
  ASSIGN_OR_RETURN(out.run, run_of(fs, where));
  if (!out.run.empty()) {
    auto chain = chain::read_chain(fs, io::join_path(out.run, chain::kChainFile));
    if (!chain.ok()) {
      findings.push_back(audit::finding_of(chain.error()));
      out.is_of_model = false;
      return out;
    }
    out.chain = std::move(*chain);
    RETURN_IF_ERROR(check_recorded(context, out.run, findings));
  }
  const provenance::Source* source = made ? &made->sources.front() : nullptr;
  if (source != nullptr && out.chain) join(*source, out, findings);
  if (source != nullptr && !out.chain && source->genesis) {
    ASSIGN_OR_RETURN(const bool is_import, is_import_of(fs, where));
    out.is_of_model = !is_import;
    findings.push_back(
        is_import ? Finding{Verdict::kDiffers,
                            fmt::format(
                                "the model is of the run that begins with {}, and {} is an import, which is "
                                "of no run",
                                *source->genesis, where)}
                  : Finding{Verdict::kIncomplete,
                            fmt::format("{} has no {}: the model is of the run that begins with {}", where,
                                        chain::kChainFile, *source->genesis)});
    if (is_import) return out;
  }
  // The checkpoint that is named, or the one of the model's step in a run.
  if (source != nullptr && out.run == where && !out.run.empty()) {
    out.step = source->step;
    const std::string path = io::join_path(io::join_path(where, checkpoint::kCheckpointsFolder),
                                           checkpoint::step_directory(out.step));
    ASSIGN_OR_RETURN(const bool there, fs.exists(io::join_path(path, checkpoint::kManifestName)));
    if (there) out.checkpoint = path;
    return out;
  }
  const auto found = checkpoint::find_checkpoints(fs, where);
  if (!found.ok() && found.error().code() != ErrorCode::kNotFound) return found.error();
  if (!found.ok()) return out;
  out.checkpoint = found->front();
  out.step = checkpoint::step_of_directory(io::base_name(io::clean_path(out.checkpoint))).value_or(0);
  return out;
}

}  // namespace ostro::convert
