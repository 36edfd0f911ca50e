// ostro import
#include <fmt/core.h>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/model/import_grok.h"
#include "ostro/cli/shared/import_hf.h"
#include "ostro/cli/shared/standard_streams.h"

namespace ostro::cli {

int import_command(Args args) {
  std::string from;
  GrokImport grok;
  args.summary(
      "Makes a checkpoint of a model that another program wrote; sample, eval, export, diff and\n"
      "trainer.initialize_from read it. With --from hf tokenizer and chat template come along, and a\n"
      "configuration to go on training with (train.yaml).");
  args.option(
      "--from", &from, "FORMAT",
      "hf: a Hugging Face directory with config.json and safetensors; grok: the layout of Grok-1's release",
      Args::kRequired);
  args.positional("DIR", &grok.directory, "the directory to read");
  args.option("--out", &grok.out, "OUT", "the directory to make, which must not exist", Args::kRequired);
  args.option("--tokenizer", &grok.tokenizer, "T",
              "tokenizer.json or tokenizer.model to keep beside the checkpoint, where DIR has none");
  args.option(
      "--config", &grok.config, "FILE",
      "--from grok: config.json of another shape than Grok-1's; without it DIR/config.json if there is "
      "one");
  args.option("--layers", &grok.layers, "A:B",
              "--from grok: only layers A to B - 1, which make a smaller model");
  args.option("--dtype", &grok.dtype, "D",
              "--from grok: f32, or bf16: matrices and embedding are held in bf16 (default f32)");
  if (const auto code = args.parse()) return *code;
  const auto import = [&]() -> Result<std::string> {
    if (from == "grok") return import_grok(grok, args.models());
    if (from != "hf") return invalid_argument(fmt::format("--from {}: use hf or grok", from));
    if (!grok.config.empty() || !grok.layers.empty() || grok.dtype != GrokImport().dtype)
      return invalid_argument("--config, --layers and --dtype are for --from grok only; leave them out");
    return import_hf({grok.directory, grok.out, grok.tokenizer}, args.models());
  };
  const auto made = import();
  if (!made.ok()) return report_error(made.error());
  const Status written = write_stdout(*made);
  return written.ok() ? kExitOk : report_error(written.error());
}

}  // namespace ostro::cli
