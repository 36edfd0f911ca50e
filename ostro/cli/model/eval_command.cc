// ostro eval
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/build_progress.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/eval/loaded_model.h"
#include "ostro/eval/token_log_probs.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::cli {
namespace {

struct Evaluation {
  train::HeldOutLoss loss;
  int64_t step = 0;
  std::string path, name;  // of the checkpoint and of its state
};

Result<Evaluation> evaluate(const train::TrainConfig& config, const std::string& checkpoint,
                            const std::string& per_token, eval::Trust trust) {
  io::FileSystem& fs = io::default_file_system();
  ASSIGN_OR_RETURN(const auto engine, make_engine());
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  ASSIGN_OR_RETURN(const train::DataAccess data, train::open_data(fs, config, build));
  line.end();
  const int64_t vocab = data.tokenizer->vocab_size();
  const models::ModelFunctions model = train::run_model(config, vocab);
  ASSIGN_OR_RETURN(const eval::Parameters parameters,
                   eval::load_or_init(fs, checkpoint, config, model, *engine, trust));
  ASSIGN_OR_RETURN(const train::HeldOut held_out,
                   train::HeldOut::create(config, vocab, *engine, *data.stores));
  Evaluation out{{}, parameters.step, parameters.path, parameters.name};
  eval::TokenLogProbs tokens;
  train::HeldOut::OnBatch keep;
  if (!per_token.empty())
    keep = [&tokens](const data::Batch& batch, const runtime::Buffer& losses) {
      tokens.add(batch, losses);
      return Status();
    };
  ASSIGN_OR_RETURN(out.loss, held_out.evaluate(parameters.values, keep));
  if (out.loss.tokens == 0) return invalid_argument(train::uncounted_text(out.loss));
  if (!out.loss.uncounted.empty()) log_warning(train::uncounted_text(out.loss));
  if (!per_token.empty())
    RETURN_IF_ERROR(tokens.write(fs, per_token,
                                 {{"loss", fmt::format("{}", out.loss.loss)},
                                  {"step", fmt::format("{}", out.step)},
                                  {"checkpoint", out.name.empty() ? out.path : out.name}}));
  return out;
}

}  // namespace

int eval_command(Args args) {
  std::string checkpoint, per_token;
  bool json = false, unchecked = false;
  args.summary(
      "Loss of a checkpoint on the configuration's held-out text, in nats a token and bits a byte. The\n"
      "model is the configuration's; the checkpoint must have its shapes. The token store is built first\n"
      "where it is not there.");
  args.option("--checkpoint", &checkpoint, "K", eval::kWhereOrInitHelp, Args::kRequired);
  args.flag("--json", &json, "print one JSON object");
  args.option("--per_token", &per_token, "FILE",
              "write every token's log-probability: safetensors with tokens, targets, log_prob, mask "
              "[sequence, pos]");
  args.flag("--unchecked", &unchecked, eval::kUncheckedHelp);
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto result = evaluate(*config, checkpoint, per_token, eval::trust(unchecked));
  if (!result.ok()) return report_error(result.error());
  const auto tokens = static_cast<int64_t>(result->loss.tokens);
  if (json) {
    const auto bits = [](const std::optional<double>& value) {
      return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    };
    nlohmann::ordered_json out = {{"checkpoint", result->path},
                                  {"state", result->name},
                                  {"step", result->step},
                                  {"loss", result->loss.loss},
                                  {"bits_per_byte", bits(result->loss.bits_per_byte)},
                                  {"tokens", tokens}};
    for (const train::HeldOutPart& part : result->loss.parts)
      out["components"][part.component] = {{"loss", part.loss},
                                           {"bits_per_byte", bits(part.bits_per_byte)},
                                           {"tokens", static_cast<int64_t>(part.tokens)}};
    fmt::print("{}\n", out.dump());
  } else {
    const auto line = [](double loss, const std::optional<double>& bits, int64_t tokens) {
      return fmt::format("held-out loss {:.6f} nats a token, {}over {} tokens\n", loss,
                         bits ? fmt::format("{:.6f} bits a byte, ", *bits) : "", tokens);
    };
    fmt::print("step {}: {}", result->step, line(result->loss.loss, result->loss.bits_per_byte, tokens));
    for (const train::HeldOutPart& part : result->loss.parts)
      fmt::print("  {}: {}", part.component,
                 line(part.loss, part.bits_per_byte, static_cast<int64_t>(part.tokens)));
  }
  return kExitOk;
}

}  // namespace ostro::cli
