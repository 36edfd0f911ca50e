// ostro lab publish
#include "ostro/lab_commands/lab_publish.h"

#include <fmt/format.h>

#include "ostro/base/units.h"
#include "ostro/publication/publish/publish_lab.h"
#include "ostro/shell/shared/seal_text.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/verbs.h"
#include "ostro/shell/words/version.h"

namespace ostro::cli {
namespace {

std::string published_text(const publication::PublishRequest& request,
                           const publication::Published& published) {
  const publication::PublicationManifest& m = published.manifest;
  std::string out = fmt::format(
      "{}: the lab {} of {} steps, {} bundles: {:.1f} MiB in {} files\nlab hash: {}\n", request.out, m.lab,
      m.steps.size(), published.bundles, mib(published.size.bytes), published.size.files, m.lab_hash);
  out += seal_text(request.out + "/" + publication::kManifestFile, published.key, request.time_request);
  for (const std::string& remark : published.remarks) out += remark + "\n";
  return out + fmt::format("check it: ostro verify {}\n", request.out);
}

}  // namespace

int lab_publish(Args args) {
  publication::PublishRequest request;
  request.version = program_version();
  args.summary(
      "Writes a finished lab as one folder that a stranger can check with `ostro verify DIR` alone: plan, "
      "journal,\n"
      "registry, outputs, record, report and pages, and of each run a bundle as ostro publish makes it. "
      "Texts "
      "are not in\n"
      "it. Every byte of the outputs is compared with the journal first (docs/guide/lab.md).");
  args.positional("FILE", &request.plan, "the plan");
  args.option("--out", &request.out, "DIR", "the directory to make, which must not exist", Args::kRequired);
  args.option("--sign", &request.sign, "KEY",
              "signs publication.json and the bundles with this private key: openssl genpkey -algorithm "
              "ed25519 -out KEY");
  args.option("--checkpoints", &request.checkpoints, "K",
              "takes K more checkpoints of each run along, spread evenly over it (default 0)");
  args.flag("--records_only", &request.records_only,
            "publishes no models and no states: of each run its chain, configuration and programs");
  args.option("--license", &request.licence, "ID",
              "of the models and of the plan's own texts, such as apache-2.0");
  args.flag("--time_request", &request.time_request,
            "writes publication.json.tsq, a request to a time-stamping service (RFC 3161); nothing is sent");
  if (const auto code = args.parse()) return *code;
  const auto published = publication::publish_lab(args.context(), request);
  if (!published.ok()) return report_error(published.error());
  return exit_after(write_stdout(published_text(request, *published)));
}

}  // namespace ostro::cli
