// Registry: what a lab has registered, as a hash chain: registry.jsonl. Each line names the journal's head at
// that moment, and the journal has a line with its hash: so its place among what was done is fixed both ways.
// One thread uses it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/bundle/parts/signature.h"
#include "ostro/experiment/journal/journal.h"

namespace ostro::lab {

inline constexpr const char* kRegistryFile = "registry.jsonl";

// A line of the registry. Texts are UTF-8.
struct RegistryEntry {
  std::string kind;                            // "register", "beacon", "withdraw", "forecast"
  std::string registration;                    // all but withdraw: SHA-256 of the frozen text
  std::map<std::string, std::string> queries;  // of register
  std::vector<std::string> hypotheses = {};    // of register: their names
  std::vector<std::string> changes = {};       // of register: what differs from the one before
  // Of register: hypotheses that came or changed after a result; of forecast: steps that were done before it.
  std::vector<std::string> late = {};
  std::string value = {};                    // of beacon; of forecast: what it says, for people
  std::string forecast = {}, content = {};   // of forecast: the step, and the hash of what it gave
  std::string hypothesis = {}, reason = {};  // of withdraw
  // Written by append().
  std::string journal = {}, time = {};          // the journal's head then; UTC, as the writer's clock says
  std::string public_key = {}, signature = {};  // PEM, hexadecimal; empty: not signed
  std::string hash = {}, signed_text = {};      // of the line; what the signature is of
};

// Reads a line; nothing for one of another form. `entry` is canonical JSON without "h".
std::optional<RegistryEntry> read_entry(const HashedLine& line, const std::string& previous);
// Where the frozen text of a registration is kept.
std::string frozen_path(const std::string& lab_directory, const std::string& registration);

class Registry {
 public:
  // Reads the registry in a lab's folder; none is an empty one. Errors: kCorrupt, with file and line.
  static Result<Registry> open(io::FileSystem& fs, const std::string& lab_directory);

  // Writes an entry, signed by the key if there is one, and its line in the journal. The time never goes
  // back. Errors: another key than that of the entries before.
  Status append(RegistryEntry entry, Journal& journal, const bundle::SigningKey* key);
  // Writes the journal's line of the last entry, if a kill kept it from being written. The registry has been
  // checked (registry_faults): what is in the journal stays there.
  Status complete(Journal& journal) const;

  const std::vector<RegistryEntry>& entries() const { return entries_; }
  // The last entry that registers; null: none.
  const RegistryEntry* registration() const;
  // The beacon of a registration; empty: none.
  std::string beacon_of(const std::string& registration) const;
  // The reason for which a hypothesis was withdrawn after it was registered last; empty: it was not.
  std::string withdrawn(const std::string& hypothesis) const;
  // The first entry that has this content of a step of kind forecast; null: none.
  const RegistryEntry* forecast(const std::string& step, const std::string& content) const;
  // The entries of a step of kind forecast that `journal` has before a line with the fingerprint of one of
  // these steps, in their order.
  std::vector<const RegistryEntry*> forecasts_before(const std::string& step, const Journal& journal,
                                                     const std::vector<std::string>& fingerprints) const;
  // The hash of the last line; empty for an empty registry.
  std::string head() const { return entries_.empty() ? "" : entries_.back().hash; }

 private:
  explicit Registry(LineChain lines) : lines_(std::move(lines)) {}
  Status take(const HashedLine& line, const std::string& previous);

  LineChain lines_;
  std::vector<RegistryEntry> entries_;
};

}  // namespace ostro::lab
