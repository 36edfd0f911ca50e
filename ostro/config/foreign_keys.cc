#include "ostro/config/foreign_keys.h"

#include <fmt/core.h>

#include <string_view>

namespace ostro::config {
namespace {

using enum ForeignKey::Kind;

#include "ostro/config/foreign_key_tables.inc"

bool in_section(const std::string& path, std::string_view section) {
  if (section.empty()) return true;
  if (section == "-") return path.find('.') == std::string::npos;
  return path.starts_with(section) && path.size() > section.size() && path[section.size()] == '.';
}

}  // namespace

bool is_off(const Node& value) {
  switch (value.kind) {
    case Node::Kind::kNull: return true;
    case Node::Kind::kBool: return value.text[0] == 'f' || value.text[0] == 'F';
    case Node::Kind::kInt:
    case Node::Kind::kDouble: return value.text.find_first_of("123456789") == std::string::npos;
    case Node::Kind::kString:
      return value.text.empty() || value.text == "no" || value.text == "none" || value.text == "off";
    default: return value.items.empty();
  }
}

const ForeignKey* find_foreign(const std::string& path, const Node& value) {
  const size_t dot = path.rfind('.');
  const std::string_view key = std::string_view(path).substr(dot == std::string::npos ? 0 : dot + 1);
  for (const ForeignKey& row : kRows) {
    if (key != row.key || !in_section(path, row.section)) continue;
    const std::string_view wanted = row.value == nullptr ? "" : row.value;
    if (row.value == nullptr || (wanted == "off" ? is_off(value) : value.is_scalar() && value.text == wanted))
      return &row;
  }
  return nullptr;
}

std::string foreign_text(const ForeignKey& row, const std::string& path) {
  const std::string_view text = row.text;
  const std::string reason = text.empty() ? "" : fmt::format("; {}", text);
  switch (row.kind) {
    case kRenamed: return fmt::format("unknown key \"{}\"; it is called {} here{}", path, row.ours, reason);
    case kNone: return fmt::format("{} is refused: {}", path, row.text);
    case kNoEffect: return fmt::format("{} has no effect here{}", path, reason);
  }
  return {};
}

}  // namespace ostro::config
