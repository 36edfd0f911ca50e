#include "ostro/page/facts/run_view.h"

#include "ostro/audit/record/amend.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/chain/lock.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/train/options/shown_config.h"

#include <nlohmann/json.hpp>

namespace ostro::page {
namespace {

using chain::Chain;

// Elements of the model's tensors.
int64_t parameters_of(const checkpoint::Manifest& manifest) {
  int64_t count = 0;
  for (const checkpoint::TensorSpec& spec : manifest.tensors)
    if (const int64_t item = checkpoint::dtype_size(spec.dtype); item > 0 && spec.path.starts_with("model/"))
      count += spec.bytes() / item;
  return count;
}

Status read_checkpoints(io::FileSystem& fs, const std::string& root, RunView& view) {
  ASSIGN_OR_RETURN(const std::vector<checkpoint::Entry> entries, checkpoint::list_checkpoints(fs, root));
  for (const checkpoint::Entry& entry : entries) {
    ViewedCheckpoint one{entry.step, "", "", ""};
    if (const std::string* name = view.chain.find_checkpoint(entry.step)) one.in_chain = *name;
    const Result<checkpoint::Manifest> manifest = checkpoint::read_manifest(fs, entry.path);
    if (manifest.ok()) {
      one.name = manifest->name;
      view.parameters = parameters_of(*manifest);
    } else {
      one.error = manifest.error().message();
    }
    view.checkpoints.push_back(std::move(one));
  }
  return {};
}

// The config that holds at the chain's end.
std::string canonical_now(const train::TrainConfig& options, const Chain& chain, const std::string& where) {
  const auto periods = audit::periods_of(options, chain, where);
  return periods.ok() ? periods->back().config : chain.genesis().config;
}

}  // namespace

std::string RunView::name() const { return config ? config->trainer.id : "run " + chain.head().substr(0, 8); }

std::string RunView::state() const { return outcomes.empty() ? "" : outcomes.back(); }

int64_t RunView::total_steps() const {
  const auto json = nlohmann::json::parse(config_now, nullptr, /*allow_exceptions=*/false);
  const auto steps = json.is_object() ? json.value(nlohmann::json::json_pointer("/trainer/num_train_steps"),
                                                   nlohmann::json())
                                      : nlohmann::json();
  return steps.is_number_integer() ? steps.get<int64_t>() : 0;
}

Result<RunView> read_view(io::FileSystem& fs, const std::string& run_directory,
                          const models::ModelChoices& models, size_t bins) {
  RunView view;
  const std::string chain_path = io::join_path(run_directory, chain::kChainFile);
  ASSIGN_OR_RETURN(view.chain, chain::read_chain(fs, chain_path));
  view.config_now = canonical_now(train::TrainConfig(models), view.chain, chain_path);
  if (auto record = chain::read_record(fs, io::join_path(run_directory, chain::kRecordFile)); record.ok())
    view.record = std::move(*record);
  else
    view.record_error = record.error().message();
  if (view.record)
    for (size_t i = 0; i < view.record->sessions.size(); ++i)
      view.outcomes.push_back(chain::outcome_now(fs, run_directory, *view.record, i));
  const std::string config_path = chain::config_file(fs, run_directory);
  if (auto yaml = fs.read_file(config_path); yaml.ok()) {
    view.config_yaml = std::move(*yaml);
    if (auto config = train::parse_train_config(view.config_yaml, config_path, models); config.ok())
      view.config = std::move(*config);
    view.config_yaml = train::config_to_show(view.config_yaml);
  }
  RETURN_IF_ERROR(read_checkpoints(fs, io::join_path(run_directory, checkpoint::kCheckpointsFolder), view));
  if (auto facts = read_facts(fs, io::join_path(run_directory, kFactsFile)); facts.ok())
    view.facts = std::move(*facts);
  if (auto history = read_history(fs, run_directory, view.chain, bins); history.ok()) {
    view.history = std::move(*history);
  } else {
    view.history = chain_history(view.chain, bins);
    view.metrics_error = history.error().message();
  }
  return view;
}

}  // namespace ostro::page
