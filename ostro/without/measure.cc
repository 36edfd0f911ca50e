#include "ostro/without/measure.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "ostro/convert/evaluate_configured.h"
#include "ostro/eval/score/encoding.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_flops.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::without {
namespace {

constexpr int64_t kBatchTokens = 4096;

// The run has held-out text if some component has rows of it.
bool has_held_out(const batches::DataSet& stores) {
  for (const batches::DataSet::Part& part : stores.parts())
    if (part.store->split(data::Split::kValidation).tokens() > 1) return true;
  return false;
}

Result<std::optional<double>> held_out_loss(const Context& context, train::TrainConfig config,
                                            const std::string& folder, const data::BuildSettings& build) {
  config.trainer.max_eval_batches.reset();  // all of it
  ASSIGN_OR_RETURN(
      const convert::ConfiguredModel model,
      convert::open_configured(context, std::move(config), folder, build, trained::Trust::kChain));
  if (!has_held_out(*model.data.stores)) return std::optional<double>();
  ASSIGN_OR_RETURN(const convert::HeldOutEvaluation found, convert::evaluate_configured(model));
  return std::optional(found.loss.loss);
}

// The operations of all held-out text; 0 if there is none.
Result<double> held_out_flops(io::FileSystem& fs, train::TrainConfig config,
                              const tokenizer::Tokenizer& tokenizer) {
  config.trainer.max_eval_batches.reset();
  ASSIGN_OR_RETURN(const auto stores, batches::DataSet::open(fs, config.data, tokenizer));
  if (!has_held_out(*stores)) return 0;
  ASSIGN_OR_RETURN(const train::HeldOutText text, train::HeldOutText::create(config, *stores));
  return static_cast<double>(text.batches()) *
         train::program_flops(train::held_out_program(config, tokenizer.vocab_size()));
}

eval::ScorerOptions scorer_options(const train::TrainConfig& config) {
  return {config.model_options().seq_len(), kBatchTokens, train::inference_leaf_table(config)};
}

std::vector<eval::Window> windows_of(const train::TrainConfig& config, const MeasuredText& text,
                                     int32_t prefix) {
  const int64_t length = config.model_options().seq_len();
  return eval::rolling_windows(text.ids, prefix, length, length);
}

}  // namespace

Result<StateLosses> measure_state(const Context& context, const train::TrainConfig& config,
                                  const std::string& folder, const std::vector<MeasuredText>& texts,
                                  const data::BuildSettings& build) {
  StateLosses out;
  ASSIGN_OR_RETURN(out.held_out, held_out_loss(context, config, folder, build));
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(trained::LoadedModel model,
                   trained::load_model(context.fs, folder, "", context.models, trained::Trust::kChain));
  ASSIGN_OR_RETURN(const int32_t prefix, eval::prefix_token(*model.tokenizer));
  eval::TokenScorer scorer(model.functions, std::move(model.parameters.values), *engine,
                           scorer_options(model.config));
  for (const MeasuredText& text : texts) {
    const std::vector<eval::Window> windows = windows_of(model.config, text, prefix);
    if (windows.empty()) return invalid_argument(fmt::format("{} has no tokens", text.name));
    ASSIGN_OR_RETURN(const std::vector<eval::WindowScore> scores, scorer.score(windows, false));
    double log_prob = 0;
    for (const eval::WindowScore& score : scores) log_prob += score.log_prob;
    out.texts.push_back(-log_prob / static_cast<double>(text.ids.size()));
  }
  return out;
}

Result<std::vector<double>> measuring_flops(const Context& context, const train::TrainConfig& config,
                                            const tokenizer::Tokenizer& tokenizer,
                                            const std::vector<std::vector<MeasuredText>>& states) {
  ASSIGN_OR_RETURN(const double held_out, held_out_flops(context.fs, config, tokenizer));
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  ASSIGN_OR_RETURN(const int32_t prefix, eval::prefix_token(tokenizer));
  const models::ModelFunctions model =
      train::run_model(config, tokenizer.vocab_size(), train::ModelUse::kEvaluation);
  const eval::TokenScorer scorer(model, {}, *engine, scorer_options(config));
  std::map<std::pair<int64_t, int64_t>, double> known;  // of a program, by rows and positions
  std::vector<double> out;
  for (const std::vector<MeasuredText>& texts : states) {
    out.push_back(held_out);
    for (const MeasuredText& text : texts) {
      for (const eval::TokenScorer::Batch& batch : scorer.batches(windows_of(config, text, prefix), false)) {
        double& flops = known[{batch.rows, batch.length}];
        if (flops == 0) {
          ASSIGN_OR_RETURN(const ir::Program program, scorer.traced_program(batch.rows, batch.length, false));
          flops = train::program_flops(program);
        }
        out.back() += flops;
      }
    }
  }
  return out;
}

}  // namespace ostro::without
