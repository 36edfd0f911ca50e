#include "ostro/data/options/document_name.h"

#include <fmt/format.h>

#include <charconv>

namespace ostro::data {

Result<DocumentName> parse_document_name(std::string_view text) {
  const size_t colon = text.rfind(':');
  DocumentName name;
  if (colon != std::string_view::npos && colon > 0) {
    const char* const end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data() + colon + 1, end, name.number);
    name.file = text.substr(0, colon);
    if (failed == std::errc() && stop == end && name.number >= 1) return name;
  }
  return invalid_argument(fmt::format(
      "\"{}\" names no document; use FILE:N, a source file and the document's number in it, from 1", text));
}

}  // namespace ostro::data
