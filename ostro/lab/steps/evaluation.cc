// The step eval.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/config/options.h"
#include "ostro/convert/configured_model.h"
#include "ostro/convert/evaluate_configured.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

// The stores whose held-out texts count.
Result<std::shared_ptr<const batches::DataSet>> chosen_stores(const Work& work,
                                                              const convert::ConfiguredModel& model) {
  const config::Node* sets = work.step.parameters.find("sets");
  if (sets == nullptr) return model.data.stores;
  data::DataOptions options = model.config.data;
  std::vector<std::string> known;
  for (const auto& [name, unused] : options.components) known.push_back(name);
  if (known.empty())
    return invalid_argument(
        "sets: the run has one token store and no components; leave it out, and all its held-out texts "
        "count");
  std::set<std::string> chosen;
  for (const std::string& name : texts_of(work.step, "sets")) {
    if (!options.components.contains(name)) {
      const std::string nearest = config::nearest_name(name, known);
      return invalid_argument(
          fmt::format("sets: the run has no component \"{}\"{}", name,
                      nearest.empty() ? "" : fmt::format("; the nearest is \"{}\"", nearest)));
    }
    chosen.insert(name);
  }
  if (chosen.empty()) return invalid_argument("sets: names no component; name one, or leave it out");
  std::erase_if(options.components, [&](const auto& one) { return !chosen.contains(one.first); });
  return batches::DataSet::of_components(model.data.stores, options);
}

nlohmann::json json_of(const train::HeldOutLoss& loss, int64_t step, const std::string& state) {
  nlohmann::json out = {{"step", step},
                        {"state", state},
                        {"loss", chain::hex_float(loss.loss)},
                        {"tokens", static_cast<int64_t>(loss.tokens)},
                        {"bits_per_byte", nullptr}};
  if (loss.bits_per_byte) out["bits_per_byte"] = chain::hex_float(*loss.bits_per_byte);
  for (const train::HeldOutPart& part : loss.parts) {
    out["parts"].push_back({{"component", part.component},
                            {"loss", chain::hex_float(part.loss)},
                            {"tokens", static_cast<int64_t>(part.tokens)},
                            {"bits_per_byte", nullptr}});
    if (part.bits_per_byte) out["parts"].back()["bits_per_byte"] = chain::hex_float(*part.bits_per_byte);
  }
  return out;
}

// The states that are evaluated, the last one at the end.
Result<std::vector<KeptState>> evaluated_states(const Work& work) {
  const config::Node* at = work.step.parameters.find("at");
  if (at != nullptr && at->text != "last" && at->text != "kept")
    return invalid_argument(fmt::format("at: \"{}\": use last or kept", at->text));
  ASSIGN_OR_RETURN(std::vector<KeptState> states, kept_states(work));
  if (at == nullptr || at->text == "last") states.erase(states.begin(), states.end() - 1);
  return states;
}

// The phase that a state is of, by the number of its configuration.
size_t phase_of(std::span<const train::TrainConfig> phases, int64_t step) {
  size_t phase = 0;
  while (phase + 1 < phases.size() && phases[phase].trainer.num_train_steps < step) ++phase;
  return phase;
}

// The losses of states of one phase, with the model of that phase on the held-out texts of the last one.
Result<std::vector<nlohmann::json>> evaluate_states(const Work& work, train::TrainConfig config,
                                                    std::span<const KeptState> states) {
  config.trainer.max_eval_batches.reset();  // all held-out texts: the limit is in no fingerprint
  io::FileSystem& fs = work.context.fs;
  const Context context = work.context.on(config.trainer.device);
  trained::take_stored_matrices(fs, states.back().folder, config);
  ASSIGN_OR_RETURN(convert::ConfiguredModel model,
                   convert::open_configured(context, config, states.back().folder, work.services.build,
                                            trained::Trust::kChain));
  ASSIGN_OR_RETURN(const auto stores, chosen_stores(work, model));
  ASSIGN_OR_RETURN(
      const train::HeldOut held_out,
      train::HeldOut::create(model.config, model.data.tokenizer->vocab_size(), *model.engine, *stores));
  const auto evaluate = [&](const trained::Parameters& parameters) -> Result<nlohmann::json> {
    ASSIGN_OR_RETURN(const train::HeldOutLoss loss, convert::counted_loss(held_out, parameters.values));
    return json_of(loss, parameters.step, parameters.name);
  };
  ASSIGN_OR_RETURN(nlohmann::json last, evaluate(model.parameters));
  model.parameters.values.clear();
  std::vector<nlohmann::json> out;
  for (const KeptState& state : states.first(states.size() - 1)) {
    ASSIGN_OR_RETURN(const trained::Parameters parameters,
                     trained::load_or_init(fs, state.folder, model.config, model.model, *model.engine,
                                           trained::Trust::kChain));
    ASSIGN_OR_RETURN(out.emplace_back(), evaluate(parameters));
  }
  out.push_back(std::move(last));
  return out;
}

// The losses of all these states. Options of the model may change from phase to phase; the texts stay, so
// that losses of all states can be compared.
Result<std::vector<nlohmann::json>> evaluate_phases(const Work& work, std::span<const KeptState> states) {
  const Step& training = work.input("of");
  ASSIGN_OR_RETURN(const std::vector<train::TrainConfig> phases,
                   training_configs(work.of(training), work.made_by(training).folder));
  std::vector<nlohmann::json> out;
  for (size_t begin = 0, end = 0; begin < states.size(); begin = end) {
    const size_t phase = phase_of(phases, states[begin].step);
    while (end < states.size() && phase_of(phases, states[end].step) == phase) ++end;
    train::TrainConfig config = phases[phase];
    config.data = phases.back().data;
    ASSIGN_OR_RETURN(const std::vector<nlohmann::json> losses,
                     evaluate_states(work, std::move(config), states.subspan(begin, end - begin)));
    out.insert(out.end(), losses.begin(), losses.end());
  }
  return out;
}

}  // namespace

// What is said of the last state; with `at: kept` the others are in the member "earlier".
Result<std::string> make_evaluation(const Work& work, const std::string& folder) {
  io::FileSystem& fs = work.context.fs;
  ASSIGN_OR_RETURN(const std::vector<KeptState> states, evaluated_states(work));
  ASSIGN_OR_RETURN(std::vector<nlohmann::json> losses, evaluate_phases(work, states));
  nlohmann::json out = std::move(losses.back());
  losses.pop_back();
  for (nlohmann::json& earlier : losses) out["earlier"].push_back(std::move(earlier));
  const std::string text = out.dump() + "\n";
  RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(folder, "evaluation.json"), text));
  return sha256_hex(text);
}

}  // namespace ostro::lab
