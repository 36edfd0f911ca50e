#include "ostro/chain/chain_entry.h"

#include <charconv>
#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/genesis_json.h"

namespace ostro::chain {
namespace {

using Json = nlohmann::json;
using io::JsonFields;

constexpr int kMaxDepth = 64;  // of nested JSON; a foreign file must not exhaust the stack

Result<Json> to_json(const StepEntry& entry) {
  RETURN_IF_ERROR(need_step(entry.step, 1));
  if (!std::isfinite(entry.loss))
    return invalid_argument(fmt::format("chain entry: the loss of step {} is {}", entry.step, entry.loss));
  if (entry.tokens < 0) return invalid_argument(fmt::format("chain entry: {} tokens", entry.tokens));
  RETURN_IF_ERROR(need_hex("batch", entry.batch));
  RETURN_IF_ERROR(need_hex("state", entry.state));
  RETURN_IF_ERROR(need_hex("leaves", entry.leaves, kHashDigits));
  return Json{{"kind", "step"},         {"step", entry.step},   {"loss", hex_float(entry.loss)},
              {"tokens", entry.tokens}, {"batch", entry.batch}, {"state", entry.state},
              {"leaves", entry.leaves}};
}

Result<Json> to_json(const AmendEntry& entry) {
  RETURN_IF_ERROR(need_step(entry.step, 0));
  ASSIGN_OR_RETURN(const std::string difference, canonical_object(entry.difference));
  return Json{{"kind", "amend"}, {"step", entry.step}, {"difference", Json::parse(difference)}};
}

Result<Json> to_json(const CheckpointEntry& entry) {
  RETURN_IF_ERROR(need_step(entry.step, 0));
  RETURN_IF_ERROR(need_hex("name", entry.name, kHashDigits));
  return Json{{"kind", "checkpoint"}, {"step", entry.step}, {"name", entry.name}};
}

Result<StepEntry> parse_step(const JsonFields& fields) {
  StepEntry entry;
  ASSIGN_OR_RETURN(entry.step, fields.integer("step", 1, INT64_MAX));
  ASSIGN_OR_RETURN(const std::string loss, fields.string("loss"));
  const Result<double> value = parse_hex_float(loss);
  if (!value.ok()) return fields.bad("loss", value.error().message());
  entry.loss = *value;
  ASSIGN_OR_RETURN(entry.tokens, fields.integer("tokens", 0, INT64_MAX));
  ASSIGN_OR_RETURN(entry.batch, fields.string("batch"));
  ASSIGN_OR_RETURN(entry.state, fields.string("state"));
  ASSIGN_OR_RETURN(entry.leaves, fields.string("leaves"));
  return entry;
}

Result<AmendEntry> parse_amend(const JsonFields& fields) {
  AmendEntry entry;
  ASSIGN_OR_RETURN(entry.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(const Json* difference, fields.get("difference"));
  entry.difference = canonical_text(*difference);
  return entry;
}

Result<CheckpointEntry> parse_checkpoint(const JsonFields& fields) {
  CheckpointEntry entry;
  ASSIGN_OR_RETURN(entry.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(entry.name, fields.string("name"));
  return entry;
}

Result<ChainEntry> parse_entry(const JsonFields& fields) {
  ASSIGN_OR_RETURN(const std::string kind, fields.string("kind"));
  const auto widen = [](auto result) -> Result<ChainEntry> {
    if (!result.ok()) return result.error();
    return ChainEntry(std::move(*result));
  };
  if (kind == "genesis") return widen(parse_genesis(fields));
  if (kind == "step") return widen(parse_step(fields));
  if (kind == "amend") return widen(parse_amend(fields));
  if (kind == "checkpoint") return widen(parse_checkpoint(fields));
  return fields.bad("kind", fmt::format("is \"{}\", which this version does not know", kind));
}

// Takes a line apart from its beginning on.
struct Scanner {
  std::string_view rest;
  bool ok = true;

  void expect(std::string_view text) {
    ok = ok && rest.starts_with(text);
    if (ok) rest.remove_prefix(text.size());
  }
  std::string_view until(char end) {
    const size_t at = rest.find(end);
    ok = ok && at != std::string_view::npos;
    const std::string_view found = ok ? rest.substr(0, at) : std::string_view();
    if (ok) rest.remove_prefix(at);
    return found;
  }
  int64_t integer(char end) {
    const std::string_view digits = until(end);
    int64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    ok = ok && parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    ok = ok && value >= 0 && (digits.front() != '0' || digits.size() == 1) && digits.front() != '-';
    return value;
  }
};

// The link of a step's line in exactly the form that chain_line gives. Nothing for any other line, which then
// goes the general way and gets its error there. Nearly all lines of a chain are of steps: 100,000 of them
// are read in a quarter of a second, not in a whole one.
std::optional<ChainLink> parse_step_line(std::string_view line, std::string_view previous) {
  Scanner at{line};
  ChainLink link;
  StepEntry entry;
  at.expect("{\"batch\":\"");
  entry.batch = at.until('"');
  at.expect("\",");
  const size_t hash_begin = line.size() - at.rest.size();
  at.expect("\"h\":\"");
  link.hash = at.until('"');
  at.expect("\",");
  const size_t hash_end = line.size() - at.rest.size();
  at.expect("\"kind\":\"step\",\"leaves\":\"");
  entry.leaves = at.until('"');
  at.expect("\",\"loss\":\"");
  const std::string_view loss = at.until('"');
  at.expect("\",\"state\":\"");
  entry.state = at.until('"');
  at.expect("\",\"step\":");
  entry.step = at.integer(',');
  at.expect(",\"tokens\":");
  entry.tokens = at.integer('}');
  at.expect("}");
  if (!at.ok || !at.rest.empty() || entry.step < 1) return std::nullopt;
  if (!is_lower_hex(entry.batch) || !is_lower_hex(entry.state) || !is_lower_hex(entry.leaves, kHashDigits))
    return std::nullopt;
  const Result<double> value = parse_hex_float(loss);  // refuses what hex_float would not write
  if (!value.ok() || !std::isfinite(*value)) return std::nullopt;
  entry.loss = *value;
  Sha256 hash;
  hash.update(previous).update(line.substr(0, hash_begin)).update(line.substr(hash_end));
  if (to_hex(hash.finish()) != link.hash) return std::nullopt;
  link.entry = std::move(entry);
  return link;
}

}  // namespace

Result<std::string> entry_json(const ChainEntry& entry) {
  const Result<Json> json = std::visit([](const auto& e) { return to_json(e); }, entry);
  if (!json.ok()) return json.error();
  return canonical_text(*json);
}

std::string entry_hash(std::string_view previous, std::string_view json) {
  return to_hex(Sha256().update(previous).update(json).finish());
}

std::string chain_line(std::string_view json, std::string_view hash) {
  Json entry = Json::parse(json);
  entry["h"] = hash;
  return canonical_text(entry);
}

Result<ChainLink> parse_chain_line(std::string_view line, std::string_view previous,
                                   const std::string& where) {
  if (std::optional<ChainLink> link = parse_step_line(line, previous)) return std::move(*link);
  bool too_deep = false;
  const auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json json = Json::parse(line, limit_depth, /*allow_exceptions=*/false);
  if (json.is_discarded() || too_deep || !json.is_object())
    return corrupt(fmt::format("{}: not a JSON object", where));
  ASSIGN_OR_RETURN(std::string hash, JsonFields(json, where).string("h"));
  // One value has one text, so that no byte can change without changing the hash.
  if (canonical_text(json) != line)
    return corrupt(fmt::format("{}: not in canonical form; it was altered", where));
  json.erase("h");
  const std::string text = canonical_text(json);
  if (entry_hash(previous, text) != hash) {
    return corrupt(fmt::format(
        "{}: its hash \"h\" is wrong: this entry was altered, or one is missing before it", where));
  }
  ASSIGN_OR_RETURN(ChainEntry entry, parse_entry(JsonFields(json, where)));
  // What was read must be all there is: unknown fields and impossible values end here.
  const Result<std::string> again = entry_json(entry);
  if (!again.ok()) return corrupt(fmt::format("{}: {}", where, again.error().message()));
  if (*again != text) return corrupt(fmt::format("{}: has fields that this version does not know", where));
  return ChainLink{std::move(entry), std::move(hash)};
}

int64_t entry_step(const ChainEntry& entry) {
  struct Step {
    int64_t operator()(const GenesisEntry& e) const { return e.step(); }
    int64_t operator()(const StepEntry& e) const { return e.step; }
    int64_t operator()(const AmendEntry& e) const { return e.step; }
    int64_t operator()(const CheckpointEntry& e) const { return e.step; }
  };
  return std::visit(Step(), entry);
}

}  // namespace ostro::chain
