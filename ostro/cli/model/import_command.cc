// ostro import
#include <fmt/core.h>

#include <optional>
#include <vector>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/convert/import_grok.h"
#include "ostro/convert/import_hf.h"
#include "ostro/convert/import_peft.h"
#include "ostro/convert/import_upcycle.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::cli {

namespace {

Result<std::string> import_upcycled(convert::Upcycle request, const std::string& from,
                                    const convert::GrokImport& other, const models::ModelChoices& models) {
  if (!from.empty() || !other.directory.empty() || !other.config.empty() || !other.layers.empty() ||
      other.dtype != convert::GrokImport().dtype || other.rounding != convert::GrokImport().rounding)
    return invalid_argument(
        "--upcycle makes a mixture of --checkpoint; leave out DIR, --from, --config, --layers, --dtype and "
        "--rounding");
  if (request.checkpoint.empty())
    return invalid_argument("--upcycle: say of which dense model with --checkpoint K");
  request.out = other.out;
  request.tokenizer = other.tokenizer;
  return convert::upcycle(request, models, make_engine_for_a_moment);
}

}  // namespace

int import_command(Args args) {
  std::string from;
  convert::GrokImport grok;
  convert::Upcycle upcycled;
  std::optional<int64_t> experts;
  std::vector<std::string> directories;
  args.summary(
      "Makes a checkpoint of a model that another program wrote; sample, eval, export, diff and\n"
      "trainer.initialize_from read it. With --from hf tokenizer and chat template come along, and a\n"
      "configuration to go on training with (train.yaml). With --from peft, makes one of a model that\n"
      "Ostro has and an adapter for it; with --upcycle, a mixture of experts of a dense model.");
  args.option("--from", &from, "FORMAT",
              "hf: a Hugging Face directory with config.json and safetensors; peft: an adapter of PEFT's "
              "(LoRA) for the model of "
              "--checkpoint; grok: the layout of Grok-1's release");
  args.positional("DIR", &directories, "the directory to read");
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
              "--from grok: f32; bf16: matrices and embedding are held in bf16; int8: matrices stay int8 "
              "(default f32)");
  args.option(
      "--rounding", &grok.rounding, "R",
      "--from grok: where the model rounds to bf16. ostro: as all models; released: where the released "
      "program does it, for --dtype bf16 or int8 (default ostro)");
  args.option("--upcycle", &experts, "N",
              "a mixture of N experts, copies of the MLP of --checkpoint, with a random router");
  args.option("--checkpoint", &upcycled.checkpoint, "K",
              fmt::format("--upcycle and --from peft, the dense model or the base: {}", trained::kWhereHelp));
  args.option("--num_experts_per_tok", &upcycled.per_token, "N",
              "--upcycle: how many experts a token goes to (default 2)");
  args.option("--seed", &upcycled.seed, "N", "--upcycle: of the router's weights (default 0)");
  if (const auto code = args.parse()) return *code;
  if (directories.size() > 1)
    return report_error(invalid_argument(fmt::format("{}: one directory at a time", directories[1])));
  if (!directories.empty()) grok.directory = directories.front();
  PercentProgressLine line;
  const auto import = [&]() -> Result<std::string> {
    if (experts) {
      upcycled.experts = *experts;
      return import_upcycled(upcycled, from, grok, args.models());
    }
    if (from != "peft" && !upcycled.checkpoint.empty())
      return invalid_argument("--checkpoint is for --upcycle N and --from peft; leave it out");
    if (upcycled.per_token != convert::Upcycle().per_token || upcycled.seed != convert::Upcycle().seed)
      return invalid_argument("--num_experts_per_tok and --seed are for --upcycle N; leave them out");
    if (from.empty())
      return invalid_argument("--from: say hf, peft or grok; or make a mixture with --upcycle N");
    if (grok.directory.empty()) return invalid_argument("DIR: say which directory to read");
    if (from == "grok") return convert::import_grok(grok, args.models(), line);
    if (from != "hf" && from != "peft")
      return invalid_argument(fmt::format("--from {}: use hf, peft or grok", from));
    if (!grok.config.empty() || !grok.layers.empty() || grok.dtype != convert::GrokImport().dtype ||
        grok.rounding != convert::GrokImport().rounding)
      return invalid_argument(
          "--config, --layers, --dtype and --rounding are for --from grok only; leave them out");
    if (from == "peft") {
      if (upcycled.checkpoint.empty())
        return invalid_argument("--from peft: say of which base the adapter is, with --checkpoint K");
      return convert::import_peft({grok.directory, upcycled.checkpoint, grok.out, grok.tokenizer},
                                  args.models());
    }
    return convert::import_hf({grok.directory, grok.out, grok.tokenizer}, args.models());
  };
  const auto made = import();
  if (!made.ok()) return report_error(made.error());
  const Status written = write_stdout(*made);
  return written.ok() ? kExitOk : report_error(written.error());
}

}  // namespace ostro::cli
