// FileHeader: the first members of the JSON files that Ostro writes and reads again ("format",
// "format_version"), and the checksum at the end of some of them.
//
// Errors name the file: kCorrupt for another format or a wrong checksum, kUnsupported for a version that is
// later than this program's. The functions are pure. Includes nlohmann/json.hpp, so use it in .cc files only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::io {

struct FileHeader {
  std::string_view format;  // the kind of file: "ostro run"
  int64_t version;          // the one that is written, and the latest that is read
};

// An object with these two members, to which the others are added.
nlohmann::ordered_json begin_file(const FileHeader& header);

// Checks that a file that was read has this format, and a version from 1 to this one.
Status check_header(const JsonFields& fields, const FileHeader& latest);

// `text` is an object as nlohmann's dump(2) writes it. The result has a last member "checksum": the SHA-256
// of all bytes before the comma in front of it.
std::string add_checksum(std::string text);

// The object that was given to add_checksum. Errors also for a text without a checksum.
Result<std::string> remove_checksum(std::string_view text, const std::string& path);

}  // namespace ostro::io
