// ostro export
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/convert/export_model.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {

int export_command(Args args) {
  convert::ExportRequest request;
  bool unchecked = false;
  args.summary(
      "Writes a model, its tokenizer and its chat template as a directory that other programs load.");
  args.option("--checkpoint", &request.checkpoint, "K", trained::kWhereHelp, Args::kRequired);
  args.option("--to", &request.to, "FORMAT",
              "hf: Hugging Face transformers; peft: the adapter alone; grok: the layout of Grok-1's release",
              Args::kRequired);
  args.option("--out", &request.out, "DIR", "the directory to write", Args::kRequired);
  args.option("--tokenizer", &request.tokenizer, "T",
              "tokenizer.json, when the checkpoint is not in its run");
  args.option(
      "--dtype", &request.dtype, "T",
      "type of the weights. --to hf: f32, bf16 or f16 (default: of an import as it came in, else f32); --to "
      "grok: of matrices, int8 (default), bf16 or f32");
  args.option("--shard_size", &request.shard_bytes, "BYTES", "--to hf: of a file of weights at most");
  args.flag("--merge_lora", &request.merge_lora, "--to hf: add the adapter to the weights");
  args.option("--base", &request.base, "B", "--to peft: name or directory of the model without the adapter");
  args.flag("--unchecked", &unchecked, trained::kUncheckedHelp);
  if (const auto code = args.parse()) return *code;
  request.trust = trained::trust(unchecked);
  const auto exported = convert::export_model(args.context(), request);
  if (!exported.ok()) return report_error(exported.error());
  fmt::print("{}: {} (step {})\n", request.out, exported->path, exported->step);
  return kExitOk;
}

}  // namespace ostro::cli
