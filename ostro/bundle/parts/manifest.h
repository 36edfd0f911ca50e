// BundleManifest: bundle.json, which says what a bundle holds (docs/reference/formats/bundle.md).
//
// A value and pure functions. The text is canonical JSON (docs/reference/formats/chain.md, "Lines") and a
// line feed, so a bundle.json has one text, over which it is signed.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/chain/chain.h"

namespace ostro::bundle {

inline constexpr const char* kManifestFile = "bundle.json";
inline constexpr const char* kCardFile = "README.md";            // the model card
inline constexpr std::string_view kCardHash = "| run hash | `";  // stands before the run hash in it
inline constexpr const char* kSumsFile = "SHA256SUMS";
inline constexpr const char* kRecordFolder = "record";
inline constexpr const char* kScoreFile = "score.ir";  // in the record: the program that scores texts
inline constexpr const char* kLedgerFolder = "ledger";
inline constexpr const char* kLicensesFolder = "licenses";

// Returns true when bundle.json lists a file of the bundle: all but SHA256SUMS, bundle.json and the files
// about it (bundle.json.sig, ...), which are made from its text.
bool is_listed(std::string_view path);

struct FileSum {
  int64_t bytes = 0;
  std::string sha256;  // hexadecimal
  bool operator==(const FileSum&) const = default;
};

// The rows of a component's store.
struct LedgerSum {
  std::string root;               // of the tree of rows (token_store.md), hexadecimal
  std::array<int64_t, 2> rows{};  // by data::Split
  bool operator==(const LedgerSum&) const = default;
};

// The facts of the chain that bundle.json repeats. They are a function of the chain and the published step.
struct ChainFacts {
  std::string genesis, head;   // hashes of the first and of the last entry
  int64_t step = 0;            // the step of the published state
  std::string state;           // its name
  std::string numerics;        // version
  std::string amends = "[]";   // canonical JSON: a list of {"difference", "step"}
  std::string lineage = "{}";  // canonical JSON: "fork", "maker" and "origin" of the genesis
  bool operator==(const ChainFacts&) const = default;
};
// Returns the facts of a chain whose state at `step` is published. Error kNotFound: the chain names no state
// at that step.
Result<ChainFacts> facts_of(const chain::Chain& chain, int64_t step);

struct BundleManifest {
  ChainFacts chain;
  std::map<std::string, FileSum> files;     // by path below the bundle
  std::map<std::string, LedgerSum> ledger;  // by ledger_name(); empty: published without a ledger
  std::vector<int64_t> checkpoints;         // steps of the states in record/checkpoints, ascending
  bool has_moments = true;                  // false: the states there have only their parameters
  std::optional<std::string> license;       // its identifier
  std::vector<std::string> license_files;   // below licenses/
  std::string made_by = "{}";               // canonical JSON: the programs that trained and published
  bool operator==(const BundleManifest&) const = default;
};

// The beginning of the names of a component's ledger files: the component's name, or "train" for the only one
// of a configuration without data.components.
std::string ledger_name(const std::string& component);

std::string manifest_text(const BundleManifest& manifest);
// Reads the text of the file at `path`. Errors: kCorrupt, with the field, or for a text that is not
// canonical; kUnsupported for a later format.
Result<BundleManifest> parse_manifest(std::string_view text, const std::string& path);

// The text of SHA256SUMS for a manifest with this text and name, and the files that it lists.
std::string sums_text(const std::map<std::string, FileSum>& files, std::string_view text,
                      const std::string& name);

}  // namespace ostro::bundle
