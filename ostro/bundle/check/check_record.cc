#include <fmt/format.h>

#include <set>

#include "ostro/audit/audit_run.h"
#include "ostro/bundle/check/checks.h"
#include "ostro/chain/canonical.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {
namespace {

using audit::Verdict;

// One value that bundle.json repeats of the chain.
void compare_fact(BundleCheck& check, const char* what, const std::string& in_chain,
                  const std::string& in_bundle) {
  if (in_chain != in_bundle)
    check.find(Verdict::kDiffers,
               fmt::format("bundle.json has another {} than the chain: {} there, {} in the chain", what,
                           in_bundle, in_chain));
}

void compare_head(BundleCheck& check, const std::string& path) {
  const std::string &head = check.chain->head(), &wanted = check.manifest.chain.head;
  if (head == wanted) return;
  const chain::ChainLink* earlier = check.chain->find_hash(wanted);
  check.find(
      Verdict::kDiffers,
      earlier != nullptr
          ? fmt::format("{} goes on behind the run hash of bundle.json, {}, which is that after step {}",
                        path, wanted, chain::entry_step(earlier->entry))
          : fmt::format(
                "{} ends with the run hash {} after step {}; bundle.json has {} (state after step {}): the "
                "chain was cut, or written anew",
                path, head, check.chain->last_step(), wanted, check.manifest.chain.step));
}

// The model card is what a person reads: the run hash in it, as publish writes it, must be the bundle's.
void compare_card(BundleCheck& check) {
  constexpr int64_t kMostBytes = 1 << 20;
  constexpr size_t kDigits = 64;
  const std::string path = check.path(kCardFile);
  const auto card = check.context.fs.read_file(path, kMostBytes);
  if (!card.ok()) return;  // that it is missing or too large was found with the files
  const size_t at = card->find(kCardHash);
  if (at == std::string::npos) return;
  const std::string said = card->substr(at + kCardHash.size(), kDigits);
  if (chain::is_lower_hex(said, kDigits) && said != check.manifest.chain.head)
    check.find(Verdict::kDiffers, fmt::format("{} gives the run hash {}, bundle.json {}", path, said,
                                              check.manifest.chain.head));
}

}  // namespace

void check_chain(BundleCheck& check) {
  const std::string path = check.path(io::join_path(kRecordFolder, chain::kChainFile));
  auto chain = chain::read_chain(check.context.fs, path);
  if (!chain.ok()) return check.find(chain.error());
  check.chain = std::move(*chain);
  const size_t before = check.findings();
  const ChainFacts& said = check.manifest.chain;
  if (check.chain->torn_bytes > 0)
    check.find(Verdict::kDiffers, fmt::format("{} ends in a line that is not whole", path));
  if (check.chain->links.front().hash != said.genesis)
    check.find(Verdict::kDiffers,
               fmt::format("{} is the chain of another run: its genesis has the hash {}, bundle.json has {}",
                           path, check.chain->links.front().hash, said.genesis));
  compare_head(check, path);
  if (const std::string& given = check.options.run_hash; !given.empty() && given != said.head)
    check.find(Verdict::kDiffers,
               fmt::format("the run hash of bundle.json is {}, not {} as given", said.head, given));
  const auto facts = facts_of(*check.chain, said.step);
  if (!facts.ok()) {
    check.find(Verdict::kDiffers,
               fmt::format("{}: {}, which bundle.json publishes", path, facts.error().message()));
  } else {
    compare_fact(check, "published state", facts->state, said.state);
    compare_fact(check, "version of the numerics", facts->numerics, said.numerics);
    compare_fact(check, "list of amends", facts->amends, said.amends);
    compare_fact(check, "lineage", facts->lineage, said.lineage);
  }
  if (check.findings() == before)
    check.show(fmt::format("the chain is one, from its genesis to step {}, and its run hash is {}",
                           check.chain->last_step(), check.chain->head()));
  compare_card(check);
}

void check_record(BundleCheck& check) {
  audit::AuditOptions options;
  options.no_replay = true;
  options.checkpoints = check.manifest.checkpoints;
  options.parameters_only = !check.manifest.has_moments;
  const auto none = []() -> Result<std::unique_ptr<runtime::Engine>> {
    return unsupported("no step is replayed");
  };
  const auto audit =
      audit::audit_run(check.context.fs, none, check.path(kRecordFolder), options, check.context.models);
  if (!audit.ok()) return check.find(audit.error());
  for (const audit::Finding& finding : audit->findings) check.audit.findings.push_back(finding);
  if (audit->not_shown.empty() && audit->findings.empty() && !audit->beginning.empty())
    check.show("the run began with " + audit->beginning);
  for (const std::string& line : audit->not_shown) check.leave(line);
  for (const int64_t step : check.manifest.checkpoints)
    if (check.chain && check.chain->find_checkpoint(step) == nullptr)
      check.find(
          Verdict::kDiffers,
          fmt::format("bundle.json lists a checkpoint after step {}, the chain names none there", step));
  // Files of no checkpoint that bundle.json names: the folder is said once.
  std::set<std::string> folders;
  for (const int64_t step : check.manifest.checkpoints) folders.insert(checkpoint::step_directory(step));
  const std::string below = fmt::format("{}/{}/", kRecordFolder, checkpoint::kCheckpointsFolder);
  for (const auto& [path, sum] : check.manifest.files) {
    if (!path.starts_with(below)) continue;
    const std::string folder = path.substr(below.size(), path.find('/', below.size()) - below.size());
    if (folders.insert(folder).second)
      check.find(Verdict::kDiffers,
                 fmt::format("{}{} is no checkpoint that bundle.json names: it was added", below, folder));
  }
  std::vector<int64_t> fine;
  for (const audit::CheckedCheckpoint& one : audit->checkpoints)
    if (one.fine() || (options.parameters_only && one.verdict == audit::CheckpointVerdict::kPartial))
      fine.push_back(one.step);
  if (audit->findings.empty())
    check.show("configuration, programs and tokenizer of the record are those that the chain names");
  if (!fine.empty() && fine.size() == check.manifest.checkpoints.size())
    check.show(
        fmt::format("the states after step{} {} are those that the chain names{}", fine.size() > 1 ? "s" : "",
                    fmt::join(fine, ", "),
                    check.manifest.has_moments ? "" : " (parameters; the moments are not in the bundle)"));
}

}  // namespace ostro::bundle
