// canonical, fields_json, read_source and others: forms of JSON shared by the ledger and the journal of a
// build. Includes nlohmann/json.hpp, so it is for .cc files only.
//
// The read functions give kCorrupt, naming the field, for JSON that is not of the form. Pure functions.
#pragma once

#include <array>
#include <nlohmann/json.hpp>

#include "ostro/data/ledger/ledger.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::data {

using Json = nlohmann::json;

// Upper limit for counts of rows, tokens and bytes.
inline constexpr int64_t kMaxCount = INT64_MAX;

// Sorted keys, no spaces: equal values give equal bytes.
std::string canonical(const Json& json);

Json preprocessing_json(const Preprocessing& preprocessing);
Result<Preprocessing> read_preprocessing(const io::JsonFields& fields);

// The names of the fields that hold ids and weights.
Json fields_json(const StoreFields& fields);

// Path, format, list, size and time of a source file.
Json source_json(const SourceFile& source);
Result<SourceFile> read_source(const io::JsonFields& fields);

// What verdicts left out of a file, which stands beside its path.
Status read_left_out(const io::JsonFields& source, FileLedger& file);

// Content and counts of a file, without its path.
Json file_content_json(const FileLedger& file);
Status read_file_content(const io::JsonFields& fields, FileLedger& file);

// The JSON that a ledger's hash is computed from. It has no paths, no times and nothing that depends on
// compression. For a ledger without files, the list of files is empty.
Json content_json(const StoreLedger& ledger);

// A list of two numbers, one for each split.
Result<std::array<int64_t, 2>> read_pair(const io::JsonFields& fields, std::string_view key);

}  // namespace ostro::data
