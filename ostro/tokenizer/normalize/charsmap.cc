#include "ostro/tokenizer/normalize/charsmap.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "ostro/tokenizer/unicode/unicode_forms.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

static_assert(std::endian::native == std::endian::little);

// A unit has three fields. The low byte is the label of the edge to it (bit 31 marks a value instead). Bit 8
// says that a value follows. Bits 10 and up are the offset of its children, times 256 if bit 9 is set.
uint32_t label(uint32_t unit) { return unit & (0x80000000u | 0xFF); }
bool has_value(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  uint32_t size = 0;
  if (bytes.size() <= sizeof(size)) return corrupt("precompiled charsmap: it has no array");
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size == 0 || size % 4 != 0 || size >= bytes.size() - sizeof(size))
    return corrupt(fmt::format("precompiled charsmap: {} bytes with an array of {}", bytes.size(), size));
  Charsmap out;
  out.units_.resize(size / 4);
  std::memcpy(out.units_.data(), bytes.data() + sizeof(size), size);
  out.replacements_ = bytes.substr(sizeof(size) + size);
  if (out.replacements_.back() != '\0') out.replacements_.push_back('\0');
  if (!is_valid_utf8(out.replacements_)) return corrupt("precompiled charsmap: a replacement is not UTF-8");
  for (int byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    if (byte >= 0x80 || byte == '\r' || out.shortest({&one, 1}).length != 0)
      out.changing_.add(static_cast<uint8_t>(byte));
  }
  return out;
}

bool Charsmap::begins_key(std::string_view bytes) const {
  uint32_t place = offset(units_[0]);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    place ^= byte;
    if (byte == 0 || place >= units_.size() || label(units_[place]) != byte) return false;
    place ^= offset(units_[place]);
  }
  return true;
}

Charsmap::Rule Charsmap::find(std::string_view text, bool stop_at_first) const {
  Rule rule;
  uint32_t place = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    place ^= byte;
    if (byte == 0 || place >= units_.size() || label(units_[place]) != byte) break;
    const uint32_t unit = units_[place];
    place ^= offset(unit);
    if (!has_value(unit)) continue;
    const uint32_t value = place < units_.size() ? units_[place] & 0x7FFFFFFF : 0xFFFFFFFF;
    if (value >= replacements_.size()) break;  // the array is damaged
    rule = {i + 1, std::string_view(replacements_.data() + value)};
    if (stop_at_first) break;
  }
  return rule;
}

void Charsmap::append_by_clusters(std::string_view text, std::string& out) const {
  constexpr size_t kWhole = 6;
  for (size_t i = 0; i < text.size();) {
    // The last byte of a run may belong to a cluster with the bytes that follow.
    const size_t look = changing_.find(text, i), calm = look < text.size() && look > i ? look - 1 : look;
    out.append(text.substr(i, calm - i));
    i = calm;
    if (i == text.size()) break;
    const size_t end = grapheme_end(text, i);
    if (end - i < kWhole) {
      const Rule rule = shortest(text.substr(i, end - i));
      if (rule.length != 0) {
        out.append(rule.replacement);
        i = end;
        continue;
      }
    }
    while (i < end) {
      const std::string_view one = text.substr(i, read_code_point(text.data() + i).length);
      const Rule rule = shortest(one);
      out.append(rule.length != 0 ? rule.replacement : one);
      i += one.size();
    }
  }
}

}  // namespace ostro::tokenizer
