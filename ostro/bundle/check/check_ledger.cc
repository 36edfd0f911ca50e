#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ostro/batches/loader/stores_hash.h"
#include "ostro/bundle/check/checks.h"
#include "ostro/bundle/parts/ledger_files.h"
#include "ostro/chain/data_record.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {
namespace {

using audit::Verdict;

// Source file number i of the content; by its hash where NAME.sources has no line about it.
std::string name_of(const LedgerFiles& ledger, size_t i) {
  const std::string& sha256 = ledger.files()[i].sha256;
  const std::vector<LedgerSource>& sources = ledger.sources();
  if (i < sources.size() && sources[i].sha256 == sha256) return sources[i].file;
  for (const LedgerSource& source : sources)
    if (source.sha256 == sha256) return source.file;
  return fmt::format("source file {} (SHA-256 {})", i + 1, sha256);
}

// Names the first source file whose rows have not the tokens that the content of the store's ledger has: the
// rows in front of it are as they were, so it is in this file that one is missing, added or changed. `moved`:
// NAME.rows has another number of rows, so those of all later files lie elsewhere.
Result<std::string> changed_source(const LedgerFiles& ledger, bool moved) {
  int64_t row = 0;
  for (const data::Split split : data::kSplits) {
    const auto s = static_cast<size_t>(split);
    int64_t in_split = 0;
    for (size_t i = 0; i < ledger.files().size(); ++i) {
      const ContentFile& file = ledger.files()[i];
      const int64_t count = file.rows[s],
                    left = std::max<int64_t>(0, std::min(count, ledger.rows_there() - row));
      ASSIGN_OR_RETURN(const int64_t tokens, ledger.tokens(row, left));
      if (tokens != file.tokens[s] || left != count)
        return fmt::format("{} rows {} to {} of {} ({} tokens in the ledger that the chain names, {} here)",
                           data::split_name(split), in_split, in_split + count - 1, name_of(ledger, i),
                           file.tokens[s], tokens);
      row += count;
      in_split += count;
    }
  }
  return std::string(
      moved ? "rows behind the last source file"
            : "a row whose number of tokens is unchanged; ostro data diff of two stores names it");
}

// NAME.sources says of which file each row is; all but the names follows from the content.
void compare_sources(BundleCheck& check, const LedgerFiles& ledger, const std::string& name) {
  const std::string path = check.path(io::join_path(kLedgerFolder, name + ".sources"));
  const size_t here = ledger.sources().size(), there = ledger.files().size();
  std::array<int64_t, 2> first{};
  for (size_t i = 0; i < std::min(here, there); ++i) {
    const ContentFile& file = ledger.files()[i];
    const LedgerSource& source = ledger.sources()[i];
    if (source.sha256 != file.sha256 || source.rows != file.rows || source.first != first)
      return check.find(
          Verdict::kDiffers,
          fmt::format("{}: line {}, {}: is not file {} of {}.content.json (SHA-256 {} here, {} there)", path,
                      i + 1, source.file, i + 1, name, source.sha256, file.sha256));
    for (size_t s = 0; s < 2; ++s) first[s] += file.rows[s];
  }
  if (here != there)
    check.find(Verdict::kDiffers,
               fmt::format("{} has {} source files, {}.content.json has {}: {} is only {}", path, here, name,
                           there, here < there ? name_of(ledger, here) : ledger.sources()[there].file,
                           here < there ? "there" : "here"));
}

// The rows of one component. `is_named`: the ledger's content is the one that the chain names.
void check_component(BundleCheck& check, const LedgerFiles& ledger, const std::string& name,
                     const std::string& root_in_chain, bool is_named) {
  compare_sources(check, ledger, name);
  const LedgerSum& said = check.manifest.ledger.at(name);
  const int64_t rows = ledger.rows()[0] + ledger.rows()[1];
  const bool moved = ledger.rows_there() != rows;
  const auto root = moved ? Result<std::string>(std::string()) : ledger.root(check.threads);
  if (!root.ok()) {
    check.find(root.error());
  } else if (const std::string& wanted = root_in_chain.empty() ? said.root : root_in_chain; *root != wanted) {
    const auto place = is_named ? changed_source(ledger, moved)
                                : Result<std::string>(fmt::format(
                                      "{}.content.json, too, which says of which source a row is", name));
    check.find(Verdict::kDiffers,
               fmt::format(
                   "{}: {}; what differs: {}", ledger.rows_path(),
                   moved ? fmt::format("has {} rows, {}.content.json has {}", ledger.rows_there(), name, rows)
                         : fmt::format("its rows have the root {}, {} has {}", *root,
                                       root_in_chain.empty() ? "bundle.json" : "the genesis", wanted),
                   place.ok() ? *place : place.error().message()));
  }
  if (said.rows != ledger.rows() || (root.ok() && !moved && said.root != *root))
    check.find(
        Verdict::kDiffers,
        fmt::format(
            "bundle.json: ledger: {}: is not what the ledger's files say: {} and {} rows, root {} there; {} "
            "and {} rows, root {} here",
            name, said.rows[0], said.rows[1], said.root, ledger.rows()[0], ledger.rows()[1],
            root.ok() ? *root : ""));
}

// The ledgers of the components that the chain has, by component; what is missing or cannot be read is found.
std::map<std::string, LedgerFiles> open_ledgers(BundleCheck& check,
                                                const std::map<std::string, std::string>& roots) {
  std::map<std::string, LedgerFiles> out;
  for (const auto& [component, root] : roots) {
    const std::string name = ledger_name(component);
    if (!check.manifest.ledger.contains(name)) {
      check.find(Verdict::kIncomplete,
                 fmt::format("the bundle has no ledger of the data's component {}", component));
      continue;
    }
    // Only files that bundle.json lists are the bundle's, whatever a component is called.
    std::string unlisted;
    for (const char* end : {".rows", ".sources", ".content.json"})
      if (const std::string file = fmt::format("{}/{}{}", kLedgerFolder, name, end);
          unlisted.empty() && !check.manifest.files.contains(file))
        unlisted = file;
    if (!unlisted.empty()) {
      check.find(Verdict::kIncomplete, fmt::format("bundle.json lists no file {}", unlisted));
      continue;
    }
    auto opened = LedgerFiles::open(check.context.fs, check.path(kLedgerFolder), name);
    if (opened.ok())
      out.emplace(component, std::move(*opened));
    else
      check.find(opened.error());
  }
  return out;
}

// The hash of the data of these components, as a genesis has it.
std::string data_hash_of(const std::map<std::string, LedgerFiles>& ledgers,
                         const std::set<std::string>& components) {
  std::map<std::string, std::string> hashes;
  for (const auto& [component, ledger] : ledgers)
    if (component.empty() || components.contains(component)) hashes[component] = ledger.hash();
  return batches::stores_hash(hashes);
}

// Whether the ledgers are of the data that the genesis and the amends name.
bool check_hashes(BundleCheck& check, const std::map<std::string, LedgerFiles>& ledgers,
                  const std::vector<chain::DataRecord>& records) {
  bool are_named = true;
  for (size_t i = 0; i < records.size(); ++i) {
    const chain::DataRecord& record = records[i];
    const auto is_there = [&](const std::string& component) { return ledgers.contains(component); };
    const bool whole = std::all_of(record.components.begin(), record.components.end(), is_there);
    const std::string data = data_hash_of(ledgers, record.components);
    if (data == record.hash) continue;
    are_named = false;
    if (whole)
      check.find(Verdict::kDiffers,
                 fmt::format("{}: the content of the ledger is of other data than the run's: hash {} here, "
                             "{} in the {}",
                             check.path(kLedgerFolder), data, record.hash,
                             i == 0 ? "genesis" : fmt::format("amend after step {}", record.step)));
  }
  return are_named;
}

}  // namespace

void check_ledger(BundleCheck& check) {
  const chain::GenesisEntry& genesis = check.chain->genesis();
  if (check.manifest.ledger.empty())
    return check.find(Verdict::kIncomplete,
                      "the bundle has no ledger of its data (it was published --without_ledger)");
  const size_t before = check.findings();
  const std::vector<chain::DataRecord> records = chain::data_records(*check.chain);
  // A genesis of format 1 has no roots: then the components are those of bundle.json.
  std::map<std::string, std::string> roots = records.back().roots;
  if (genesis.format == 1)
    for (const auto& [name, sum] : check.manifest.ledger)
      roots[check.manifest.ledger.size() == 1 && name == "train" ? "" : name] = "";
  const std::map<std::string, LedgerFiles> ledgers = open_ledgers(check, roots);
  if (check.manifest.ledger.size() > roots.size())
    check.find(Verdict::kDiffers, fmt::format("bundle.json has a ledger of {} components, the chain has {}",
                                              check.manifest.ledger.size(), roots.size()));
  const bool is_named = check_hashes(check, ledgers, records);
  std::array<int64_t, 2> rows{};
  for (const auto& [component, ledger] : ledgers) {
    check_component(check, ledger, ledger_name(component), roots.at(component), is_named);
    for (size_t s = 0; s < 2; ++s) rows[s] += ledger.rows()[s];
  }
  if (check.findings() != before) return;
  check.show(fmt::format("the ledger has the hash{} that the {} has: {} training rows and {} held-out rows",
                         genesis.format == 1 ? "" : " and the roots of rows",
                         records.size() == 1 ? "genesis" : "chain", rows[0], rows[1]));
  if (genesis.format == 1)
    check.leave("that these rows are the run's: a genesis of format 1 has no root of them");
}

}  // namespace ostro::bundle
