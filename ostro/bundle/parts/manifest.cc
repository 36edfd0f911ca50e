#include "ostro/bundle/parts/manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/genesis_json.h"
#include "ostro/io/files/plain_path.h"

namespace ostro::bundle {
namespace {

using Json = nlohmann::json;
using io::JsonFields;

constexpr const char* kFormat = "ostro bundle";
constexpr int64_t kFormatVersion = 1;

// Texts that this program made or checked.
Json json_of(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

// A member that is kept as the text of its JSON.
Result<std::string> text_field(const JsonFields& fields, std::string_view key, Json::value_t type) {
  ASSIGN_OR_RETURN(const Json* value, fields.get(key));
  if (value->type() != type)
    return fields.bad(key, type == Json::value_t::array ? "is not a list" : "is not an object");
  return chain::canonical_text(*value);
}

Result<ChainFacts> parse_facts(const JsonFields& fields) {
  ChainFacts out;
  ASSIGN_OR_RETURN(out.genesis, fields.sha256("genesis"));
  ASSIGN_OR_RETURN(out.head, fields.sha256("head"));
  ASSIGN_OR_RETURN(out.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.state, fields.sha256("state"));
  ASSIGN_OR_RETURN(out.numerics, fields.string("numerics"));
  ASSIGN_OR_RETURN(out.amends, text_field(fields, "amends", Json::value_t::array));
  ASSIGN_OR_RETURN(out.lineage, text_field(fields, "lineage", Json::value_t::object));
  return out;
}

Status parse_files(const JsonFields& fields, BundleManifest& out) {
  ASSIGN_OR_RETURN(const Json* files, fields.get("files"));
  if (!files->is_object()) return fields.bad("files", "is not an object");
  for (const auto& [path, value] : files->items()) {
    const JsonFields file(value, fmt::format("{}: files: {}", fields.where(), path));
    FileSum& sum = out.files[path];
    ASSIGN_OR_RETURN(sum.bytes, file.integer("bytes", 0, INT64_MAX));
    ASSIGN_OR_RETURN(sum.sha256, file.sha256("sha256"));
    if (!is_listed(path)) return fields.bad("files", fmt::format("lists {}, which it must not", path));
  }
  return {};
}

Status parse_ledger(const JsonFields& fields, BundleManifest& out) {
  ASSIGN_OR_RETURN(const Json* ledger, fields.get("ledger"));
  if (!ledger->is_object()) return fields.bad("ledger", "is not an object");
  for (const auto& [name, value] : ledger->items()) {
    if (!io::is_plain_path(name))
      return fields.bad("ledger", fmt::format("has the name \"{}\", which no component of data has", name));
    const JsonFields one(value, fmt::format("{}: ledger: {}", fields.where(), name));
    LedgerSum& sum = out.ledger[name];
    ASSIGN_OR_RETURN(sum.root, one.sha256("root"));
    constexpr int64_t kMostRows = INT64_MAX / 64;  // of 40 bytes
    ASSIGN_OR_RETURN(sum.rows[0], one.integer("train", 0, kMostRows));
    ASSIGN_OR_RETURN(sum.rows[1], one.integer("validation", 0, kMostRows));
  }
  return {};
}

Status parse_licenses(const JsonFields& fields, BundleManifest& out) {
  ASSIGN_OR_RETURN(const JsonFields licenses, fields.object("licenses"));
  ASSIGN_OR_RETURN(const Json* id, licenses.get("id"));
  if (!id->is_null()) {
    ASSIGN_OR_RETURN(out.license, licenses.string("id"));
  }
  ASSIGN_OR_RETURN(const Json* files, licenses.array("files"));
  for (const Json& file : *files) {
    if (!file.is_string()) return licenses.bad("files", "holds more than strings");
    out.license_files.push_back(file.get<std::string>());
  }
  return {};
}

}  // namespace

bool is_listed(std::string_view path) {
  return path != kSumsFile && path != kManifestFile && !path.starts_with(std::string(kManifestFile) + ".");
}

std::string ledger_name(const std::string& component) { return component.empty() ? "train" : component; }

Result<ChainFacts> facts_of(const chain::Chain& chain, int64_t step) {
  const std::string* state = chain.find_checkpoint(step);
  if (state == nullptr) return not_found(fmt::format("the chain names no state after step {}", step));
  const chain::GenesisEntry& genesis = chain.genesis();
  ChainFacts out{chain.links.front().hash, chain.head(), step, *state, genesis.numerics_version, "", ""};
  Json amends = Json::array();
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry))
      amends.push_back({{"step", amend->step}, {"difference", json_of(amend->difference)}});
  out.amends = chain::canonical_text(amends);
  Json lineage = {{"fork", nullptr}, {"maker", nullptr}, {"origin", nullptr}};
  if (genesis.fork) lineage["fork"] = {{"head", genesis.fork->head}, {"step", genesis.fork->step}};
  if (genesis.maker) lineage["maker"] = {{"head", genesis.maker->head}, {"state", genesis.maker->state}};
  if (genesis.origin) lineage["origin"] = json_of(*genesis.origin);
  out.lineage = chain::canonical_text(lineage);
  return out;
}

std::string manifest_text(const BundleManifest& m) {
  Json json = {{"format", kFormat},
               {"format_version", kFormatVersion},
               {"genesis", m.chain.genesis},
               {"head", m.chain.head},
               {"step", m.chain.step},
               {"state", m.chain.state},
               {"numerics", m.chain.numerics},
               {"amends", json_of(m.chain.amends)},
               {"lineage", json_of(m.chain.lineage)},
               {"files", Json::object()},
               {"ledger", Json::object()},
               {"checkpoints", m.checkpoints},
               {"moments", m.has_moments},
               {"made_by", json_of(m.made_by)}};
  for (const auto& [path, sum] : m.files)
    json["files"][path] = {{"bytes", sum.bytes}, {"sha256", sum.sha256}};
  for (const auto& [name, sum] : m.ledger)
    json["ledger"][name] = {{"root", sum.root}, {"train", sum.rows[0]}, {"validation", sum.rows[1]}};
  json["licenses"] = {{"id", m.license ? Json(*m.license) : Json()}, {"files", m.license_files}};
  return chain::canonical_text(json) + "\n";
}

Result<BundleManifest> parse_manifest(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const Json root, io::parse_json(text, path));
  const JsonFields fields(root, path);
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != kFormat) return fields.bad("format", fmt::format("is \"{}\", not \"{}\"", format, kFormat));
  ASSIGN_OR_RETURN(const int64_t version, fields.integer("format_version", 1, INT64_MAX));
  if (version > kFormatVersion)
    return unsupported(fmt::format("{}: \"format_version\" {} is later than the {} this version reads", path,
                                   version, kFormatVersion));
  BundleManifest out;
  ASSIGN_OR_RETURN(out.chain, parse_facts(fields));
  RETURN_IF_ERROR(parse_files(fields, out));
  RETURN_IF_ERROR(parse_ledger(fields, out));
  RETURN_IF_ERROR(parse_licenses(fields, out));
  ASSIGN_OR_RETURN(out.checkpoints, fields.integers("checkpoints", 0, INT64_MAX));
  if (!std::is_sorted(out.checkpoints.begin(), out.checkpoints.end()))
    return fields.bad("checkpoints", "is not in ascending order");
  ASSIGN_OR_RETURN(out.has_moments, fields.boolean("moments"));
  ASSIGN_OR_RETURN(out.made_by, text_field(fields, "made_by", Json::value_t::object));
  if (manifest_text(out) != text)
    return corrupt(
        fmt::format("{}: is not the canonical JSON of its content (docs/reference/formats/bundle.md): it was "
                    "edited, or holds fields that this version does not know",
                    path));
  return out;
}

std::string sums_text(const std::map<std::string, FileSum>& files, std::string_view text,
                      const std::string& name) {
  std::map<std::string, std::string> sums = {{name, sha256_hex(text)}};
  for (const auto& [path, sum] : files) sums[path] = sum.sha256;
  std::string out;
  for (const auto& [path, sum] : sums) out += fmt::format("{}  {}\n", sum, path);
  return out;
}

}  // namespace ostro::bundle
