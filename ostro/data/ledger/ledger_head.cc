#include "ostro/data/ledger/ledger_head.h"

#include <fmt/core.h>

#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

Status read_type(const io::JsonFields& fields, const char* key, ElementType& type) {
  ASSIGN_OR_RETURN(const std::string name, fields.string(key));
  const std::optional<ElementType> known = parse_element(name);
  if (!known) return fields.bad(key, "is not a type of elements");
  type = *known;
  return {};
}

// `types` is the JSON of a split: type by array.
Status read_array(const io::JsonFields& content, const io::JsonFields& types, const ArrayPlace& place,
                  ArrayLedger& array) {
  ASSIGN_OR_RETURN(const io::JsonFields fields, content.object(place.path));
  ASSIGN_OR_RETURN(array.elements, fields.integer("elements", 0, kMaxCount));
  ASSIGN_OR_RETURN(array.chunk, fields.integer("chunk", 2, int64_t{1} << 27));
  ASSIGN_OR_RETURN(array.sha256, fields.sha256("sha256"));
  RETURN_IF_ERROR(read_type(types, place.path.c_str(), array.type));
  if (place.id == ArrayId::kOffsets && array.type != ElementType::kInt64)
    return content.bad(place.path, "is not of int64");
  if (place.id != ArrayId::kWeights && !is_integer(array.type))
    return content.bad(place.path, "is not of integers");
  return {};
}

Status read_split(const io::JsonFields& fields, const io::JsonFields& types, const StoreLedger& ledger,
                  SplitLedger& split) {
  // each row has 32 elements, its hash
  ASSIGN_OR_RETURN(split.rows, fields.integer("rows", 0, kMaxCount / 32));
  ASSIGN_OR_RETURN(split.tokens, fields.integer("tokens", 0, kMaxCount));
  ASSIGN_OR_RETURN(split.bytes, fields.integer("bytes", 0, kMaxCount));
  ASSIGN_OR_RETURN(const io::JsonFields arrays, fields.object("arrays"));
  for (const ArrayPlace& place : ledger.places()) {
    ArrayLedger& array = split.array(place.id);
    RETURN_IF_ERROR(read_array(arrays, types, place, array));
    // A Levanter cache may lack a split.
    const bool absent = !ledger.levanter_cache.empty() && split.rows == 0 && array.elements == 0;
    if (!absent && array.elements != array_elements(place.id, split.rows, split.tokens,
                                                    ledger.preprocessing.fields.weights))
      return arrays.bad(place.path,
                        fmt::format("has {} elements, which does not fit the split's {} rows and {} tokens",
                                    array.elements, split.rows, split.tokens));
  }
  return {};
}

// Reads the parts. Checks that their rows and tokens add up to those of the splits.
Status read_parts(const io::JsonFields& all, StoreLedger& ledger) {
  ASSIGN_OR_RETURN(const Json* list, all.array("parts"));
  if (list->empty()) return all.bad("parts", "is empty");
  std::array<int64_t, 2> rows{}, tokens{};
  for (const Json& entry : *list) {
    const io::JsonFields fields(entry, fmt::format("{}: parts[{}]", all.where(), ledger.parts.size()));
    StorePart part;
    ASSIGN_OR_RETURN(part.folder, fields.string("folder"));
    ASSIGN_OR_RETURN(part.rows, read_pair(fields, "rows"));
    ASSIGN_OR_RETURN(part.tokens, read_pair(fields, "tokens"));
    if (ledger.levanter_cache.empty()) {
      ASSIGN_OR_RETURN(part.hash, fields.sha256("hash"));
    }
    for (size_t s = 0; s < 2; ++s) {
      if (part.rows[s] > ledger.splits[s].rows - rows[s] ||
          part.tokens[s] > ledger.splits[s].tokens - tokens[s])
        return fields.bad("rows", "or \"tokens\" are more than the store has");
      rows[s] += part.rows[s];
      tokens[s] += part.tokens[s];
    }
    ledger.parts.push_back(std::move(part));
  }
  for (size_t s = 0; s < 2; ++s)
    if (rows[s] != ledger.splits[s].rows || tokens[s] != ledger.splits[s].tokens)
      return all.bad("parts",
                     fmt::format("have {} rows and {} tokens, where the split has {} and {}", rows[s],
                                 tokens[s], ledger.splits[s].rows, ledger.splits[s].tokens));
  return {};
}

}  // namespace

Status check_ledger_format(const std::string& format, const std::string& path) {
  if (format == kLedgerFormat3 || format == kLedgerFormat) return {};
  return unsupported(
      fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\" and \"{}\". To build the "
                  "store again, remove the folder {} and run: ostro data build --config ...",
                  path, format, kLedgerFormat3, kLedgerFormat, io::parent_path(path)));
}

Result<StoreLedger> read_ledger_head(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(const Json json, io::parse_json(text, path));
  const io::JsonFields all(json, path);
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  StoreLedger head;
  head.has_files = false;
  if (format != kLedgerFormat3) {
    ASSIGN_OR_RETURN(head.root, all.sha256("root"));
  }
  ASSIGN_OR_RETURN(const io::JsonFields content, all.object("content"));
  ASSIGN_OR_RETURN(const io::JsonFields types, all.object("types"));
  if (all.has("levanter_cache")) {
    ASSIGN_OR_RETURN(head.levanter_cache, all.string("levanter_cache"));
    if (head.levanter_cache.empty()) return all.bad("levanter_cache", "is empty");
    if (all.has("levanter_tokenizer")) {
      ASSIGN_OR_RETURN(head.levanter_tokenizer, all.string("levanter_tokenizer"));
    }
  }
  ASSIGN_OR_RETURN(const io::JsonFields preprocessing,
                   (head.levanter_cache.empty() ? content : all).object("preprocessing"));
  ASSIGN_OR_RETURN(head.preprocessing, read_preprocessing(preprocessing));
  ASSIGN_OR_RETURN(const io::JsonFields splits, content.object("splits"));
  for (const Split split : kSplits) {
    ASSIGN_OR_RETURN(const io::JsonFields fields, splits.object(split_name(split)));
    ASSIGN_OR_RETURN(const io::JsonFields own, types.object(split_name(split)));
    RETURN_IF_ERROR(read_split(fields, own, head, head.split(split)));
  }
  if (all.has("parts")) RETURN_IF_ERROR(read_parts(all, head));
  return head;
}

}  // namespace ostro::data
