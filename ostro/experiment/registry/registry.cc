#include "ostro/experiment/registry/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/base/hex_digits.h"
#include "ostro/chain/clock_text.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using nlohmann::json;

constexpr int64_t kRegistryFormat = 1;

json entry_json(const RegistryEntry& e) {
  json out = {{"kind", e.kind}, {"journal", e.journal}, {"time", e.time}};
  if (e.kind == "register") {
    out["registration"] = e.registration;
    out["queries"] = e.queries;
    out["hypotheses"] = e.hypotheses;
    out["changes"] = e.changes;
    out["late"] = e.late;
  } else if (e.kind == "beacon") {
    out["registration"] = e.registration;
    out["value"] = e.value;
  } else if (e.kind == "forecast") {
    out["registration"] = e.registration;
    out["forecast"] = e.forecast;
    out["content"] = e.content;
    out["value"] = e.value;
    out["late"] = e.late;
  } else {
    out["hypothesis"] = e.hypothesis;
    out["reason"] = e.reason;
  }
  if (!e.public_key.empty()) out["public_key"] = e.public_key;
  return out;
}

bool is_texts(const json& value) {
  return std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_string(); });
}

}  // namespace

std::optional<RegistryEntry> read_entry(const HashedLine& line, const std::string& previous) {
  json entry = json::parse(line.entry, nullptr, false);
  if (!entry.is_object()) return std::nullopt;
  for (const auto& [key, value] : entry.items()) {
    const bool fits = key == "queries" ? value.is_object() && is_texts(value)
                      : key == "changes" || key == "late" || key == "hypotheses"
                          ? value.is_array() && is_texts(value)
                          : value.is_string();
    if (!fits) return std::nullopt;
  }
  const auto text = [&](const char* key) { return entry.value(key, std::string()); };
  RegistryEntry out{.kind = text("kind"), .registration = text("registration"), .queries = {}};
  if (out.kind != "register" && out.kind != "beacon" && out.kind != "withdraw" && out.kind != "forecast")
    return std::nullopt;
  if (entry.contains("queries")) out.queries = entry["queries"].get<std::map<std::string, std::string>>();
  if (entry.contains("hypotheses")) out.hypotheses = entry["hypotheses"].get<std::vector<std::string>>();
  if (entry.contains("changes")) out.changes = entry["changes"].get<std::vector<std::string>>();
  if (entry.contains("late")) out.late = entry["late"].get<std::vector<std::string>>();
  out.value = text("value");
  out.forecast = text("forecast");
  out.content = text("content");
  out.hypothesis = text("hypothesis");
  out.reason = text("reason");
  out.journal = text("journal");
  out.time = text("time");
  out.public_key = text("public_key");
  out.signature = text("signature");
  entry.erase("signature");
  // A key that is missing or one too many gives another text.
  if (entry != entry_json(out) || out.signature.empty() != out.public_key.empty()) return std::nullopt;
  out.hash = line.hash;
  out.signed_text = previous + line_text(entry);
  return out;
}

std::string frozen_path(const std::string& lab_directory, const std::string& registration) {
  return io::join_path(lab_directory, "plans/" + registration + ".json");
}

Result<Registry> Registry::open(io::FileSystem& fs, const std::string& lab_directory) {
  ASSIGN_OR_RETURN(LineChain lines,
                   LineChain::open(fs, io::join_path(lab_directory, kRegistryFile), "registry"));
  Registry registry(std::move(lines));
  std::string previous;
  for (const HashedLine& line : registry.lines_.lines()) {
    if (const Status taken = registry.take(line, previous); !taken.ok()) return taken.error();
    previous = line.hash;
  }
  return registry;
}

Status Registry::take(const HashedLine& line, const std::string& previous) {
  if (previous.empty()) {
    if (line.entry == line_text({{"kind", "registry"}, {"format", kRegistryFormat}})) return {};
    return unsupported(fmt::format("{}: line 1: this version reads registries of the format {}",
                                   lines_.path(), kRegistryFormat));
  }
  auto entry = read_entry(line, previous);
  if (!entry)
    return corrupt(fmt::format("{}: line {}: is a kind of line that this version does not know",
                               lines_.path(), entries_.size() + 2));
  entries_.push_back(std::move(*entry));
  return {};
}

Status Registry::append(RegistryEntry entry, Journal& journal, const bundle::SigningKey* key) {
  entry.public_key = key == nullptr ? "" : key->public_key().pem();
  if (!entries_.empty() && entries_.back().public_key != entry.public_key)
    return invalid_argument(
        fmt::format("{}: its entries are {}; {}", lines_.path(),
                    entries_.back().public_key.empty() ? "not signed" : "signed by another key",
                    entries_.back().public_key.empty() ? "leave out --sign" : "give that key with --sign"));
  if (lines_.lines().empty())
    RETURN_IF_ERROR(lines_.append({{"kind", "registry"}, {"format", kRegistryFormat}}));
  RETURN_IF_ERROR(journal.begin());
  entry.journal = journal.head();
  entry.time = chain::utc_now();
  if (!entries_.empty()) entry.time = std::max(entry.time, entries_.back().time);
  json text = entry_json(entry);
  const std::string previous = lines_.head();
  if (key != nullptr) text["signature"] = to_hex_digits(key->sign(previous + line_text(text)));
  RETURN_IF_ERROR(lines_.append(text));
  RETURN_IF_ERROR(take(lines_.lines().back(), previous));
  return journal.add_registry(head());
}

Status Registry::complete(Journal& journal) const {
  if (journal.registry().size() + 1 != entries_.size() || entries_.back().journal != journal.head())
    return {};
  return journal.add_registry(head());
}

const RegistryEntry* Registry::registration() const {
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it)
    if (it->kind == "register") return &*it;
  return nullptr;
}

std::string Registry::beacon_of(const std::string& registration) const {
  for (const RegistryEntry& entry : entries_)
    if (entry.kind == "beacon" && entry.registration == registration) return entry.value;
  return "";
}

const RegistryEntry* Registry::forecast(const std::string& step, const std::string& content) const {
  for (const RegistryEntry& entry : entries_)
    if (entry.kind == "forecast" && entry.forecast == step && entry.content == content) return &entry;
  return nullptr;
}

std::vector<const RegistryEntry*> Registry::forecasts_before(
    const std::string& step, const Journal& journal, const std::vector<std::string>& fingerprints) const {
  std::vector<const RegistryEntry*> out;
  for (const RegistryEntry& entry : entries_)
    if (entry.kind == "forecast" && entry.forecast == step &&
        std::none_of(fingerprints.begin(), fingerprints.end(), [&](const std::string& fingerprint) {
          return journal.was_done_before(fingerprint, entry.hash);
        }))
      out.push_back(&entry);
  return out;
}

std::string Registry::withdrawn(const std::string& hypothesis) const {
  std::string reason;
  for (const RegistryEntry& entry : entries_) {
    if (std::find(entry.hypotheses.begin(), entry.hypotheses.end(), hypothesis) != entry.hypotheses.end())
      reason.clear();
    if (entry.kind == "withdraw" && entry.hypothesis == hypothesis) reason = entry.reason;
  }
  return reason;
}

}  // namespace ostro::lab
