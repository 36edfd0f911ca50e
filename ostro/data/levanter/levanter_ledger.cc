#include "ostro/data/levanter/levanter_ledger.h"

#include <fmt/core.h>

#include <set>

#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

constexpr int64_t kMaxRows = kMaxCount / 32;  // as in a ledger of ours

Result<LevanterShard> read_shard(const io::JsonFields& ledger, Split split, const std::string& name) {
  const std::string clean = io::clean_path(name);  // one name for each folder
  if (clean.starts_with('/') || !io::path_scheme(clean).empty() || clean == "." ||
      ("/" + clean + "/").find("/../") != std::string::npos)
    return corrupt(fmt::format("{}: shard \"{}\" is not a path below the cache", ledger.where(), name));
  LevanterShard shard{.folder = io::join_path(split_name(split), clean)};
  ASSIGN_OR_RETURN(const io::JsonFields rows, ledger.object("shard_rows"));
  ASSIGN_OR_RETURN(shard.rows, rows.integer(name, 0, kMaxRows));
  if (!ledger.has("field_counts_by_shard")) return shard;
  ASSIGN_OR_RETURN(const io::JsonFields counts, ledger.object("field_counts_by_shard"));
  if (!counts.has(name)) return shard;
  ASSIGN_OR_RETURN(const io::JsonFields fields, counts.object(name));
  ASSIGN_OR_RETURN(const Json* all, counts.get(name));
  for (const auto& [field, count] : all->items()) {
    ASSIGN_OR_RETURN(shard.elements[field], fields.integer(field, 0, kMaxCount));
  }
  return shard;
}

Result<std::optional<LevanterSplit>> read_split_ledger(io::FileSystem& fs, const std::string& place,
                                                       Split split) {
  using Found = std::optional<LevanterSplit>;
  const std::string path = levanter_ledger_path(place, split);
  auto text = fs.read_file(path, int64_t{1} << 32);
  if (!text.ok() && text.error().code() == ErrorCode::kNotFound && split != Split::kTrain) return Found();
  if (!text.ok()) return text.error();
  ASSIGN_OR_RETURN(const Json json, io::parse_json(*text, path));
  const io::JsonFields fields(json, path);
  ASSIGN_OR_RETURN(const bool finished, fields.boolean("is_finished"));
  if (!finished)
    return invalid_argument(
        fmt::format("{}: \"is_finished\" is false; let the program that builds the cache end first", path));
  LevanterSplit out;
  out.metadata = read_levanter_metadata(json, path);
  ASSIGN_OR_RETURN(out.rows, fields.integer("total_num_rows", 0, kMaxRows));
  std::string layout = "consolidated";
  if (fields.has("layout")) {
    ASSIGN_OR_RETURN(layout, fields.string("layout"));
  }
  if (layout == "consolidated") {
    out.shards.push_back({.folder = split_name(split), .rows = out.rows, .elements = {}});
    return Found(std::move(out));
  }
  if (layout != "sharded")
    return unsupported(fmt::format(
        "{}: \"layout\" is \"{}\" where \"consolidated\" or \"sharded\" is expected", path, layout));
  out.is_sharded = true;
  ASSIGN_OR_RETURN(const Json* names, fields.array("finished_shards"));
  std::set<std::string> seen;
  int64_t rows = 0;
  for (const Json& name : *names) {
    if (!name.is_string()) return fields.bad("finished_shards", "has an entry that is not a string");
    ASSIGN_OR_RETURN(LevanterShard shard, read_shard(fields, split, name.get<std::string>()));
    if (!seen.insert(shard.folder).second)
      return fields.bad("finished_shards", fmt::format("has {} twice", shard.folder));
    if (shard.rows > out.rows - rows)
      return fields.bad("shard_rows", fmt::format("are more than the {} of \"total_num_rows\"", out.rows));
    rows += shard.rows;
    out.shards.push_back(std::move(shard));
  }
  if (rows != out.rows)
    return fields.bad("shard_rows", fmt::format("add up to {}, \"total_num_rows\" is {}", rows, out.rows));
  return Found(std::move(out));
}

}  // namespace

std::string levanter_ledger_path(const std::string& place, Split split) {
  return io::join_path(io::join_path(place, split_name(split)), "shard_ledger.json");
}

Result<LevanterLedger> read_levanter_ledger(io::FileSystem& fs, const std::string& place) {
  LevanterLedger ledger;
  for (const Split split : kSplits) {
    ASSIGN_OR_RETURN(ledger[static_cast<size_t>(split)], read_split_ledger(fs, place, split));
  }
  return ledger;
}

std::vector<StorePart> parts_of(const LevanterLedger& ledger) {
  std::vector<StorePart> parts;
  bool any = false;
  for (size_t split = 0; split < ledger.size(); ++split) {
    if (!ledger[split]) continue;
    any |= ledger[split]->is_sharded;
    for (const LevanterShard& shard : ledger[split]->shards) {
      parts.push_back({.folder = shard.folder, .hash = {}});
      parts.back().rows[split] = shard.rows;
    }
  }
  if (!any) parts.clear();
  return parts;
}

}  // namespace ostro::data
