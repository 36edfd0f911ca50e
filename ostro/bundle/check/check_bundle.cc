#include "ostro/bundle/check/check_bundle.h"

#include <fmt/core.h>

#include <tuple>
#include <utility>

#include "ostro/base/machine.h"
#include "ostro/bundle/check/checks.h"
#include "ostro/chain/canonical.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {
namespace {

constexpr int64_t kMostManifestBytes = int64_t{1} << 26;  // some 400,000 files

Result<std::pair<std::string, BundleManifest>> read_manifest(io::FileSystem& fs,
                                                             const std::string& directory) {
  const std::string path = io::join_path(directory, kManifestFile);
  ASSIGN_OR_RETURN(std::string text, fs.read_file(path, kMostManifestBytes));
  ASSIGN_OR_RETURN(BundleManifest manifest, parse_manifest(text, path));
  return std::pair(std::move(text), std::move(manifest));
}

// What no check of files can show.
void add_limits(BundleCheck& check) {
  check.leave(fmt::format(
      "that a training gave this chain: replay steps of it, ostro verify {} --sample 20 --challenge "
      "SEED --cache STORE",
      check.directory));
  check.leave(
      "what the texts are: the ledger has hashes of their tokens, and the names that the publisher gave "
      "them");
  check.leave(
      "the words and the held-out losses of README.md, the licence, and made_by of bundle.json (which "
      "programs made it): these are the publisher's");
}

}  // namespace

std::string BundleCheck::path(const std::string& below) const { return io::join_path(directory, below); }

void BundleCheck::find(audit::Verdict verdict, std::string words) {
  audit.findings.push_back({verdict, std::move(words)});
}

void BundleCheck::find(const Error& error) {
  if (error.code() == ErrorCode::kNotFound) return find(audit::Verdict::kIncomplete, error.message());
  audit.findings.push_back(audit::finding_of(error));
}

bool is_bundle(io::FileSystem& fs, const std::string& directory) {
  const auto there = fs.exists(io::join_path(directory, kManifestFile));
  return there.ok() && *there;
}

Result<BundleRecord> open_record(io::FileSystem& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto read, read_manifest(fs, directory));
  const BundleManifest& manifest = read.second;
  return BundleRecord{io::join_path(directory, kRecordFolder), manifest.chain.head, manifest.checkpoints,
                      manifest.has_moments};
}

Result<BundleAudit> check_bundle(const Context& context, const std::string& directory,
                                 const BundleOptions& options) {
  RETURN_IF_ERROR(chain::check_run_hash(options.run_hash));
  ASSIGN_OR_RETURN(const int threads, default_threads());
  BundleCheck check{context, directory, options, threads, "", {}, {}, {}};
  auto read = read_manifest(context.fs, directory);
  if (!read.ok()) {
    check.find(read.error());
    return std::move(check.audit);
  }
  std::tie(check.text, check.manifest) = std::move(*read);
  check.audit.chain = check.manifest.chain;
  check_files(check);
  RETURN_IF_ERROR(check_seal(check));
  check_chain(check);
  if (check.chain) {
    check_record(check);
    check_ledger(check);
    if (options.record_only)
      check.leave("a model beside the record");
    else
      check_weights(check);
  }
  add_limits(check);
  auto& findings = check.audit.findings;
  audit::sort_worst_first(findings);
  findings = audit::folded(findings);
  return std::move(check.audit);
}

}  // namespace ostro::bundle
