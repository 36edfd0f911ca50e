#include "ostro/without/measure.h"

#include <fmt/format.h>

#include "ostro/convert/evaluate_configured.h"
#include "ostro/eval/score/encoding.h"
#include "ostro/train/programs/programs.h"
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
  const int64_t length = model.config.model_options().seq_len();
  eval::TokenScorer scorer(model.functions, std::move(model.parameters.values), *engine,
                           {length, kBatchTokens, train::inference_leaf_table(model.config)});
  for (const MeasuredText& text : texts) {
    const std::vector<eval::Window> windows = eval::rolling_windows(text.ids, prefix, length, length);
    if (windows.empty()) return invalid_argument(fmt::format("{} has no tokens", text.name));
    ASSIGN_OR_RETURN(const std::vector<eval::WindowScore> scores, scorer.score(windows, false));
    double log_prob = 0;
    for (const eval::WindowScore& score : scores) log_prob += score.log_prob;
    out.texts.push_back(-log_prob / static_cast<double>(text.ids.size()));
  }
  return out;
}

Result<MeasuredText> read_text(io::FileSystem& fs, const std::string& path,
                               const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path));
  ASSIGN_OR_RETURN(const int32_t prefix, eval::prefix_token(tokenizer));
  MeasuredText out{path, tokenizer.encode(text)};
  if (!out.ids.empty() && static_cast<int32_t>(out.ids[0]) == prefix) out.ids.erase(out.ids.begin());
  if (out.ids.empty())
    return invalid_argument(fmt::format("{} has no tokens; name a file with a text", path));
  return out;
}

}  // namespace ostro::without
