// ostro export
#include <fmt/core.h>

#include <cstdio>

#include "ostro/chat/chat_template.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/eval/loaded_model.h"
#include "ostro/hf/export.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/models/decoder/decoder.h"

namespace ostro::cli {
namespace {

Result<eval::Parameters> export_model(const std::string& checkpoint, const std::string& tokenizer,
                                      const std::string& out, const train::ModelChoices& models,
                                      eval::Trust trust) {
  io::FileSystem& fs = io::default_file_system();
  ASSIGN_OR_RETURN(eval::LoadedModel model, eval::load_model(fs, checkpoint, tokenizer, models, trust));
  const auto* llama =
      models::model_options_as<models::DecoderOptions, models::Decoder>(model.config.model_options());
  if (llama == nullptr || llama->type() != "llama")
    return unsupported(fmt::format("{}: model.type {} cannot be exported; only llama can",
                                   model.parameters.path, model.config.model_options().type()));
  ASSIGN_OR_RETURN(const hf::NamedWeights weights,
                   hf::NamedWeights::create(*llama, model.functions.paths, model.parameters.values));
  RETURN_IF_ERROR(hf::export_llama(fs, out, *llama, *model.tokenizer, weights));
  const auto chat = chat::ChatTemplate::load(fs, model.tokenizer_path, *model.tokenizer, std::nullopt);
  if (!chat.ok() && chat.error().code() != ErrorCode::kNotFound) return chat.error();
  if (chat.ok()) RETURN_IF_ERROR(chat->save(fs, out));
  return std::move(model.parameters);
}

}  // namespace

int export_command(Args args) {
  std::string checkpoint, to, out, tokenizer;
  bool unchecked = false;
  args.summary(
      "Writes a model, its tokenizer and its chat template as a directory that other programs load.");
  args.option("--checkpoint", &checkpoint, "K", eval::kWhereHelp, Args::kRequired);
  args.option("--to", &to, "FORMAT", "hf: Hugging Face transformers", Args::kRequired);
  args.option("--out", &out, "DIR", "the directory to write", Args::kRequired);
  args.option("--tokenizer", &tokenizer, "T", "tokenizer.json, when the checkpoint is not in its run");
  args.flag("--unchecked", &unchecked, eval::kUncheckedHelp);
  if (const auto code = args.parse()) return *code;
  if (to != "hf") return report_error(invalid_argument(fmt::format("--to {}: use hf", to)));
  const auto exported = export_model(checkpoint, tokenizer, out, args.models(), eval::trust(unchecked));
  if (!exported.ok()) return report_error(exported.error());
  fmt::print("{}: {} (step {})\n", out, exported->path, exported->step);
  return kExitOk;
}

}  // namespace ostro::cli
