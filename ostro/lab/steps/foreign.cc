// Outputs that were made outside of the lab: runs and token stores.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/sample/draw.h"
#include "ostro/batches/loader/stores_hash.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/data_record.h"
#include "ostro/config/config.h"
#include "ostro/data/store/store_verify.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/prepare/store/encode_again.h"
#include "ostro/prepare/tokenizer/session.h"

namespace ostro::lab {
namespace {

using nlohmann::json;

Error is_other(const std::string& folder, const char* what, const std::string& has,
               const std::string& wanted) {
  return invalid_argument(
      fmt::format("{}: {} is {} there, and {} is what the step is to have; `ostro lab run` does the step",
                  folder, what, has, wanted));
}

// The data that the chain names, at its beginning and by its amends, are what the stores of the step hold.
Status check_data(const json& inputs, const chain::Chain& chain, const std::string& folder) {
  for (const chain::DataRecord& record : chain::data_records(chain)) {
    std::map<std::string, std::string> hashes;
    if (inputs.contains("data")) {
      hashes[""] = inputs["data"];
    } else {
      for (const std::string& name : record.components) {
        if (!inputs.contains("data." + name))
          return invalid_argument(
              fmt::format("{}: has the component \"{}\" after step {}, and the step has none of this name",
                          folder, name, record.step));
        hashes[name] = inputs["data." + name];
      }
    }
    const std::string wanted = batches::stores_hash(hashes);
    if (record.hash != wanted) return is_other(folder, "the hash of its data", record.hash, wanted);
  }
  return {};
}

// The amends of the chain are those of the step's phases.
Status check_amends(const json& wanted, const chain::Chain& chain, const std::string& folder) {
  size_t number = 0;
  for (const chain::ChainLink& link : chain.links) {
    const auto* amend = std::get_if<chain::AmendEntry>(&link.entry);
    if (amend == nullptr) continue;
    if (number >= wanted.size())
      return invalid_argument(
          fmt::format("{}: was amended after step {}, and the step has {}", folder, amend->step,
                      wanted.empty() ? "one configuration" : fmt::format("{} phases", wanted.size() + 1)));
    const json& phase = wanted[number++];
    if (amend->step != phase["step"])
      return is_other(folder, "the step of an amend", std::to_string(amend->step), phase["step"].dump());
    json difference = json::parse(amend->difference);
    for (const char* of_data : {"data", "data_roots"})  // check_data() compares these
      if (!phase["difference"].contains(of_data)) difference.erase(of_data);
    if (difference != phase["difference"]) {
      const auto all = chain::object_differences(difference.dump(), phase["difference"].dump());
      return invalid_argument(fmt::format("{}: its amend after step {} is another one: {}", folder,
                                          amend->step,
                                          all.empty() ? "its keys are in another order" : all[0]));
    }
  }
  if (number == wanted.size()) return {};
  return invalid_argument(
      fmt::format("{}: was amended {} times, and the step has {} phases", folder, number, wanted.size() + 1));
}

Status check_run(const Work& work, const json& recipe, const std::string& folder) {
  if (recipe["parameters"].contains("until"))
    return invalid_argument(
        "the step is a training that ends at a rung, and whole runs can be adopted: that of the training "
        "which was halved, when its rungs have kept it");
  ASSIGN_OR_RETURN(const chain::Chain chain,
                   chain::read_chain(work.context.fs, io::join_path(folder, chain::kChainFile)));
  const chain::GenesisEntry& genesis = chain.genesis();
  const json& wanted = recipe["parameters"];
  const std::string config = wanted["config"].dump();
  if (json::parse(genesis.config) != wanted["config"]) {
    const auto all = chain::object_differences(genesis.config, config);
    return invalid_argument(fmt::format("{}: has another configuration than the step: {}", folder,
                                        all.empty() ? "its keys are in another order" : all[0]));
  }
  const std::string program = wanted["program"];
  if (genesis.program_hash != program)
    return is_other(folder, "the hash of its programs", genesis.program_hash, program);
  if (genesis.fork) return invalid_argument(fmt::format("{}: is a fork, and the step is none", folder));
  RETURN_IF_ERROR(check_amends(wanted.value("amends", json::array()), chain, folder));
  RETURN_IF_ERROR(check_data(recipe["inputs"], chain, folder));
  if (const auto length = audit::length_of(chain); length && *length != chain.last_step())
    return is_other(folder, "its last step", std::to_string(chain.last_step()), std::to_string(*length));
  return {};
}

Status check_store(const Work& work, const std::string& folder) {
  ASSIGN_OR_RETURN(const data::StoreLedger ledger, data::read_ledger(work.context.fs, folder));
  if (ledger.parts.empty() && ledger.levanter_cache.empty()) return {};
  return invalid_argument(fmt::format(
      "{}: its rows are in other folders; only a store that has them itself can be adopted", folder));
}

Result<std::string> verify_run(const Work& work, const std::string& folder, const std::string& challenge,
                               int64_t count) {
  ASSIGN_OR_RETURN(const train::TrainConfig config, training_config(work, folder));
  ASSIGN_OR_RETURN(const chain::Chain chain,
                   chain::read_chain(work.context.fs, io::join_path(folder, chain::kChainFile)));
  const Context context = work.context.on(config.trainer.device);
  audit::AuditOptions options;
  // The stores of components are where the configuration has them (place_foreign).
  if (work.step.inputs.contains("data")) options.replay.cache = work.made_by(work.input("data")).folder;
  options.sample.count = std::min(count, chain.last_step());
  options.sample.challenge = challenge;
  ASSIGN_OR_RETURN(const audit::Audit found,
                   audit::audit_run(context.fs, context.engine, folder, options, context.models));
  if (found.verdict() != audit::Verdict::kEqual || !found.sample)
    return corrupt(fmt::format("the run is not what its record says: {}", audit::audit_text(found)));
  return fmt::format("steps {} of {} replayed, drawn by {}", fmt::join(found.sample->plan.drawn, ", "),
                     chain.last_step(), challenge);
}

Result<std::string> verify_tokens(const Work& work, const std::string& folder, const std::string& challenge,
                                  int64_t count) {
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(const data::StoreReport report,
                   data::verify_arrays(fs, folder, {.threads = work.services.build.threads_or_all()}));
  for (const data::VerifiedArrayReport& array : report.arrays) RETURN_IF_ERROR(array.status);
  ASSIGN_OR_RETURN(const data::DataOptions options, tokens_options(work, folder));
  ASSIGN_OR_RETURN(const prepare::Session session,
                   prepare::open_session(fs, options, /*seq_len=*/1, "",
                                         prepare::MissingTokenizer::kIsAnError, work.services.build));
  ASSIGN_OR_RETURN(const auto store, data::TokenStore::open(fs, folder));
  const int64_t all =
      store->split(data::Split::kTrain).rows() + store->split(data::Split::kValidation).rows();
  ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                   audit::drawn_steps(store->hash(), challenge, 1, all, std::min(count, all)));
  for (int64_t& row : rows) --row;
  ASSIGN_OR_RETURN(const std::vector<std::string> places,
                   prepare::encode_again(fs, session.options, *store, session.tokenizer, rows));
  return fmt::format("all arrays read, and of {} documents these encoded again: {}; drawn by {}", all,
                     fmt::join(places, ", "), challenge);
}

bool is_run(const Work& work) { return work.step.kind->makes_run(); }

}  // namespace

Status check_foreign(const Work& work, const std::string& recipe, const std::string& folder) {
  return is_run(work) ? check_run(work, json::parse(recipe), folder) : check_store(work, folder);
}

Status place_foreign(const Work& work, const std::string& folder) {
  if (!is_run(work)) return {};
  ASSIGN_OR_RETURN(const train::TrainConfig config, training_config(work, folder));
  return work.context.fs.write_file(io::join_path(folder, chain::kConfigFile), config::resolved_yaml(config));
}

Result<std::string> verify_foreign(const Work& work, const std::string& folder, const std::string& challenge,
                                   int64_t count) {
  return is_run(work) ? verify_run(work, folder, challenge, count)
                      : verify_tokens(work, folder, challenge, count);
}

}  // namespace ostro::lab
