#include "ostro/publication/check/check_publication.h"

#include <fmt/format.h>

#include "ostro/base/machine.h"
#include "ostro/base/sha256.h"
#include "ostro/bundle/check/checks.h"
#include "ostro/chain/chain.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/experiment/registry/check.h"
#include "ostro/experiment/registry/registry.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/record/record.h"
#include "ostro/lab/steps/rung.h"
#include "ostro/publication/check/published_lab.h"

namespace ostro::publication {
namespace {

using audit::Verdict;
using bundle::BundleCheck;

constexpr int64_t kMostManifestBytes = int64_t{1} << 26;

void find_all(BundleCheck& check, const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) check.find(Verdict::kDiffers, fault);
}

// Of a bundle everything that needs no replay, and that it is of the run that its step made.
void check_bundles(BundleCheck& check, const PublicationManifest& manifest) {
  int64_t bundles = 0;
  const size_t before = check.findings();
  for (const auto& [name, step] : manifest.steps) {
    if (step.bundle.empty()) continue;
    ++bundles;
    bundle::BundleOptions options = check.options;
    options.run_hash = step.content;
    options.time_authority.clear();  // the stamp is that of publication.json, which has the bundles' hashes
    auto found = bundle::check_bundle(check.context, check.path(step.bundle), options);
    if (!found.ok()) {
      check.find(found.error());
      continue;
    }
    for (audit::Finding& finding : found->findings)
      check.find(finding.verdict, fmt::format("{}: {}", step.bundle, finding.text));
    check.audit.files += found->files, check.audit.bytes += found->bytes;
  }
  if (bundles > 0 && check.findings() == before)
    check.show(fmt::format("each of the {} bundles is whole, and of the run that its step made", bundles));
}

// Whatever lies in the folder of bundles belongs to one.
void check_strays(BundleCheck& check, const PublicationManifest& manifest) {
  const auto entries = check.context.fs.list(check.path(kBundlesFolder));
  if (!entries.ok()) {
    if (entries.error().code() != ErrorCode::kNotFound) check.find(entries.error());
    return;
  }
  for (const io::DirEntry& entry : *entries) {
    const std::string folder = io::join_path(kBundlesFolder, entry.name);
    bool known = false;
    for (const auto& [name, step] : manifest.steps) known = known || step.bundle == folder;
    if (!known)
      check.find(Verdict::kDiffers,
                 fmt::format("{} is of no step in {}: it was added", check.path(folder), kManifestFile));
  }
}

void check_registry(BundleCheck& check, const PublicationManifest& manifest, const PublishedLab& lab,
                    const lab::Journal& journal) {
  io::FileSystem& fs = check.context.fs;
  const std::string directory = lab.plan.directory();
  const auto registry = lab::Registry::open(fs, directory);
  if (!registry.ok()) return check.find(registry.error());
  if (registry->head() != manifest.registry)
    return check.find(Verdict::kDiffers,
                      fmt::format("{} ends with another line than {} says",
                                  io::join_path(directory, lab::kRegistryFile), kManifestFile));
  if (manifest.registry.empty()) return check.leave("that anything was registered before its results");
  // Of whatever key its lines are: publication.json, which was signed, has its last hash.
  const auto faults = lab::registry_faults(fs, directory, journal);
  if (!faults.ok()) return check.find(faults.error());
  find_all(check, *faults);
  if (faults->empty())
    check.show(fmt::format("the registry of {} entries holds, and its places in the journal",
                           registry->entries().size()));
}

// The chain of each run has the hash that the journal has for the step.
void check_chains(BundleCheck& check, const PublishedLab& lab) {
  int64_t runs = 0;
  for (const lab::StepState& s : lab.state.kept()) {
    if (!s.step->kind->makes_run()) continue;
    const std::string path = io::join_path(lab.state.made.at(s.step->name).folder, chain::kChainFile);
    const auto chain = chain::read_chain(check.context.fs, path);
    if (!chain.ok())
      check.find(chain.error());
    else if (chain->head() != s.content)
      check.find(Verdict::kDiffers, fmt::format("{} ends with {}, and step {} gave {}", path, chain->head(),
                                                s.step->name, s.content));
    ++runs;
  }
  if (runs > 0)
    check.leave(
        "that a training gave these chains: replay steps of the bundles (ostro verify "
        "BUNDLE --sample 20 --challenge SEED --cache STORE)");
}

// Each rung of a halved sweep is decided again.
void check_rungs(BundleCheck& check, const PublishedLab& lab) {
  io::FileSystem& fs = check.context.fs;
  int64_t rungs = 0;
  for (const lab::StepState& s : lab.state.kept()) {
    if (s.step->kind->name != lab::kRung) continue;
    const std::string path = io::join_path(lab.state.made.at(s.step->name).folder, lab::kRungFile);
    const auto there = fs.read_file(path);
    const auto again = lab::rung_text(fs, lab.plan, lab.state.made, *s.step);
    if (!there.ok() || !again.ok())
      check.find(there.ok() ? again.error() : there.error());
    else if (*there != *again)
      check.find(Verdict::kDiffers,
                 fmt::format("{} is not what the evaluations of its members give: {}", path, *again));
    ++rungs;
  }
  if (rungs > 0)
    check.show(fmt::format("{} rungs, decided again by the evaluations of their members", rungs));
}

// Numbers are called replayed because these say so; nothing here was replayed.
void leave_replays(BundleCheck& check, const lab::Database& record) {
  const auto said =
      record.select("SELECT DISTINCT name, who, verified FROM replays ORDER BY name, who, verified");
  if (!said.ok()) return check.find(said.error());
  for (const auto& row : said->rows)
    check.leave(fmt::format("what {} says of {}: {}", lab::value_text(row[1]), lab::value_text(row[0]),
                            lab::value_text(row[2])));
}

// The record is a function of plan, journal and outputs: it is made again.
void check_record(BundleCheck& check, const PublishedLab& lab) {
  io::FileSystem& fs = check.context.fs;
  const std::string path = check.path(kRecordFile);
  const auto there = fs.read_file(path);
  if (!there.ok()) return check.find(there.error());
  for (const bool measured : {false, true}) {
    auto record = lab::make_record(fs, lab.plan, lab.state, measured);
    if (!record.ok()) return check.find(record.error());
    const auto bytes = record->bytes();
    if (!bytes.ok()) return check.find(bytes.error());
    if (*bytes != *there) continue;
    check.show(fmt::format("{} is what plan, journal and outputs give{}", kRecordFile,
                           measured ? "; times and machines in it are as the runs' sessions say" : ""));
    return leave_replays(check, *record);
  }
  check.find(Verdict::kDiffers, fmt::format("{} is not what plan, journal and outputs give", path));
}

void check_lab(BundleCheck& check, const PublicationManifest& manifest) {
  io::FileSystem& fs = check.context.fs;
  const std::string plan_file = check.path(manifest.plan);
  const std::string directory = io::join_path(io::parent_path(plan_file), manifest.lab + ".lab");
  const auto journal = lab::Journal::open(fs, directory);
  if (!journal.ok()) return check.find(journal.error());
  if (journal->head() != manifest.journal)
    return check.find(Verdict::kDiffers,
                      fmt::format("{} ends with another line than {} says",
                                  io::join_path(directory, lab::kJournalFile), kManifestFile));
  std::vector<std::string> faults;
  const auto lab = open_lab(fs, check.directory, manifest, *journal, faults);
  if (!lab.ok()) return check.find(lab.error());
  find_all(check, faults);
  if (!faults.empty()) return;
  check.show(
      fmt::format("each of the {} steps has its line in the journal, made of what its inputs gave; lab "
                  "hash {}",
                  lab->state.steps.size(), manifest.lab_hash));
  int64_t left_out = 0;
  const auto wrong = output_faults(fs, *lab, manifest, left_out);
  if (!wrong.ok()) return check.find(wrong.error());
  find_all(check, *wrong);
  if (wrong->empty())
    check.show("the published files of outputs are those that the journal has the hashes of");
  if (left_out > 0)
    check.leave(fmt::format(
        "{} files of outputs that are not published: texts, arrays of tokens, states of runs", left_out));
  check_registry(check, manifest, *lab, *journal);
  check_chains(check, *lab);
  check_rungs(check, *lab);
  check_record(check, *lab);
}

}  // namespace

bool is_publication(io::FileSystem& fs, const std::string& directory) {
  const auto there = fs.exists(io::join_path(directory, kManifestFile));
  return there.ok() && *there;
}

Result<bundle::BundleAudit> check_publication(const Context& context, const std::string& directory,
                                              const bundle::BundleOptions& options) {
  ASSIGN_OR_RETURN(const int threads, default_threads());
  BundleCheck check{context, directory, options, threads, "", {}, {}, {}};
  check.noun = "publication", check.name = kManifestFile, check.is_elsewhere = is_in_bundle;
  const std::string path = io::join_path(directory, kManifestFile);
  const auto text = context.fs.read_file(path, kMostManifestBytes);
  const auto manifest = text.ok() ? parse_manifest(*text, path) : text.error();
  if (!manifest.ok()) {
    check.find(manifest.error());
    return std::move(check.audit);
  }
  check.text = *text, check.manifest.files = manifest->files;
  if (!options.run_hash.empty() && options.run_hash != manifest->lab_hash)
    check.find(Verdict::kDiffers, fmt::format("its lab hash is {}, not {} as given (--run_hash)",
                                              manifest->lab_hash, options.run_hash));
  check_files(check);
  RETURN_IF_ERROR(check_seal(check));
  check_strays(check, *manifest);
  check_bundles(check, *manifest);
  check_lab(check, *manifest);
  check.leave("the words of the plan, the report and the pages, and the licences: these are the publisher's");
  auto& findings = check.audit.findings;
  audit::sort_worst_first(findings);
  findings = audit::folded(findings);
  return std::move(check.audit);
}

std::string publication_text(const bundle::BundleAudit& audit) {
  return bundle::audit_text(
      audit, fmt::format("equal: {} files, the bundles, the journal, the outputs and the record; no step was "
                         "replayed",
                         audit.files));
}

}  // namespace ostro::publication
