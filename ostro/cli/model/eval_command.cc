// ostro eval
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "ostro/cli/main/commands.h"
#include "ostro/convert/evaluate_configured.h"
#include "ostro/eval/evaluate_tasks.h"
#include "ostro/eval/token_log_probs.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

Result<convert::HeldOutEvaluation> evaluate(const Context& context, train::TrainConfig config,
                                            const std::string& checkpoint, const std::string& per_token,
                                            trained::Trust trust) {
  if (!per_token.empty() && data::has_pairs(config.data))
    return invalid_argument("--per_token: held-out pairs have a loss a pair, not a token; leave it out");
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  trained::take_stored_matrices(context.fs, checkpoint, config);
  ASSIGN_OR_RETURN(const convert::ConfiguredModel of,
                   convert::open_configured(context, std::move(config), checkpoint, build, trust));
  line.end();
  eval::TokenLogProbs tokens;
  train::HeldOut::OnBatch keep;
  if (!per_token.empty())
    keep = [&tokens](const batches::Batch& batch, const runtime::Buffer& losses) {
      tokens.add(batch, losses);
      return Status();
    };
  ASSIGN_OR_RETURN(convert::HeldOutEvaluation out, convert::evaluate_configured(of, keep));
  if (!per_token.empty())
    RETURN_IF_ERROR(tokens.write(context.fs, per_token,
                                 {{"loss", fmt::format("{}", out.loss.loss)},
                                  {"step", fmt::format("{}", out.step)},
                                  {"checkpoint", out.name.empty() ? out.path : out.name}}));
  return out;
}

// Of a HeldOutLoss or one of its parts. Of pairs, the tokens are pairs, and there are no bits.
template <typename Figures>
void add_figures(const Figures& of, nlohmann::ordered_json& out) {
  out["loss"] = of.loss;
  if (of.pairs) {
    out["accuracy"] = of.pairs->accuracy;
    out["margin"] = of.pairs->margin;
    out["pairs"] = static_cast<int64_t>(of.tokens);
    return;
  }
  out["bits_per_byte"] =
      of.bits_per_byte ? nlohmann::ordered_json(*of.bits_per_byte) : nlohmann::ordered_json();
  out["tokens"] = static_cast<int64_t>(of.tokens);
}

template <typename Figures>
std::string figures_line(const Figures& of) {
  const auto count = static_cast<int64_t>(of.tokens);
  if (of.pairs)
    return fmt::format("held-out loss {:.6f} nats a pair, accuracy {:.4f}, margin {:.4f}, over {} pairs\n",
                       of.loss, of.pairs->accuracy, of.pairs->margin, count);
  return fmt::format("held-out loss {:.6f} nats a token, {}over {} tokens\n", of.loss,
                     of.bits_per_byte ? fmt::format("{:.6f} bits per byte, ", *of.bits_per_byte) : "", count);
}

// Words that only one of the two kinds of evaluation takes.
Status check_words(const eval::EvalTasksRequest& request, const Args& args, const std::string& per_token) {
  if (request.tasks.empty()) {
    if (!args.has_config())
      return invalid_argument(
          "--config (held-out text of a configuration) or --tasks (a task file) is missing");
    if (request.checkpoints.size() > 1)
      return invalid_argument(
          "several checkpoints are compared on the tasks of a task file; add --tasks, or name one");
    if (!request.out.empty() || !request.samples.empty() || !request.only.empty() || request.limit ||
        !request.tokenizer.empty() || request.all_checkpoints)
      return invalid_argument(
          "--out, --samples, --only, --limit, --tokenizer and --all_checkpoints belong to --tasks; add it");
    if (!request.use.mp.empty() || request.use.seq_len)
      return invalid_argument(
          "--mp and --seq_len belong to --tasks; with --config use --trainer.mp and --model.seq_len");
    return {};
  }
  if (args.has_config() || !args.overrides().empty())
    return invalid_argument(
        "--tasks takes the model's configuration from its checkpoint; leave out --config and what overrides "
        "it");
  if (!per_token.empty())
    return invalid_argument("--per_token belongs to --config; with --tasks use --samples");
  return {};
}

}  // namespace

int eval_command(Args args) {
  std::string per_token;
  eval::EvalTasksRequest request;
  bool unchecked = false, json = false;
  args.summary(
      "With --config: loss of a checkpoint on the configuration's held-out text, in nats a token and bits "
      "per\n"
      "byte. The model is the configuration's; the checkpoint must have its shapes. The token store is "
      "built\n"
      "first where it is not there.\n"
      "With --tasks: bits per byte of corpora, choices by log-likelihood and generated answers, as a task "
      "file\n"
      "says (docs/guide/evaluate.md); of two checkpoints also the paired differences with 95 % intervals.");
  args.option("--checkpoint", &request.checkpoints, "K",
              std::string(trained::kWhereOrInitHelp) + "; with --tasks one or several of the first two",
              Args::kRequired);
  args.option("--tasks", &request.tasks, "FILE", "corpora and tasks (YAML)");
  args.flag("--all_checkpoints", &request.all_checkpoints, "every checkpoint of the run, by step");
  args.option("--only", &request.only, "NAME", "only these corpora and tasks, or those below a name");
  args.option("--limit", &request.limit, "N", "only the first N documents of each corpus and task");
  args.option("--out", &request.out, "FILE", "write the report as JSON");
  args.option("--samples", &request.samples, "FILE",
              "write what was asked and answered: a line of JSON a document");
  args.option("--batch_tokens", &request.batch_tokens, "N",
              "positions that are computed together; changes no figure");
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.option("--mp", &request.use.mp, "P", std::string("--tasks: ") + trained::kUseMpHelp);
  args.option("--seq_len", &request.use.seq_len, "N", std::string("--tasks: ") + trained::kUseSeqLenHelp);
  args.flag("--json", &json, "print JSON");
  args.option("--per_token", &per_token, "FILE",
              "write every token's log-probability: safetensors with tokens, targets, log_prob, mask "
              "[sequence, pos]");
  args.flag("--unchecked", &unchecked, trained::kUncheckedHelp);
  args.device();
  args.config(!Args::kRequired);
  if (const auto code = args.parse()) return *code;
  if (const Status words = check_words(request, args, per_token); !words.ok())
    return report_error(words.error());
  request.trust = trained::trust(unchecked);
  if (!request.tasks.empty()) {
    const auto report = eval::evaluate_tasks(args.context(), request);
    if (!report.ok()) return report_error(report.error());
    return exit_after(write_stdout(json ? eval::report_json(*report) : eval::report_table(*report)));
  }
  const std::string& checkpoint = request.checkpoints[0];
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto result = evaluate(args.context(), *config, checkpoint, per_token, request.trust);
  if (!result.ok()) return report_error(result.error());
  if (json) {
    nlohmann::ordered_json out = {
        {"checkpoint", result->path}, {"state", result->name}, {"step", result->step}};
    add_figures(result->loss, out);
    for (const train::HeldOutPart& part : result->loss.parts)
      add_figures(part, out["components"][part.component]);
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print("step {}: {}", result->step, figures_line(result->loss));
    for (const train::HeldOutPart& part : result->loss.parts)
      fmt::print("  {}: {}", part.component, figures_line(part));
  }
  return kExitOk;
}

}  // namespace ostro::cli
