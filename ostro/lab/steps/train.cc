// The step train.
#include <fmt/format.h>

#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"
#include "ostro/numerics/functions.h"
#include "ostro/train/programs/run_flops.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"

namespace ostro::lab {
namespace {

// What the plan decides, so that no configuration may: where data come from, and where the run is.
constexpr const char* kFromThePlan[] = {
    "data.train_urls",        "data.validation_urls", "data.validation_fraction",
    "data.cache_dir",         "data.tokenizer",       "data.vocab_size",
    "data.text_key",          "data.components",      "data.rows",
    "data.enforce_bos",       "data.enforce_eos",     "data.id_type",
    "data.on_bad_row",        "trainer.id",           "trainer.log_dir",
    "trainer.initialize_from"};

// What `ostro train` does beside its run, and a lab does not.
constexpr const char* kOfOneTraining[] = {"trainer.metrics_listen",     "trainer.alert_command",
                                          "trainer.alert_stall_factor", "trainer.alert_disk_free",
                                          "trainer.notice_file",        "trainer.notice_command",
                                          "trainer.notice_grace"};
constexpr const char* kNotWatched =
    "nothing watches the trainings of a lab, nor waits for notices; leave it out (SIGTERM makes `ostro lab "
    "run` save and end)";

const config::Node* find_option(const config::Node& tree, const std::string& path) {
  const size_t dot = path.find('.');
  const config::Node* section = tree.find(path.substr(0, dot));
  return section == nullptr ? nullptr : section->find(path.substr(dot + 1));
}

Status check_tree(const config::Node& tree) {
  for (const std::string path : kFromThePlan)
    if (const config::Node* given = find_option(tree, path))
      return invalid_argument(
          fmt::format("{}: {}: follows from the plan's steps; leave it out", given->where, path));
  for (const std::string path : kOfOneTraining)
    if (const config::Node* given = find_option(tree, path))
      return invalid_argument(fmt::format("{}: {}: {}", given->where, path, kNotWatched));
  return {};
}

std::string quoted_text(const std::string& text) { return config::flow_text(config::Node::string(text)); }

// A schedule of fewer steps says nothing of a longer one.
constexpr int64_t kLeastBudgetSteps = 20;

// The steps of a sanity run for a training with a budget: fewer than 21, and more for a larger budget, so
// that a fit still has runs of different lengths.
int64_t sanity_steps(int64_t steps) {
  const auto shortened = static_cast<int64_t>(1.2 * numerics::log_f64(static_cast<double>(steps)));
  return std::min(shortened, kSanitySteps);
}

// The programs of a training, and the model that they are of.
struct Traced {
  models::ModelFunctions model;
  train::CanonicalPrograms programs;
};
Result<Traced> trace_training(const Work& work, const train::TrainConfig& config) {
  ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(work.context.fs, config));
  models::ModelFunctions model = train::run_model(config, tokenizer->vocab_size());
  RETURN_IF_ERROR(train::check_run_model(config, model));
  RETURN_IF_ERROR(train::check_vocabulary(model, tokenizer->vocab_size()));
  ASSIGN_OR_RETURN(train::CanonicalPrograms programs, train::make_programs(config, model));
  return Traced{std::move(model), std::move(programs)};
}

// The number of steps that the budget of a training allows.
Result<int64_t> budget_steps(const Work& work, const train::TrainConfig& config, const config::Node& flops) {
  if (work.parameters().find("set")->find("trainer.num_train_steps") != nullptr)
    return invalid_argument("trainer.num_train_steps: follows from flops; leave out one of them");
  double budget = 0;
  RETURN_IF_ERROR(config::read_value(flops, "flops", &budget));
  ASSIGN_OR_RETURN(const Traced traced, trace_training(work, config));
  const int64_t steps = train::steps_within(traced.programs, config, budget);
  if (steps < kLeastBudgetSteps)
    return invalid_argument(fmt::format(
        "flops: {:.4g} are {} steps of this model, which takes {:.4g} for {} steps; give it at least that, "
        "or leave "
        "the size out of this budget",
        budget, steps, train::run_flops(traced.programs, config, kLeastBudgetSteps), kLeastBudgetSteps));
  if (steps >= train::kMostStepsWithin)
    return invalid_argument(fmt::format(
        "flops: {:.4g} are more than {} steps of this model; give it fewer, or take a larger size", budget,
        train::kMostStepsWithin));
  return work.plan.sanity ? sanity_steps(steps) : steps;
}

// Whether a parameter is a table of tokens or positions, or the head.
bool is_embedding(const std::string& path) {
  for (const char* table : {"model/embedding/", "model/position_embedding/", "model/head/"})
    if (path.starts_with(table)) return true;
  return false;
}

}  // namespace

Status check_left_to_plan(const std::vector<config::Override>& options) {
  const auto sets = [](const config::Override& option, const std::string& path) {
    return option.path == path || path.starts_with(option.path + ".") || option.path.starts_with(path + ".");
  };
  for (const config::Override& option : options) {
    for (const std::string path : kFromThePlan)
      if (sets(option, path))
        return invalid_argument(fmt::format("{}: {} follows from the plan's steps; set options by themselves",
                                            option.path, path));
    for (const std::string path : kOfOneTraining)
      if (sets(option, path))
        return invalid_argument(fmt::format("{}: {}: {}", option.path, path, kNotWatched));
  }
  return {};
}

std::vector<config::Override> options_of(const Work& work) {
  std::vector<config::Override> out;
  const config::Node parameters = work.parameters();
  for (const config::Node& option : parameters.find("set")->items)
    out.push_back({option.key, config::flow_text(option)});
  return out;
}

Result<train::TrainConfig> training_config(const Work& work, const std::string& folder) {
  if (work.step.kind->name == kForkKind) return fork_config(work, folder);
  ASSIGN_OR_RETURN(std::vector<train::TrainConfig> configs, training_configs(work, folder));
  return std::move(configs.back());
}

Result<train::TrainConfig> config_with(const Work& work, const std::string& folder,
                                       const PhaseOptions* phase) {
  const std::string file = io::join_path(work.plan.folder, text_of(work.step, "config"));
  std::vector<config::Override> overrides = options_of(work);
  if (phase != nullptr) overrides.insert(overrides.end(), phase->options.begin(), phase->options.end());
  config::Mistakes mistakes;
  ASSIGN_OR_RETURN(const config::Node tree, config::load_tree(file, overrides, &mistakes));
  RETURN_IF_ERROR(mistakes.status());
  RETURN_IF_ERROR(check_tree(tree));
  RETURN_IF_ERROR(set_data(work, overrides, phase == nullptr ? std::set<std::string>() : phase->later));
  const auto set = [&](const char* path, const std::string& value) { overrides.push_back({path, value}); };
  const config::Node parameters = work.parameters();
  const config::Node* flops = parameters.find("flops");
  if (phase == nullptr && (flops != nullptr || work.plan.sanity)) {
    ASSIGN_OR_RETURN(const train::TrainConfig whole,
                     train::load_train_config(file, overrides, work.context.models));
    int64_t steps = std::min(whole.trainer.num_train_steps, kSanitySteps);
    if (flops != nullptr) {
      ASSIGN_OR_RETURN(steps, budget_steps(work, whole, *flops));
    }
    set("trainer.num_train_steps", std::to_string(steps));
    // The rungs of a sanity run are at its first steps.
    if (work.plan.sanity && is_halved(work.step)) set("trainer.checkpointer.keep", "[{every: 1}]");
  }
  if (!folder.empty()) {
    set("trainer.log_dir", quoted_text(io::parent_path(folder)));
    set("trainer.id", quoted_text(io::base_name(folder)));
  }
  return train::load_train_config(file, overrides, work.context.models);
}

Result<std::string> programs_of(const Work& work, const train::TrainConfig& config) {
  ASSIGN_OR_RETURN(const Traced traced, trace_training(work, config));
  return train::programs_hash(traced.programs);
}

Result<RunSize> run_size(const Work& work) {
  if (work.step.kind->name == kForkKind)
    return invalid_argument(fmt::format(
        "{} is a fork, and a fit is of runs that were trained from their first step on", work.step.name));
  if (work.step.parameters.find("phases") != nullptr)
    return invalid_argument(
        fmt::format("{} has phases, and a fit is of runs with one configuration", work.step.name));
  ASSIGN_OR_RETURN(const train::TrainConfig config, training_config(work, ""));
  ASSIGN_OR_RETURN(const Traced traced, trace_training(work, config));
  RunSize out;
  for (size_t k = 0; k < traced.model.paths.size(); ++k) {
    const int64_t count = traced.model.shapes[k].count();
    out.parameters += count;
    out.without_embeddings += is_embedding(traced.model.paths[k]) ? 0 : count;
  }
  out.tokens = train::tokens_of(config, config.trainer.num_train_steps);
  if (out.tokens == INT64_MAX)
    return invalid_argument(fmt::format("{}: its {} steps have more tokens than can be counted",
                                        work.step.name, config.trainer.num_train_steps));
  out.flops = train::run_flops(traced.programs, config, config.trainer.num_train_steps);
  return out;
}

}  // namespace ostro::lab
