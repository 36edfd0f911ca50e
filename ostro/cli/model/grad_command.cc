// ostro grad
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/main/commands.h"
#include "ostro/convert/configured_model.h"
#include "ostro/eval/gradients.h"
#include "ostro/hf/export.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/train/programs/programs.h"

namespace ostro::cli {
namespace {

Result<eval::MeanGradients> write_gradients(const Context& context, const train::TrainConfig& config,
                                            int64_t step, const std::string& checkpoint,
                                            const std::string& out, trained::Trust trust) {
  const auto* decoder =
      models::model_options_as<models::DecoderOptions, models::Decoder>(config.model_options());
  if (decoder == nullptr)
    return unsupported(
        fmt::format("model.type {} has no table of interchange names; families of decoders have "
                    "(docs/reference/models.md)",
                    config.model_options().type()));
  if (step < 0) return invalid_argument(fmt::format("--step {}: steps count from 0", step));
  RETURN_IF_ERROR(config.check_leaf_examples(step));
  BuildProgressLine line;
  ASSIGN_OR_RETURN(const data::BuildSettings build, build_settings(line));
  ASSIGN_OR_RETURN(const convert::ConfiguredModel of,
                   convert::open_configured(context, config, checkpoint, build, trust));
  line.end();
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(of.config, of.data.stores));
  ASSIGN_OR_RETURN(const batches::Batch batch, loader.batch(step));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(of.config, of.model));
  ASSIGN_OR_RETURN(const std::string remat, decoder->remat());
  ASSIGN_OR_RETURN(
      eval::MeanGradients result,
      eval::mean_gradients(programs, *of.engine, remat, of.parameters.values,
                           train::leaf_arrays(of.config, batch, step), of.config.numerics.slice_partials));
  ASSIGN_OR_RETURN(const hf::NamedWeights named,
                   hf::NamedWeights::create(*decoder, of.model.paths, result.gradients));
  RETURN_IF_ERROR(io::write_safetensors(context.fs, out, named.entries(),
                                        {{"loss", fmt::format("{}", result.loss)},
                                         {"tokens", fmt::format("{}", result.weight)},
                                         {"step", fmt::format("{}", step)},
                                         {"checkpoint", of.parameters.path}}));
  return result;
}

}  // namespace

int grad_command(Args args) {
  std::string checkpoint, out;
  int64_t step = 0;
  bool unchecked = false;
  args.summary(
      "Writes the loss (in the file's metadata) and every gradient of the mean loss of one step's whole\n"
      "batch, before clipping, f32, named and shaped as ostro export --to hf names the parameters.\n"
      "The token store is built first where it is not there.");
  args.option("--step", &step, "N", "whose batch, from 0 as ostro data batch counts", Args::kRequired);
  args.option("--checkpoint", &checkpoint, "K", trained::kWhereOrInitHelp, Args::kRequired);
  args.option("--out", &out, "FILE", "the safetensors file to write", Args::kRequired);
  args.flag("--unchecked", &unchecked, trained::kUncheckedHelp);
  args.device();
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto result =
      write_gradients(args.context(), *config, step, checkpoint, out, trained::trust(unchecked));
  if (!result.ok()) return report_error(result.error());
  fmt::print("{}: loss {} over {} tokens\n", out, result->loss, result->weight);
  return kExitOk;
}

}  // namespace ostro::cli
