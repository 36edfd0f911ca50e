// ostro publish
#include <fmt/core.h>

#include "ostro/bundle/publish/publish.h"
#include "ostro/cli/main/commands.h"
#include "ostro/shell/shared/seal_text.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/version.h"

namespace ostro::cli {
namespace {

std::string bundle_size(int64_t bytes) {
  constexpr double kUnit = 1000;
  const auto size = static_cast<double>(bytes);
  if (size < kUnit * kUnit) return fmt::format("{:.1f} kB", size / kUnit);
  if (size < kUnit * kUnit * kUnit) return fmt::format("{:.1f} MB", size / kUnit / kUnit);
  return fmt::format("{:.1f} GB", size / kUnit / kUnit / kUnit);
}

std::string published_text(const bundle::PublishRequest& request, const bundle::Published& published) {
  const bundle::BundleManifest& m = published.manifest;
  std::string out = fmt::format("{}: the model after step {}, with its record: {} in {} files\n", request.out,
                                m.chain.step, bundle_size(published.size.bytes), published.size.files);
  out += fmt::format("run hash: {}\nstate: {}\n", m.chain.head, m.chain.state);
  out += seal_text(request.out + "/" + bundle::kManifestFile, published.key, request.time_request);
  out += "replay: " + published.replay + "\n";
  for (const std::string& remark : published.remarks) out += remark + "\n";
  return out + fmt::format("check it: ostro verify {}\n", request.out);
}

}  // namespace

int publish_command(Args args) {
  bundle::PublishRequest request;
  request.version = program_version();
  args.summary(
      "Writes a bundle: the model as a Hugging Face directory, and with it all that a stranger needs to "
      "check\n"
      "it and to go on from it: the record with some checkpoints, a ledger of the data (hashes of rows, not "
      "the\n"
      "rows), licences, a model card and checksums (docs/guide/publish.md). `ostro verify DIR` checks it.");
  args.positional("RUN", &request.run, "run directory; the newest state that its chain names is published");
  args.option("--out", &request.out, "DIR", "the directory to make, which must not exist", Args::kRequired);
  args.option("--sign", &request.sign, "KEY",
              "signs bundle.json with this private key: openssl genpkey -algorithm ed25519 -out KEY");
  args.option("--checkpoints", &request.checkpoints, "K",
              "takes K more checkpoints along, spread evenly over the run, from which steps can be replayed "
              "(default 0)");
  args.flag(
      "--parameters_only", &request.parameters_only,
      "leaves the moments of checkpoints out: a third of the size, but no step can be replayed from them");
  args.option("--cache", &request.cache, "STORE",
              "the token store, when it is no longer where the run used it (data.cache_dir)");
  args.flag("--without_ledger", &request.without_ledger,
            "publishes without the ledger of the data, for example when the store is gone; checks then say "
            "incomplete");
  args.option("--license", &request.license, "ID", "of the model, such as apache-2.0");
  args.option("--license_file", &request.license_files, "F", "texts of licences to take along");
  args.option("--base_model", &request.base_model, "NAME",
              "for the model card: the model that the run began with, as others know it");
  args.option("--dtype", &request.dtype, "T",
              "of the weights: f32, bf16 or f16 (default: as ostro export has it)");
  args.option("--shard_size", &request.shard_bytes, "BYTES", "of a file of weights at most");
  args.flag("--merge_lora", &request.merge_lora, "adds the run's adapter to the weights");
  args.flag("--without_model", &request.without_model,
            "publishes the record alone, without the files of a model: for a model that has no form in "
            "Hugging Face's");
  args.flag(
      "--score", &request.score,
      "writes record/score.ir, the program that gives the loss of each token: an entry of a board needs it");
  args.flag("--time_request", &request.time_request,
            "writes bundle.json.tsq, a request to a time-stamping service (RFC 3161); nothing is sent");
  if (const auto code = args.parse()) return *code;
  const auto published = bundle::publish(args.context(), request);
  if (!published.ok()) return report_error(published.error());
  return exit_after(write_stdout(published_text(request, *published)));
}

}  // namespace ostro::cli
