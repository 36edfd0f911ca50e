#include "ostro/chain/genesis.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ostro/chain/canonical.h"
#include "ostro/chain/genesis_json.h"
#include "ostro/chain/version.h"
#include "ostro/io/files/plain_path.h"

namespace ostro::chain {
namespace {

using Json = nlohmann::json;
using io::JsonFields;

// An object of strings and integers.
Result<Json> options_json(const std::string& options) {
  ASSIGN_OR_RETURN(const std::string canonical, canonical_object(options));
  Json json = Json::parse(canonical);
  for (const auto& [name, value] : json.items())
    if (!value.is_string() && !value.is_number_integer())
      return invalid_argument(fmt::format(
          "chain entry: numerics_options.{} is {}, neither a string nor an integer", name, value.dump()));
  return json;
}

// What both formats have where it is needed: null in format 2 where it is not, left out in format 1.
Status add_optional(const GenesisEntry& entry, Json& json) {
  const bool always = entry.format > 1;
  for (const char* key : {"fork", "initial", "origin", "reference"})
    if (always) json[key] = nullptr;
  if (entry.fork) {
    RETURN_IF_ERROR(need_hex("fork.head", entry.fork->head, kHashDigits));
    RETURN_IF_ERROR(need_step(entry.fork->step, 0));
    json["fork"] = {{"head", entry.fork->head}, {"step", entry.fork->step}};
  }
  if (entry.initial) {
    RETURN_IF_ERROR(need_hex("initial", *entry.initial, kHashDigits));
    json["initial"] = *entry.initial;
  }
  if (entry.reference) {
    RETURN_IF_ERROR(need_hex("reference", *entry.reference, kHashDigits));
    json["reference"] = *entry.reference;
  }
  if (entry.origin) {
    ASSIGN_OR_RETURN(const std::string origin, canonical_object(*entry.origin));
    json["origin"] = Json::parse(origin);
  }
  return {};
}

// Readers open files of these names. The only store of a configuration without components has none.
bool names_component(const std::string& name, size_t count) {
  return (name.empty() && count == 1) || io::is_plain_path(name);
}
std::string no_component(const std::string& name) {
  return fmt::format(
      "has the name \"{}\", which no component of data has: letters, digits, _, - and . (not first), in "
      "parts separated by /",
      name);
}

// What only format 2 has.
Status add_format_2(const GenesisEntry& entry, Json& json) {
  ASSIGN_OR_RETURN(Json options, options_json(entry.numerics_options));
  if (entry.format == 1) {
    if (options.empty() && entry.data_roots.empty() && !entry.maker) return {};
    return invalid_argument(
        "chain entry: a genesis of format 1 has no numerics options, roots of data or maker; they need "
        "format 2");
  }
  json["numerics_options"] = std::move(options);
  json["data_roots"] = Json::object();
  for (const auto& [name, root] : entry.data_roots) {
    if (!names_component(name, entry.data_roots.size()))
      return invalid_argument(fmt::format("chain entry: \"data_roots\" {}", no_component(name)));
    RETURN_IF_ERROR(need_hex(fmt::format("data_roots.{}", name).c_str(), root, kHashDigits));
    json["data_roots"][name] = root;
  }
  json["maker"] = nullptr;
  if (!entry.maker) return {};
  RETURN_IF_ERROR(need_hex("maker.head", entry.maker->head, kHashDigits));
  RETURN_IF_ERROR(need_hex("maker.state", entry.maker->state, kHashDigits));
  json["maker"] = {{"head", entry.maker->head}, {"state", entry.maker->state}};
  return {};
}

// Whether the entry has the field, which in format 2 stands there as null where it is empty.
Result<bool> has_value(const JsonFields& fields, const char* key, int64_t format) {
  if (format == 1) return fields.has(key);
  ASSIGN_OR_RETURN(const Json* value, fields.get(key));
  return !value->is_null();
}

Status read_optional(const JsonFields& fields, GenesisEntry& entry) {
  ASSIGN_OR_RETURN(const bool is_fork, has_value(fields, "fork", entry.format));
  if (is_fork) {
    ASSIGN_OR_RETURN(const JsonFields fork, fields.object("fork"));
    entry.fork.emplace();
    ASSIGN_OR_RETURN(entry.fork->head, fork.string("head"));
    ASSIGN_OR_RETURN(entry.fork->step, fork.integer("step", 0, INT64_MAX));
  }
  for (const auto& [key, value] : {std::pair("initial", &entry.initial), {"reference", &entry.reference}}) {
    ASSIGN_OR_RETURN(const bool there, has_value(fields, key, entry.format));
    if (!there) continue;
    ASSIGN_OR_RETURN(*value, fields.string(key));
  }
  ASSIGN_OR_RETURN(const bool imported, has_value(fields, "origin", entry.format));
  if (!imported) return {};
  ASSIGN_OR_RETURN(const Json* origin, fields.get("origin"));
  entry.origin = canonical_text(*origin);
  return {};
}

Status read_format_2(const JsonFields& fields, GenesisEntry& entry) {
  ASSIGN_OR_RETURN(const Json* options, fields.get("numerics_options"));
  entry.numerics_options = canonical_text(*options);
  RETURN_IF_ERROR(fields.object("data_roots"));
  ASSIGN_OR_RETURN(const Json* roots, fields.get("data_roots"));
  for (const auto& [name, root] : roots->items()) {
    if (!root.is_string()) return fields.bad("data_roots", "holds more than strings");
    if (!names_component(name, roots->size())) return fields.bad("data_roots", no_component(name));
    entry.data_roots[name] = root.get<std::string>();
  }
  ASSIGN_OR_RETURN(const bool has_maker, has_value(fields, "maker", entry.format));
  if (!has_maker) return {};
  ASSIGN_OR_RETURN(const JsonFields maker, fields.object("maker"));
  entry.maker.emplace();
  ASSIGN_OR_RETURN(entry.maker->head, maker.string("head"));
  ASSIGN_OR_RETURN(entry.maker->state, maker.string("state"));
  return {};
}

}  // namespace

Status need_hex(const char* field, const std::string& text, size_t digits) {
  if (is_lower_hex(text, digits)) return {};
  return invalid_argument(fmt::format("chain entry: \"{}\" is \"{}\", not {}lower-case hexadecimal digits",
                                      field, text, digits == 0 ? "" : fmt::format("{} ", digits)));
}

Status need_step(int64_t step, int64_t low) {
  if (step >= low) return {};
  return invalid_argument(fmt::format("chain entry: step {} is below {}", step, low));
}

std::string canonical_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> to_json(const GenesisEntry& entry) {
  RETURN_IF_ERROR(need_hex("program", entry.program_hash, kHashDigits));
  RETURN_IF_ERROR(need_hex("data", entry.data_hash, kHashDigits));
  RETURN_IF_ERROR(need_hex("tokenizer", entry.tokenizer_hash, kHashDigits));
  ASSIGN_OR_RETURN(const std::string config, canonical_object(entry.config));
  Json json = {{"kind", "genesis"},
               {"format", entry.format},
               {"numerics", entry.numerics_version},
               {"program", entry.program_hash},
               {"config", Json::parse(config)},
               {"data", entry.data_hash},
               {"tokenizer", entry.tokenizer_hash}};
  RETURN_IF_ERROR(add_optional(entry, json));
  RETURN_IF_ERROR(add_format_2(entry, json));
  return json;
}

Result<GenesisEntry> parse_genesis(const JsonFields& fields) {
  GenesisEntry entry;
  ASSIGN_OR_RETURN(entry.format, fields.integer("format", 1, INT64_MAX));
  if (entry.format > kChainFormat)
    return unsupported(
        fmt::format("{}: format {} is later than {}, the last that this program reads; a later "
                    "program reads it",
                    fields.where(), entry.format, kChainFormat));
  ASSIGN_OR_RETURN(entry.numerics_version, fields.string("numerics"));
  ASSIGN_OR_RETURN(entry.program_hash, fields.string("program"));
  ASSIGN_OR_RETURN(const Json* config, fields.get("config"));
  entry.config = canonical_text(*config);
  ASSIGN_OR_RETURN(entry.data_hash, fields.string("data"));
  ASSIGN_OR_RETURN(entry.tokenizer_hash, fields.string("tokenizer"));
  RETURN_IF_ERROR(read_optional(fields, entry));
  if (entry.format > 1) RETURN_IF_ERROR(read_format_2(fields, entry));
  return entry;
}

Status check_computable(const GenesisEntry& genesis, const std::string& run) {
  if (genesis.numerics_version != kNumericsVersion)
    return unsupported(fmt::format("{}: the run has numerics version {}; this program computes version {}",
                                   run, genesis.numerics_version, kNumericsVersion));
  const std::array known = {"{}",        kIntegerProducts,      kIntegerAttention, kIntegersEverywhere,
                            kTensorRule, kTensorRuleAndIntegers};
  if (std::find(known.begin(), known.end(), genesis.numerics_options) == known.end())
    return unsupported(fmt::format("{}: the run has the numerics options {}; this program computes {}", run,
                                   genesis.numerics_options, fmt::join(known, " or ")));
  if (genesis.fork && !genesis.initial)
    return corrupt(
        fmt::format("{}: the genesis says that the run is a fork of {} after step {}, and has no name of the "
                    "state that it began with",
                    run, genesis.fork->head, genesis.fork->step));
  return {};
}

}  // namespace ostro::chain
