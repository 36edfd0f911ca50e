#include <fmt/core.h>

#include "ostro/bundle/check/checks.h"
#include "ostro/convert/check_model.h"

namespace ostro::bundle {
namespace {

// The state that the weights are of, as their provenance.json says, against the one that is published.
void compare_source(BundleCheck& check, const provenance::Source& source) {
  const std::string path = check.path(provenance::kProvenanceFile);
  const ChainFacts& published = check.manifest.chain;
  if (source.state != published.state || source.step != published.step)
    check.find(audit::Verdict::kDiffers,
               fmt::format("{}: the weights are of the state {} (after step {}), bundle.json publishes {} "
                           "(after step {}): they are of another model",
                           path, source.state, source.step, published.state, published.step));
}

// No file lies where bundles have none: a program that looks for it there would take it for a part of the
// model.
void check_places(BundleCheck& check, const provenance::Provenance& made) {
  for (const auto& [path, sum] : check.manifest.files) {
    const std::string folder = path.substr(0, path.find('/'));
    const bool is_of_bundle = path == kCardFile || path == provenance::kProvenanceFile ||
                              folder == kRecordFolder || folder == kLedgerFolder || folder == kLicensesFolder;
    if (!is_of_bundle && !made.files.contains(path))
      check.find(audit::Verdict::kDiffers,
                 fmt::format("{} is no file of a bundle, and {} does not list it: it was added",
                             check.path(path), provenance::kProvenanceFile));
  }
}

}  // namespace

void check_weights(BundleCheck& check) {
  // That the run hash is another one was found with the chain.
  const std::string& given = check.options.run_hash;
  const auto model = convert::check_model(
      check.context,
      {check.directory, check.path(kRecordFolder), given == check.chain->head() ? given : std::string()});
  if (!model.ok()) return check.find(model.error());
  if (!model->provenance && model->findings.empty())
    check.find(audit::Verdict::kIncomplete,
               fmt::format("{} is missing: what the weights were made of is not said",
                           check.path(provenance::kProvenanceFile)));
  if (model->provenance) compare_source(check, model->provenance->sources.front());
  for (const audit::Finding& finding : model->findings) check.audit.findings.push_back(finding);
  for (const std::string& line : model->shown) check.show(line);
  if (model->provenance) check_places(check, *model->provenance);
  // The model card is the bundle's own; that no file shows a training is said of the whole bundle.
  for (const std::string& line : model->open)
    if (!line.starts_with("README.md ")) check.leave(line);
}

}  // namespace ostro::bundle
