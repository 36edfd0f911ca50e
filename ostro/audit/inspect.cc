#include "ostro/audit/inspect.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ostro/audit/bare_model.h"
#include "ostro/audit/record/amend.h"
#include "ostro/audit/record/check_checkpoints.h"
#include "ostro/audit/record/witness.h"
#include "ostro/base/log.h"
#include "ostro/base/one_line.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/data_record.h"
#include "ostro/chain/lock.h"
#include "ostro/chain/origin.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"

namespace ostro::audit {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The value may come from a stranger's file.
std::string row(std::string_view name, std::string_view value) {
  return fmt::format("{:<12}{}\n", name, one_line(value));
}

// 1234567 as "1,234,567".
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

const char* kind_name(checkpoint::Kind kind) {
  return kind == checkpoint::Kind::kPermanent ? "permanent" : "temporary";
}

// The checkpoints of a run; `error` is set for one whose manifest cannot be read or is not what the chain
// says.
struct Saved {
  checkpoint::Entry entry;
  checkpoint::Manifest manifest;
  std::string what = "damaged";  // of the error
  std::string error;
};

std::vector<Saved> checkpoints_of(io::FileSystem& fs, const std::vector<checkpoint::Entry>& entries,
                                  const Witness& witness) {
  std::vector<Saved> all;
  for (const checkpoint::Entry& entry : entries) {
    Saved& one = all.emplace_back();
    one.entry = entry;
    Result<checkpoint::Manifest> manifest = checkpoint::read_manifest(fs, entry.path);
    if (!manifest.ok()) {
      one.what = verdict_name(verdict_of(manifest.error(), CheckpointVerdict::kDamaged));
      one.error = manifest.error().message();
      continue;
    }
    one.manifest = std::move(*manifest);
    if (const auto evidence = witness.check_manifest(one.manifest, entry.path); !evidence.ok()) {
      one.what = verdict_name(verdict_of(evidence.error(), CheckpointVerdict::kForged));
      one.error = evidence.error().message();
    }
  }
  return all;
}

// Losses of the first and last step in the chain.
std::vector<const chain::StepEntry*> first_and_last_step(const chain::Chain& chain) {
  std::vector<const chain::StepEntry*> steps;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* step = std::get_if<chain::StepEntry>(&link.entry)) {
      if (steps.size() == 2) steps.pop_back();
      steps.push_back(step);
    }
  return steps;
}

std::vector<const chain::AmendEntry*> amends_of(const chain::Chain& chain) {
  std::vector<const chain::AmendEntry*> amends;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry)) amends.push_back(amend);
  return amends;
}

// The hash of the data since the last amend that added some; "": no amend did.
std::string data_now(const chain::Chain& chain) {
  const std::vector<chain::DataRecord> records = chain::data_records(chain);
  return records.size() > 1 ? records.back().hash : "";
}

OrderedJson run_json(const std::string& path, const Result<chain::RunRecord>& record,
                     const chain::Chain& chain, const std::vector<Saved>& saved) {
  OrderedJson json;
  json["kind"] = "run";
  json["path"] = path;
  json["run_hash"] = chain.head();
  json["step"] = chain.last_step();
  const chain::GenesisEntry& genesis = chain.genesis();
  OrderedJson& links = json["chain"];
  links["entries"] = chain.links.size();
  links["torn_bytes"] = chain.torn_bytes;
  links["numerics_version"] = genesis.numerics_version;
  links["program_hash"] = genesis.program_hash;
  links["data_hash"] = genesis.data_hash;
  if (const std::string now = data_now(chain); !now.empty()) links["data_hash_now"] = now;
  links["tokenizer_hash"] = genesis.tokenizer_hash;
  links["config"] = OrderedJson::parse(genesis.config);
  links["fork"] =
      genesis.fork ? OrderedJson{{"head", genesis.fork->head}, {"step", genesis.fork->step}} : OrderedJson();
  links["format"] = genesis.format;
  links["numerics_options"] = OrderedJson::parse(genesis.numerics_options);
  links["data_roots"] = genesis.data_roots;
  links["maker"] = genesis.maker ? OrderedJson{{"head", genesis.maker->head}, {"state", genesis.maker->state}}
                                 : OrderedJson();
  links["amends"] = OrderedJson::array();
  for (const chain::AmendEntry* amend : amends_of(chain))
    links["amends"].push_back({{"step", amend->step}, {"difference", OrderedJson::parse(amend->difference)}});
  OrderedJson& losses = json["losses"] = OrderedJson::array();
  for (const chain::StepEntry* step : first_and_last_step(chain))
    losses.push_back({{"step", step->step}, {"loss", step->loss}});
  json["checkpoints"] = OrderedJson::array();
  for (const Saved& one : saved) {
    OrderedJson entry{{"step", one.entry.step}, {"path", one.entry.path}};
    if (one.error.empty()) {
      entry["kind"] = kind_name(one.manifest.info.kind);
      entry["name"] = one.manifest.name;
      entry["chain_head"] = one.manifest.info.chain_head;
    } else {
      entry["error"] = one.error;
    }
    json["checkpoints"].push_back(std::move(entry));
  }
  json["record"] = record.ok() ? OrderedJson::parse(chain::record_json(*record))
                               : OrderedJson{{"error", record.error().message()}};
  return json;
}

std::string run_text(const std::string& path, const Result<chain::RunRecord>& record,
                     const chain::Chain& chain, const std::vector<Saved>& saved) {
  const chain::GenesisEntry& genesis = chain.genesis();
  std::string out = row("run", path) + row("run hash", chain.head());
  out += row("chain", fmt::format("{} entries, {} steps done", chain.links.size(), chain.last_step()));
  if (chain.torn_bytes > 0)
    out += row("", fmt::format("and an unfinished line of {} bytes, left by a process that was killed",
                               chain.torn_bytes));
  for (const chain::StepEntry* step : first_and_last_step(chain))
    out += row("loss", fmt::format("{:.4f} at step {}", step->loss, step->step));
  out += row("numerics", genesis.numerics_version) + row("program", genesis.program_hash) +
         row("data", genesis.data_hash) + row("tokenizer", genesis.tokenizer_hash);
  if (const std::string now = data_now(chain); !now.empty()) out += row("data now", now);
  if (genesis.fork)
    out += row("fork of",
               fmt::format("{} at step {}, as its genesis says", genesis.fork->head, genesis.fork->step));
  if (genesis.numerics_options != "{}") out += row("options", genesis.numerics_options);
  for (const auto& [name, root] : genesis.data_roots)
    out += row("data root", root + (name.empty() ? "" : "  " + name));
  if (genesis.maker)
    out += row("model of",
               fmt::format("{}, state {}, as its genesis says", genesis.maker->head, genesis.maker->state));
  for (const chain::AmendEntry* amend : amends_of(chain))
    out += row("amended", fmt::format("after step {}: {}", amend->step, amend_text(amend->difference)));
  for (const Saved& one : saved)
    out += row("checkpoint",
               fmt::format("{}  {}", io::base_name(one.entry.path),
                           one.error.empty() ? fmt::format("{}  state {}", kind_name(one.manifest.info.kind),
                                                           one.manifest.name)
                                             : one.what + ": " + one.error));
  if (!record.ok()) return out + row("record", "damaged: " + record.error().message());
  out += row("record", "run.json, which no hash covers");
  if (!record->parent.empty()) out += row("parent", record->parent);
  for (const chain::Session& session : record->sessions) {
    out += row("session", fmt::format("{} to {}  {}  steps {} to {}", session.started,
                                      session.ended.empty() ? "?" : session.ended, session.outcome,
                                      session.from_step, session.to_step));
    out += row("", fmt::format("{}, {}, commit {}", session.cpu, session.compiler, session.source_commit));
    if (!session.binary_sha256.empty()) out += row("", "binary " + session.binary_sha256);
  }
  for (const chain::CrossCheckFinding& found : record->findings)
    out += row("cross-check", fmt::format("{}  {}", found.time, found.text));
  return out;
}

int64_t elements(const checkpoint::TensorSpec& spec) {
  const int64_t item = checkpoint::dtype_size(spec.dtype);
  return item > 0 ? spec.bytes() / item : 0;
}

// Elements below each first component of the paths ("model", "optimizer").
std::map<std::string, int64_t> counts_of(const checkpoint::Manifest& manifest) {
  std::map<std::string, int64_t> counts;
  for (const checkpoint::TensorSpec& spec : manifest.tensors)
    counts[spec.path.substr(0, spec.path.find('/'))] += elements(spec);
  return counts;
}

OrderedJson checkpoint_json(const std::string& path, const checkpoint::Manifest& manifest) {
  OrderedJson json;
  json["kind"] = "checkpoint";
  json["path"] = path;
  json["step"] = manifest.info.step;
  json["lifetime"] = kind_name(manifest.info.kind);
  json["name"] = manifest.name;
  json["chain_head"] = manifest.info.chain_head;
  json["numerics_version"] = manifest.info.numerics_version;
  json["elements"] = counts_of(manifest);
  json["config"] = manifest.info.config;
  json["tensors"] = OrderedJson::array();
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const checkpoint::TensorSpec& spec = manifest.tensors[i];
    json["tensors"].push_back({{"path", spec.path},
                               {"dtype", spec.dtype},
                               {"axes", spec.axes},
                               {"shape", spec.shape},
                               {"elements", elements(spec)},
                               {"sha256", to_hex(checkpoint::array_hash(manifest.cells[i]))}});
  }
  return json;
}

std::string checkpoint_text(const std::string& path, const checkpoint::Manifest& manifest) {
  std::string out = row("checkpoint", path) + row("step", std::to_string(manifest.info.step)) +
                    row("kind", kind_name(manifest.info.kind)) + row("state", manifest.name) +
                    row("chain head", manifest.info.chain_head) +
                    row("numerics", manifest.info.numerics_version);
  int64_t bytes = 0;
  size_t path_width = 0, type_width = 0;
  for (const checkpoint::TensorSpec& spec : manifest.tensors) {
    bytes += spec.bytes();
    path_width = std::max(path_width, spec.path.size());
    type_width = std::max(type_width, spec.type_str().size());
  }
  out += row("tensors", fmt::format("{}, {} bytes", manifest.tensors.size(), grouped(bytes)));
  for (const auto& [name, count] : counts_of(manifest))
    out += row("", fmt::format("{} elements in {}", grouped(count), name));
  out += "\n";
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    constexpr size_t kShownDigits = 16;  // enough to tell them apart; --json has all
    const checkpoint::TensorSpec& spec = manifest.tensors[i];
    out += fmt::format("{:<{}}  {:<{}}  {:>13}  {}\n", spec.path, path_width, spec.type_str(), type_width,
                       grouped(elements(spec)),
                       to_hex(checkpoint::array_hash(manifest.cells[i])).substr(0, kShownDigits));
  }
  return out;
}

std::string dump(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<chain::Chain> chain_of(io::FileSystem& fs, const std::string& run_directory) {
  Result<chain::Chain> chain = chain::read_chain(fs, io::join_path(run_directory, chain::kChainFile));
  if (!chain.ok() && chain.error().code() == ErrorCode::kNotFound)
    return no_run(fs, run_directory,
                  chain.error().with_context(fmt::format("{} is not a run directory", run_directory)));
  return chain;
}

// A manifest inside a run against its chain.
Status check_manifest(io::FileSystem& fs, const std::string& path, const checkpoint::Manifest& manifest,
                      const InspectOptions& options) {
  const auto above = run_of_checkpoint(fs, path);
  if (!above.ok() && (!options.unchecked || above.error().code() != ErrorCode::kNotFound))
    return above.error();
  const std::optional<std::string> run = above.ok() ? *above : std::nullopt;
  if (run && options.unchecked)
    log_warning(fmt::format("{} is not checked against the chain of {} (--unchecked)", path, *run));
  else if (!run && !options.unchecked) {
    ASSIGN_OR_RETURN(const std::optional<std::string> origin, chain::read_origin(fs, path));  // of an import
    if (!origin) log_warning(fmt::format("{}: there is no chain to check it against", path));
  }
  if (!run || options.unchecked) return {};
  ASSIGN_OR_RETURN(chain::Chain chain, chain_of(fs, *run));
  const Witness witness(std::move(chain), io::join_path(*run, chain::kChainFile), options.models);
  const auto evidence = witness.check_manifest(manifest, path);
  if (evidence.ok()) return {};
  return Error(evidence.error().code(),
               evidence.error().message() + "; to look at it all the same, add --unchecked");
}

}  // namespace

Result<std::string> run_hash(io::FileSystem& fs, const std::string& run_directory) {
  ASSIGN_OR_RETURN(const chain::Chain chain, chain_of(fs, run_directory));
  if (chain.torn_bytes > 0)
    log_warning(fmt::format("{}: its last line is unfinished and does not count", run_directory));
  return chain.head();
}

Result<Inspection> inspect(io::FileSystem& fs, const std::string& path, const InspectOptions& options) {
  ASSIGN_OR_RETURN(const bool is_checkpoint, fs.exists(io::join_path(path, checkpoint::kManifestName)));
  if (is_checkpoint) {
    ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, path));
    RETURN_IF_ERROR(check_manifest(fs, path, manifest, options));
    return Inspection{options.json ? dump(checkpoint_json(path, manifest)) : checkpoint_text(path, manifest)};
  }
  ASSIGN_OR_RETURN(const bool is_run, fs.exists(io::join_path(path, chain::kChainFile)));
  if (!is_run) {
    return no_run(fs, path,
                  not_found(fmt::format("{}: neither a run ({}) nor a checkpoint ({})", path,
                                        chain::kChainFile, checkpoint::kManifestName)));
  }
  // Listed before the chain is read: a run that is under way writes its chain before its checkpoints.
  ASSIGN_OR_RETURN(const std::vector<checkpoint::Entry> entries,
                   checkpoint::list_checkpoints(fs, io::join_path(path, checkpoint::kCheckpointsFolder)));
  ASSIGN_OR_RETURN(const chain::Chain chain, chain_of(fs, path));
  const Witness witness(chain, io::join_path(path, chain::kChainFile), options.models);
  const std::vector<Saved> saved = checkpoints_of(fs, entries, witness);
  Result<chain::RunRecord> record = chain::read_record(fs, io::join_path(path, chain::kRecordFile));
  if (record.ok() && !options.json)
    for (size_t i = 0; i < record->sessions.size(); ++i)
      record->sessions[i].outcome = chain::outcome_now(fs, path, *record, i);
  const bool has_record = record.ok() || record.error().code() == ErrorCode::kNotFound;
  return Inspection{
      options.json ? dump(run_json(path, record, chain, saved)) : run_text(path, record, chain, saved),
      has_record && std::all_of(saved.begin(), saved.end(), [](const Saved& s) { return s.error.empty(); })};
}

}  // namespace ostro::audit
