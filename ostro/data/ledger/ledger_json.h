// JSON forms shared by the ledger and the journal of a build. Includes nlohmann/json.hpp: for .cc files only.
#pragma once

#include <array>
#include <nlohmann/json.hpp>

#include "ostro/data/ledger/ledger.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::data {

using Json = nlohmann::json;

// Counts of rows, tokens and bytes are at most this.
inline constexpr int64_t kMaxCount = INT64_MAX;

// Sorted keys, no spaces: equal values give equal bytes.
std::string canonical(const Json& json);

Json preprocessing_json(const Preprocessing& preprocessing);
Result<Preprocessing> read_preprocessing(const io::JsonFields& fields);

// Names of the fields of ids and weights.
Json fields_json(const StoreFields& fields);

// Path, format, list, size and time of a source.
Json source_json(const SourceFile& source);
Result<SourceFile> read_source(const io::JsonFields& fields);

// Content and counts of a file, without its path.
Json file_content_json(const FileLedger& file);
Status read_file_content(const io::JsonFields& fields, FileLedger& file);

// What the hash of a ledger is taken of: no path, no time, nothing that depends on how the bytes are
// compressed. Of one without its files the list of them is empty.
Json content_json(const StoreLedger& ledger);

// A number for each split.
Result<std::array<int64_t, 2>> read_pair(const io::JsonFields& fields, std::string_view key);

// 64 lower-case hexadecimal digits.
Result<std::string> read_sha256(const io::JsonFields& fields, std::string_view key);

}  // namespace ostro::data
