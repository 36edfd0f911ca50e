#include "ostro/run/amend/amend_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ostro/chain/data_record.h"
#include "ostro/run/loop/begin.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/run_data.h"

namespace ostro::run {
namespace {

// A line for each member of the difference, and for each component of `stores` that is new.
std::string changes_text(const std::string& difference, const batches::DataSet& stores,
                         const std::set<std::string>& held) {
  std::string out;
  const auto changes = nlohmann::json::parse(difference);
  for (const auto& [path, change] : changes.items())
    if (const std::string text = audit::amend_text(nlohmann::json{{path, change}}.dump()); !text.empty())
      out += fmt::format("  {}\n", text);
  for (const batches::DataSet::Part& part : stores.parts()) {
    if (held.contains(part.component.name)) continue;
    const data::TokenStream& train = part.store->split(data::Split::kTrain);
    out += fmt::format("  {} is added: {} tokens in {} documents of training text\n", part.component.key,
                       train.tokens(), train.rows());
  }
  return out;
}

}  // namespace

Result<AmendPlan> plan_amend(io::FileSystem& fs, const train::TrainConfig& given,
                             const data::BuildSettings& build) {
  OpenedRun run{given, train::run_directory(given)};
  const std::string path = run.file(chain::kChainFile);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists)
    return not_found(fmt::format("{} holds no run to amend; leave out --amend to begin one", run.directory));
  ASSIGN_OR_RETURN(const chain::Chain beginning, chain::read_chain_until(fs, path, 0));
  run.genesis = beginning.genesis();
  RETURN_IF_ERROR(check_fixed_options(run.directory, run.genesis->config, given));
  ASSIGN_OR_RETURN(const train::TrainConfig made,
                   train::config_of_added_data(fs, run.directory, run.genesis, given));
  ASSIGN_OR_RETURN(run.data, train::open_data(fs, made, build));
  const int64_t vocab = run.data.tokenizer->vocab_size();
  run.model = train::run_model(given, vocab);
  RETURN_IF_ERROR(train::check_vocabulary(run.model, vocab));
  ASSIGN_OR_RETURN(run.from, plan_resume(fs, run.directory, *run.genesis, given, run.data, run.model,
                                         {.amend = true, .before = {}}));
  run.config = run.from->config;
  ASSIGN_OR_RETURN(run.programs, train::make_programs(run.config, run.model));
  ASSIGN_OR_RETURN(const audit::Period now, amended_period(run));
  const std::string difference = audit::amend_difference(run.config, run.from->period, now);
  AmendPlan plan{run.from->step, run.config, ""};
  if (difference == "{}")
    plan.text = fmt::format("amend: nothing differs from the run in {}\n", run.directory);
  else
    plan.text = fmt::format(
        "amend of {} after step {}, its newest checkpoint:\n{}", run.directory, plan.step,
        changes_text(difference, *run.data.stores, chain::component_names(run.from->period.config)));
  return plan;
}

}  // namespace ostro::run
