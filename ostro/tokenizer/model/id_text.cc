#include "ostro/tokenizer/model/id_text.h"

#include <fmt/core.h>

#include <charconv>

#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

// Calls f(line) for every line; returns its first error.
template <typename F>
Status for_each_line(std::string_view text, F&& f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    RETURN_IF_ERROR(f(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

}  // namespace

std::string format_ids(std::span<const uint32_t> ids, bool json) {
  std::string out = json ? "[" : "";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += json ? ", " : " ";
    out += std::to_string(ids[i]);
  }
  if (json) out += "]";
  return out;
}

Result<std::vector<uint32_t>> parse_ids(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto trim = [&line, kBlank] {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
  };
  std::vector<uint32_t> ids;
  trim();
  const bool json = line.starts_with('[');
  if (json) line.remove_prefix(1);
  bool comma = false;  // just read, so an id must follow
  for (trim(); !line.empty() && (line[0] != ']' || comma); trim()) {
    if (json && !ids.empty()) {
      if (line[0] != ',') break;
      line.remove_prefix(1);
      comma = true;
      trim();
    }
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    if (error != std::errc()) break;
    ids.push_back(id);
    comma = false;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
  }
  const bool closed = json && !comma && line.starts_with(']');
  if (closed) {
    line.remove_prefix(1);
    trim();
  }
  if (!line.empty() || closed != json) {
    return invalid_argument(
        fmt::format("token ids: cannot read \"{}\" after {} ids (expected \"1 2 3\" or \"[1, 2, 3]\")",
                    repair_utf8(line.substr(0, 40)), ids.size()));
  }
  return ids;
}

std::string encode_text(const Tokenizer& tokenizer, std::string_view input, bool whole_input, bool json,
                        const EncodeOptions& options) {
  Encoder encoder(tokenizer);
  std::string out;
  std::vector<uint32_t> ids;
  const auto encode = [&](std::string_view text) -> Status {
    ids.clear();
    encoder.encode(text, options, ids);
    out += format_ids(ids, json) + "\n";
    return {};
  };
  check_ok(whole_input ? encode(input) : for_each_line(input, encode));
  return out;
}

Result<std::string> decode_lines(const Tokenizer& tokenizer, std::string_view lines,
                                 bool skip_special_tokens) {
  std::string out;
  RETURN_IF_ERROR(for_each_line(lines, [&](std::string_view line) -> Status {
    ASSIGN_OR_RETURN(const auto ids, parse_ids(line));
    ASSIGN_OR_RETURN(const std::string text, tokenizer.decode_bytes(ids, skip_special_tokens));
    out += text + "\n";
    return {};
  }));
  return out;
}

}  // namespace ostro::tokenizer
