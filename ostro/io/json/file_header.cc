#include "ostro/io/json/file_header.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"

namespace ostro::io {
namespace {

constexpr std::string_view kChecksumBegin = ",\n  \"checksum\": \"", kChecksumEnd = "\"\n}\n";
constexpr std::string_view kObjectEnd = "\n}";
constexpr size_t kHexDigits = 64;

}  // namespace

nlohmann::ordered_json begin_file(const FileHeader& header) {
  return {{"format", header.format}, {"format_version", header.version}};
}

Status check_header(const JsonFields& fields, const FileHeader& latest) {
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != latest.format)
    return fields.bad("format", fmt::format("is \"{}\", not \"{}\"", format, latest.format));
  ASSIGN_OR_RETURN(const int64_t version, fields.integer("format_version", 1, INT64_MAX));
  if (version > latest.version)
    return unsupported(fmt::format("{}: \"format_version\" {} is later than the {} this version reads",
                                   fields.where(), version, latest.version));
  return {};
}

std::string add_checksum(std::string text) {
  text.resize(text.size() - kObjectEnd.size());
  const std::string checksum = sha256_hex(text);
  return text.append(kChecksumBegin).append(checksum).append(kChecksumEnd);
}

Result<std::string> remove_checksum(std::string_view text, const std::string& path) {
  const size_t tail = kChecksumBegin.size() + kHexDigits + kChecksumEnd.size();
  if (text.size() < tail) return corrupt(fmt::format("{}: too short, or cut", path));
  const std::string_view body = text.substr(0, text.size() - tail), end = text.substr(body.size());
  if (!end.starts_with(kChecksumBegin) || !end.ends_with(kChecksumEnd))
    return corrupt(fmt::format("{}: does not end in its \"checksum\"; it is cut or was edited", path));
  if (end.substr(kChecksumBegin.size(), kHexDigits) != sha256_hex(body))
    return corrupt(fmt::format("{}: its \"checksum\" is wrong: it is damaged or was edited", path));
  return std::string(body).append(kObjectEnd);
}

}  // namespace ostro::io
