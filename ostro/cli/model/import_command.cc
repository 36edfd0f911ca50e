// ostro import
#include <fmt/core.h>

#include <vector>

#include "ostro/bundle/check/check_source.h"
#include "ostro/cli/main/commands.h"
#include "ostro/convert/import/import_model.h"
#include "ostro/io/hub/hub_names.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::cli {

int import_command(Args args) {
  convert::ImportRequest request;
  convert::GrokImport& grok = request.grok;
  convert::Upcycle& upcycled = request.upcycle;
  std::vector<std::string> directories;
  args.summary(
      "Makes a checkpoint of a model that another program wrote; sample, eval, export, diff and\n"
      "trainer.initialize_from read it. With --from hf tokenizer and chat template come along, and a\n"
      "configuration to go on training with (train.yaml). With --from peft, makes one of a model that\n"
      "Ostro has and an adapter for it; with --upcycle, a mixture of experts of a dense model.");
  args.option("--from", &request.from, "FORMAT",
              "hf: a Hugging Face directory with config.json and safetensors; peft: an adapter of PEFT's "
              "(LoRA) for the model of --checkpoint; grok: the layout of Grok-1's release");
  args.positional("DIR", &directories, "the directory to read");
  args.option("--out", &grok.out, "OUT", "the directory to make, which must not exist", Args::kRequired);
  args.option("--tokenizer", &grok.tokenizer, "T",
              "tokenizer.json or tokenizer.model to keep beside the checkpoint, where DIR has none");
  args.option(
      "--config", &grok.config, "FILE",
      "--from grok: config.json of another shape than Grok-1's; without it DIR/config.json if there is one");
  args.option("--layers", &grok.layers, "A:B",
              "--from grok: only layers A to B - 1, which make a smaller model");
  args.option("--dtype", &grok.dtype, "D",
              "--from grok: f32; bf16: matrices and embedding are held in bf16; int8: matrices stay int8 "
              "(default f32)");
  args.option(
      "--rounding", &grok.rounding, "R",
      "--from grok: where the model rounds to bf16. ostro: as all models; released: where the released "
      "program does it, for --dtype bf16 or int8 (default ostro)");
  args.option("--upcycle", &request.experts, "N",
              "a mixture of N experts, copies of the MLP of --checkpoint, with a random router");
  args.option("--checkpoint", &upcycled.checkpoint, "K",
              fmt::format("--upcycle and --from peft, the dense model or the base: {}", trained::kWhereHelp));
  args.option("--num_experts_per_tok", &upcycled.per_token, "N",
              "--upcycle: how many experts a token goes to (default 2)");
  args.option("--seed", &upcycled.seed, "N", "--upcycle: of the router's weights (default 0)");
  if (const auto code = args.parse()) return *code;
  if (directories.size() > 1)
    return report_error(invalid_argument(fmt::format("{}: one directory at a time", directories[1])));
  if (!directories.empty()) {
    const auto directory = io::local_or_hub(directories.front(), io::HubFiles::kModel, "DIR");
    if (!directory.ok()) return report_error(directory.error());
    grok.directory = *directory;
  }
  if (!grok.tokenizer.empty()) {
    const auto named = io::local_or_hub(grok.tokenizer, io::HubFiles::kTokenizer, "--tokenizer");
    if (!named.ok()) return report_error(named.error());
    grok.tokenizer = *named;
  }
  for (const std::string& source : {grok.directory, upcycled.checkpoint}) {
    const Status is_fine = source.empty() ? Status() : bundle::check_source(args.context(), source);
    if (!is_fine.ok()) return report_error(is_fine.error());
  }
  const auto made = convert::import_model(args.context(), request);
  if (!made.ok()) return report_error(made.error());
  return exit_after(write_stdout(*made));
}

}  // namespace ostro::cli
