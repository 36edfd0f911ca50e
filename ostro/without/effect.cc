#include "ostro/without/effect.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/io/files/path.h"
#include "ostro/run/fork/fork.h"
#include "ostro/without/rebuild.h"

namespace ostro::without {
namespace {

std::string flow_list(const std::vector<std::string>& texts) {
  std::vector<config::Node> items;
  for (const std::string& text : texts) items.push_back(config::Node::string(text));
  return config::flow_text(config::Node::list(std::move(items)));
}

// The options of the run without the documents. What the run left out itself stays out.
Result<std::vector<config::Override>> options_without(const Context& context, const WithoutRequest& request,
                                                      const RemovalPlan& plan, const Removal& removal) {
  if (request.rebuild)
    return rebuild_options(context, request.run, plan.config, removal, removal.folder + ".store");
  std::vector<std::string> without = plan.config.data.without;
  without.insert(without.end(), removal.documents.begin(), removal.documents.end());
  return std::vector<config::Override>{
      {"data.without", flow_list(without)},
      {"data.without_as", request.as == data::WithoutAs::kBlank ? "blank" : "mask"}};
}

// The configuration with which a state is measured: on the held-out texts that RUN has, also where the stores
// were made again.
train::TrainConfig measured_config(const RemovalPlan& plan, const train::TrainConfig& config) {
  train::TrainConfig out = config;
  out.data = plan.config.data;
  return out;
}

// The configuration of a run in `folder`, from its first step on: that of the plan's run with these options.
Result<train::TrainConfig> config_from_start(const Context& context, const RemovalPlan& plan,
                                             const std::vector<config::Override>& overrides,
                                             const std::string& folder) {
  config::Node tree = config::write_value(plan.config, config::Write::kAll);
  for (const config::Override& option : overrides) RETURN_IF_ERROR(config::apply_override(option, &tree));
  train::TrainConfig config(context.models);
  RETURN_IF_ERROR(config::read_and_resolve(tree, &config));
  config.trainer.log_dir = io::parent_path(folder);
  config.trainer.id = io::base_name(folder);
  return config;
}

// The configuration of the run without: of a fork, which is begun here, or of a run from step 0.
Result<train::TrainConfig> begin_without(const Context& context, const WithoutRequest& request,
                                         const RemovalPlan& plan, const Removal& removal,
                                         const data::BuildSettings& build) {
  ASSIGN_OR_RETURN(const auto overrides, options_without(context, request, plan, removal));
  if (removal.begins > 0) {
    const run::ForkRequest fork{request.run, removal.begins, removal.folder};
    ASSIGN_OR_RETURN(const train::TrainConfig config,
                     run::config_of_parent(context.fs, fork, overrides, context.models));
    ASSIGN_OR_RETURN(const run::Forked forked, run::fork_run(context.fs, fork, config, build));
    return forked.config;
  }
  return config_from_start(context, plan, overrides, removal.folder);
}

// `texts`: the removal's own follow those that are compared in all states, which are `compared`. Nothing:
// training was asked to stop.
Result<std::optional<Effect>> effect_of(const Context& context, const WithoutRequest& request,
                                        const RemovalPlan& plan, const Removal& removal,
                                        const std::vector<MeasuredText>& texts, size_t compared,
                                        const EffectServices& services) {
  ASSIGN_OR_RETURN(const train::TrainConfig config,
                   begin_without(context, request, plan, removal, services.build));
  ASSIGN_OR_RETURN(const run::RunOutcome outcome, services.train(config));
  if (!outcome.finished) return std::optional<Effect>();
  Effect out{removal, outcome.hash, {}, {}, {}};
  ASSIGN_OR_RETURN(const chain::Chain chain,
                   chain::read_chain(context.fs, io::join_path(removal.folder, chain::kChainFile)));
  // A run that begins anew may find another state to begin with than RUN did (trainer.initialize_from).
  const chain::GenesisEntry &genesis = chain.genesis(), &of_run = plan.chain.genesis();
  if (removal.begins == 0 &&
      (genesis.initial != of_run.initial || genesis.program_hash != of_run.program_hash ||
       (!request.rebuild && genesis.data_hash != of_run.data_hash)))
    return invalid_argument(
        fmt::format("{} began with another state, other programs or other data than {}; what "
                    "trainer.initialize_from names has changed since",
                    removal.folder, request.run));
  for (int64_t step = removal.begins + 1; step <= plan.steps; ++step) {
    const chain::ChainLink* there = plan.chain.find_step(step);
    const chain::ChainLink* here = chain.find_step(step);
    if (there == nullptr || here == nullptr)
      return corrupt(fmt::format("{}: step {} is not in both chains", removal.folder, step));
    out.steps.push_back(
        {step, std::get<chain::StepEntry>(there->entry).loss, std::get<chain::StepEntry>(here->entry).loss});
  }
  ASSIGN_OR_RETURN(out.losses, measure_state(context, measured_config(plan, config), removal.folder, texts,
                                             services.build));
  const auto first_own = out.losses.texts.begin() + static_cast<std::ptrdiff_t>(compared);
  out.own.assign(first_own, out.losses.texts.end());
  out.losses.texts.erase(first_own, out.losses.texts.end());
  return std::optional(std::move(out));
}

// The mean over the tokens of several documents.
double mean_over_tokens(const std::vector<double>& losses, const std::vector<int64_t>& tokens, size_t count) {
  double sum = 0, all = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += losses[i] * static_cast<double>(tokens[i]);
    all += static_cast<double>(tokens[i]);
  }
  return sum / all;
}

std::vector<int64_t> tokens_of(const Removal& removal) {
  std::vector<int64_t> tokens;
  for (const auto& ids : removal.ids) tokens.push_back(static_cast<int64_t>(ids.size()));
  return tokens;
}

// Both runs of a seed. Nothing: training was asked to stop.
Result<std::optional<SeedEffect>> effect_of_seed(const Context& context, const WithoutRequest& request,
                                                 const RemovalPlan& plan, size_t number,
                                                 const std::vector<MeasuredText>& texts,
                                                 const EffectServices& services) {
  SeedEffect out;
  out.seed = plan.seeds[number];
  const config::Override seed{"trainer.seed", std::to_string(out.seed)};
  ASSIGN_OR_RETURN(auto options, options_without(context, request, plan, plan.asked));
  options.push_back(seed);
  for (const bool without : {false, true}) {
    const std::string folder =
        io::join_path(request.out, fmt::format("seed-{}-{}", number + 1, without ? "without" : "with"));
    ASSIGN_OR_RETURN(const train::TrainConfig config,
                     config_from_start(context, plan, without ? options : std::vector{seed}, folder));
    ASSIGN_OR_RETURN(const run::RunOutcome outcome, services.train(config));
    if (!outcome.finished) return std::optional<SeedEffect>();
    (without ? out.hash_without : out.hash) = outcome.hash;
    ASSIGN_OR_RETURN((without ? out.without : out.losses),
                     measure_state(context, measured_config(plan, config), folder, texts, services.build));
  }
  return std::optional(std::move(out));
}

}  // namespace

double EffectReport::on_documents(const SeedEffect& effect) const {
  const size_t count = asked.removal.documents.size();
  return mean_over_tokens(effect.without.texts, tokens, count) -
         mean_over_tokens(effect.losses.texts, tokens, count);
}

double EffectReport::on_documents(const Effect& effect) const {
  const size_t count = asked.removal.documents.size();
  return mean_over_tokens(effect.losses.texts, tokens, count) - mean_over_tokens(losses.texts, tokens, count);
}

double EffectReport::on_itself(std::optional<size_t> control) const {
  if (!control) return on_documents(asked);
  const Effect& effect = controls[*control];
  const std::vector<int64_t> own_tokens = tokens_of(effect.removal);
  return mean_over_tokens(effect.own, own_tokens, own_tokens.size()) -
         mean_over_tokens(own[*control], own_tokens, own_tokens.size());
}

int64_t place_among(double value, const std::vector<double>& others) {
  // An effect that is no number has the last place.
  return 1 + std::count_if(others.begin(), others.end(), [&](double other) { return !(other <= value); });
}

Result<std::optional<EffectReport>> find_effect(const Context& context, const WithoutRequest& request,
                                                const RemovalPlan& plan, const EffectServices& services) {
  EffectReport report;
  report.run = request.run;
  report.run_hash = plan.chain.head();
  report.fewer_controls = plan.fewer_controls;
  report.is_sample = request.sample > 0;
  ASSIGN_OR_RETURN(const std::vector<MeasuredText> texts, compared_texts(context.fs, request, plan));
  const std::vector<std::vector<MeasuredText>> states = texts_by_state(texts, plan);
  for (const MeasuredText& text : texts) {
    report.texts.push_back(text.name);
    report.tokens.push_back(static_cast<int64_t>(text.ids.size()));
  }
  ASSIGN_OR_RETURN(report.losses,
                   measure_state(context, plan.config, request.run, states[0], services.build));
  auto next = report.losses.texts.begin() + static_cast<std::ptrdiff_t>(texts.size());
  for (const Removal& control : plan.controls) {
    const auto end = next + static_cast<std::ptrdiff_t>(control.ids.size());
    report.own.emplace_back(next, end);
    next = end;
  }
  report.losses.texts.resize(texts.size());
  ASSIGN_OR_RETURN(auto asked,
                   effect_of(context, request, plan, plan.asked, states[1], texts.size(), services));
  if (!asked) return std::optional<EffectReport>();
  report.asked = std::move(*asked);
  for (size_t i = 0; i < plan.controls.size(); ++i) {
    ASSIGN_OR_RETURN(auto effect, effect_of(context, request, plan, plan.controls[i], states[2 + i],
                                            texts.size(), services));
    if (!effect) return std::optional<EffectReport>();
    report.controls.push_back(std::move(*effect));
  }
  for (size_t i = 0; i < plan.seeds.size(); ++i) {
    ASSIGN_OR_RETURN(auto effect, effect_of_seed(context, request, plan, i, texts, services));
    if (!effect) return std::optional<EffectReport>();
    report.seeds.push_back(std::move(*effect));
  }
  return std::optional(std::move(report));
}

}  // namespace ostro::without
