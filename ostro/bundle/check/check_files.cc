#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/sha256.h"
#include "ostro/bundle/check/checks.h"
#include "ostro/bundle/parts/file_sums.h"
#include "ostro/chain/canonical.h"

namespace ostro::bundle {
namespace {

// Files that belong to a manifest and are made of its text.
bool is_about_manifest(const BundleCheck& check, const std::string& path) {
  for (const char* end : {"", ".sig", ".pub", ".tsq", ".tsr"})
    if (path == check.name + end) return true;
  return path == kSumsFile;
}

// SHA256SUMS follows from the manifest; the publisher may add a line about the time stamp's answer, which
// came later. No byte of that is then without a hash: its own signature leaves some out.
void check_sums(BundleCheck& check) {
  const std::string path = check.path(kSumsFile),
                    wanted = sums_text(check.manifest.files, check.text, check.name);
  const std::string answer = check.name + ".tsr";
  constexpr int64_t kMostAnswerLine = 256;
  const auto text = check.context.fs.read_file(path, static_cast<int64_t>(wanted.size()) + kMostAnswerLine);
  if (!text.ok()) return check.find(text.error());  // too large is a difference
  const auto stamp = check.context.fs.read_file(check.path(answer), kMostSealBytes);
  if (*text == wanted) {
    if (stamp.ok())
      check.leave(fmt::format("the bytes of {} that its own signature leaves out: {} has no line about it",
                              answer, kSumsFile));
    return;
  }
  const std::string end = fmt::format("  {}\n", answer);
  constexpr size_t kDigits = 64;
  const std::string sum = text->substr(std::min(text->size(), wanted.size()), kDigits),
                    here = stamp.ok() ? sha256_hex(*stamp) : "none";
  if (!chain::is_lower_hex(sum, kDigits) || *text != wanted + sum + end)
    return check.find(audit::Verdict::kDiffers,
                      fmt::format("{} is not the list that follows from {}", path, check.name));
  if (sum != here)
    check.find(audit::Verdict::kDiffers,
               fmt::format("{} has other bytes than {} says: SHA-256 {} here, {} there", check.path(answer),
                           kSumsFile, here, sum));
}

// A file of another size is told and not read: it may be of any length.
void if_size_fits(BundleCheck& check, const std::string& path, int64_t wanted,
                  std::vector<std::string>& to_hash) {
  const auto info = check.context.fs.stat(check.path(path));
  if (!info.ok()) return check.find(info.error());
  if (info->size == wanted)
    to_hash.push_back(path);
  else
    check.find(audit::Verdict::kDiffers, fmt::format("{} has {} bytes, not {} as {} says", check.path(path),
                                                     info->size, wanted, check.name));
}

}  // namespace

void check_files(BundleCheck& check) {
  using audit::Verdict;
  std::vector<std::string> links;
  const auto there = files_below(check.context.fs, check.directory, &links);
  if (!there.ok()) return check.find(there.error());
  const size_t before = check.findings();
  for (const std::string& link : links)
    check.find(Verdict::kDiffers, fmt::format("{} is a link to a directory: a {} has none, it was added",
                                              check.path(link), check.noun));
  for (const std::string& license : check.manifest.license_files)
    if (!check.manifest.files.contains(license))
      check.find(Verdict::kDiffers,
                 fmt::format("{} names the licence {}, and lists no such file", check.name, license));
  std::vector<std::string> to_hash;
  for (const std::string& path : *there) {
    if (const auto listed = check.manifest.files.find(path); listed != check.manifest.files.end())
      if_size_fits(check, path, listed->second.bytes, to_hash);
    else if (!is_about_manifest(check, path) && !(check.is_elsewhere && check.is_elsewhere(path)))
      check.find(Verdict::kDiffers,
                 fmt::format("{} is not listed in {}: it was added", check.path(path), check.name));
  }
  for (const auto& [path, sum] : check.manifest.files)
    if (!std::binary_search(there->begin(), there->end(), path))
      check.find(Verdict::kIncomplete, fmt::format("{} is missing, which {} lists ({} bytes)",
                                                   check.path(path), check.name, sum.bytes));
  const auto sums = hash_files(check.context.fs, check.directory, to_hash, check.threads,
                               check.context.progress, "hashing files");
  for (const auto& [path, sum] : sums) {
    if (!sum.ok()) {
      check.find(sum.error());
      continue;
    }
    const FileSum& wanted = check.manifest.files[path];
    check.audit.bytes += sum->bytes;
    if (*sum != wanted)
      check.find(Verdict::kDiffers, fmt::format("{} has other bytes than {} says: SHA-256 {} here, {} there",
                                                check.path(path), check.name, sum->sha256, wanted.sha256));
  }
  check.audit.files = static_cast<int64_t>(sums.size());
  check_sums(check);
  if (check.findings() == before)
    check.show(fmt::format("each of the {} files has the SHA-256 that {} has, and there are no others",
                           check.audit.files, check.name));
}

}  // namespace ostro::bundle
