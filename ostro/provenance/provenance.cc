#include "ostro/provenance/provenance.h"

#include <algorithm>
#include <array>

#include "ostro/chain/canonical.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/origin.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::provenance {
namespace {

using Json = nlohmann::json;
using io::JsonFields;

constexpr const char* kFormat = "ostro provenance";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxBytes = int64_t{64} << 20;  // an origin names every file of a release
constexpr std::array kAllMade = {Made::kExport, Made::kMerge, Made::kAdapter, Made::kQuantize,
                                 Made::kConvert};
constexpr std::array kRoles = {"model", "base", "adapter"};

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Json source_json(const Source& source) {
  return {{"role", source.role},
          {"state", source.state},
          {"step", source.step},
          {"head", or_null(source.head)},
          {"genesis", or_null(source.genesis)},
          {"origin", source.origin ? Json::parse(*source.origin) : Json(nullptr)}};
}

Json weights_json(const Weights& weights) {
  Json json = {{"layout", weights.layout}, {"dtype", weights.dtype}};
  if (weights.shard_bytes) json["shard_bytes"] = *weights.shard_bytes;
  if (weights.base) json["base"] = *weights.base;
  if (weights.hash) json["base_parameters"] = *weights.hash;
  if (weights.tokenizer) json["tokenizer"] = *weights.tokenizer;
  return json;
}

Result<std::optional<std::string>> hash_or_null(const JsonFields& fields, const char* key) {
  ASSIGN_OR_RETURN(const Json* value, fields.get(key));
  if (value->is_null()) return std::optional<std::string>();
  ASSIGN_OR_RETURN(std::string text, fields.sha256(key));
  return std::optional(std::move(text));
}

// Text that may be left out.
Result<std::optional<std::string>> text_if(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) return std::optional<std::string>();
  ASSIGN_OR_RETURN(std::string text, fields.string(key));
  return std::optional(std::move(text));
}

Result<std::optional<std::string>> hash_if(const JsonFields& fields, const char* key) {
  if (!fields.has(key)) return std::optional<std::string>();
  ASSIGN_OR_RETURN(std::string text, fields.sha256(key));
  return std::optional(std::move(text));
}

// An error for a member that this version does not know: a reader that passed it over would check less than
// the file says.
Status only(const Json& object, const std::string& where, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return corrupt(fmt::format("{}: \"{}\" is no member of this format", where, key));
  return {};
}

// A name below the directory: programs that check it open such a file.
bool is_name_below(const std::string& name) {
  return !name.empty() && name.front() != '/' && io::path_scheme(name).empty() &&
         io::clean_path(name) == name && ("/" + name + "/").find("/../") == std::string::npos &&
         name != "." && name != kProvenanceFile;
}

Result<std::map<std::string, FileDigest>> parse_files(const JsonFields& root) {
  std::map<std::string, FileDigest> out;
  ASSIGN_OR_RETURN(const JsonFields names, root.object("files"));
  ASSIGN_OR_RETURN(const Json* files, root.get("files"));
  for (const auto& [name, value] : files->items()) {
    if (!is_name_below(name)) return root.bad("files", fmt::format("has the name \"{}\"", name));
    const JsonFields fields(value, fmt::format("{}: {}", names.where(), name));
    FileDigest digest;
    ASSIGN_OR_RETURN(digest.bytes, fields.integer("bytes", 0, INT64_MAX));
    ASSIGN_OR_RETURN(digest.sha256, fields.sha256("sha256"));
    RETURN_IF_ERROR(only(value, fields.where(), {"bytes", "sha256"}));
    out.emplace(name, std::move(digest));
  }
  return out;
}

Result<Weights> parse_weights(const JsonFields& root) {
  ASSIGN_OR_RETURN(const JsonFields fields, root.object("weights"));
  ASSIGN_OR_RETURN(const Json* json, root.get("weights"));
  RETURN_IF_ERROR(only(*json, fields.where(),
                       {"layout", "dtype", "shard_bytes", "base", "base_parameters", "tokenizer"}));
  Weights out;
  ASSIGN_OR_RETURN(out.layout, fields.string("layout"));
  ASSIGN_OR_RETURN(out.dtype, fields.string("dtype"));
  if (fields.has("shard_bytes")) {
    ASSIGN_OR_RETURN(out.shard_bytes, fields.integer("shard_bytes", 1, INT64_MAX));
  }
  ASSIGN_OR_RETURN(out.base, text_if(fields, "base"));
  ASSIGN_OR_RETURN(out.hash, hash_if(fields, "base_parameters"));
  ASSIGN_OR_RETURN(out.tokenizer, hash_if(fields, "tokenizer"));
  return out;
}

Result<Source> parse_source(const Json& json, const std::string& where) {
  const JsonFields fields(json, where);
  Source out;
  ASSIGN_OR_RETURN(out.role, fields.string("role"));
  if (std::find(kRoles.begin(), kRoles.end(), out.role) == kRoles.end())
    return fields.bad("role", fmt::format("is \"{}\", none of model, base and adapter", out.role));
  ASSIGN_OR_RETURN(out.state, fields.sha256("state"));
  ASSIGN_OR_RETURN(out.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.head, hash_or_null(fields, "head"));
  ASSIGN_OR_RETURN(out.genesis, hash_or_null(fields, "genesis"));
  ASSIGN_OR_RETURN(const Json* origin, fields.get("origin"));
  if (!origin->is_null()) {
    ASSIGN_OR_RETURN(out.origin, chain::canonical_object(origin->dump()));
  }
  RETURN_IF_ERROR(only(json, where, {"role", "state", "step", "head", "genesis", "origin"}));
  return out;
}

Result<Made> made_of(const JsonFields& root) {
  ASSIGN_OR_RETURN(const std::string word, root.string("made"));
  for (const Made made : kAllMade)
    if (word == made_word(made)) return made;
  return root.bad("made", fmt::format("is \"{}\", which this format does not have", word));
}

}  // namespace

const char* made_word(Made made) {
  switch (made) {
    case Made::kExport: return "export";
    case Made::kMerge: return "merge";
    case Made::kAdapter: return "adapter";
    case Made::kQuantize: return "quantize";
    case Made::kConvert: return "convert";
  }
  return "";
}

std::string provenance_text(const Provenance& provenance) {
  Json files = Json::object(), sources = Json::array();
  for (const auto& [name, digest] : provenance.files)
    files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  for (const Source& source : provenance.sources) sources.push_back(source_json(source));
  const Json root = {{"format", kFormat},
                     {"format_version", kVersion},
                     {"made", made_word(provenance.made)},
                     {"numerics", provenance.numerics},
                     {"files", std::move(files)},
                     {"weights", weights_json(provenance.weights)},
                     {"sources", std::move(sources)}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Provenance> parse_provenance(std::string_view text, const std::string& where) {
  ASSIGN_OR_RETURN(const Json json, io::parse_json(text, where));
  const JsonFields root(json, where);
  ASSIGN_OR_RETURN(const std::string format, root.string("format"));
  if (format != kFormat) return root.bad("format", fmt::format("is \"{}\", not \"{}\"", format, kFormat));
  ASSIGN_OR_RETURN(const int64_t version, root.integer("format_version", 1, INT64_MAX));
  if (version > kVersion)
    return unsupported(fmt::format("{}: \"format_version\" {} is later than the {} that this version reads",
                                   where, version, kVersion));
  RETURN_IF_ERROR(
      only(json, where, {"format", "format_version", "made", "numerics", "files", "weights", "sources"}));
  Provenance out;
  ASSIGN_OR_RETURN(out.made, made_of(root));
  ASSIGN_OR_RETURN(out.numerics, root.string("numerics"));
  ASSIGN_OR_RETURN(out.files, parse_files(root));
  ASSIGN_OR_RETURN(out.weights, parse_weights(root));
  ASSIGN_OR_RETURN(const Json* sources, root.array("sources"));
  for (size_t i = 0; i < sources->size(); ++i) {
    ASSIGN_OR_RETURN(Source source, parse_source((*sources)[i], fmt::format("{}: sources[{}]", where, i)));
    out.sources.push_back(std::move(source));
  }
  if (out.sources.empty()) return root.bad("sources", "is empty");
  if (provenance_text(out) != text)
    return corrupt(fmt::format("{}: is not canonical JSON with one line feed; it was edited", where));
  return out;
}

Result<std::optional<Provenance>> read_provenance(io::FileSystem& fs, const std::string& directory) {
  const std::string path = io::join_path(directory, kProvenanceFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there) return std::optional<Provenance>();
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMaxBytes));
  ASSIGN_OR_RETURN(Provenance out, parse_provenance(text, path));
  return std::optional(std::move(out));
}

Result<Source> source_of(io::FileSystem& fs, const std::string& checkpoint, const std::string& run,
                         const std::string& role) {
  ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, checkpoint::read_manifest(fs, checkpoint));
  Source out{role, manifest.name, manifest.info.step, {}, {}, {}};
  if (!manifest.info.chain_head.empty()) out.head = manifest.info.chain_head;
  if (run.empty()) {
    ASSIGN_OR_RETURN(out.origin, chain::read_origin(fs, checkpoint));
    return out;
  }
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(run, chain::kChainFile)));
  out.genesis = chain.links.front().hash;
  if (chain.genesis().origin) {
    ASSIGN_OR_RETURN(out.origin, chain::canonical_object(*chain.genesis().origin));
  }
  return out;
}

Result<std::optional<Source>> made_from(const std::string& origin, const std::string& where) {
  ASSIGN_OR_RETURN(const Json json, io::parse_json(origin, where));
  const JsonFields root(json, where);
  if (!root.has("from")) return std::optional<Source>();
  ASSIGN_OR_RETURN(const JsonFields from, root.object("from"));
  Source out{"model", {}, 0, {}, {}, {}};
  ASSIGN_OR_RETURN(out.state, from.sha256("state"));
  ASSIGN_OR_RETURN(out.step, from.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.head, hash_if(from, "head"));
  ASSIGN_OR_RETURN(out.genesis, hash_if(from, "genesis"));
  return std::optional(std::move(out));
}

std::string from_json(const Source& source) {
  Json json = {{"state", source.state}, {"step", source.step}};
  if (source.head) json["head"] = *source.head;
  if (source.genesis) json["genesis"] = *source.genesis;
  return json.dump();
}

}  // namespace ostro::provenance
