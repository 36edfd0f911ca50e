#include "ostro/config/codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ostro/config/foreign_keys.h"

namespace ostro::config {

Result<Duration> parse_duration(const std::string& text) {
  int64_t total = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  if (text.empty()) return invalid_argument("empty duration");
  while (at < end) {
    int64_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    int64_t scale = 0;
    if (error == std::errc() && count >= 0 && next < end)
      scale = *next == 's' ? 1 : *next == 'm' ? 60 : *next == 'h' ? 3600 : *next == 'd' ? 86400 : 0;
    if (scale == 0 || count > 1000000000) return invalid_argument("not a duration like 90s, 15m or 1h30m");
    total += count * scale;
    at = next + 1;
  }
  return Duration{total};
}

std::string format_duration(Duration duration) {
  std::string text;
  int64_t left = duration.seconds;
  for (const auto& [letter, scale] : {std::pair{'d', 86400}, {'h', 3600}, {'m', 60}}) {
    if (left >= scale) text += std::to_string(left / scale) + letter;
    left %= scale;
  }
  if (left > 0 || text.empty()) text += std::to_string(left) + 's';
  return text;
}

Status read_value(const Node& node, const std::string& path, bool* out) {
  if (node.kind != Node::Kind::kBool) return wrong_type(node, path, "true or false");
  *out = node.text[0] == 't' || node.text[0] == 'T';
  return {};
}

namespace {

// A number without the underscores that stand between its digits: "1_000". Other nodes stay as they are.
Node without_underscores(const Node& node) {
  if (node.kind != Node::Kind::kString || node.text.find('_') == std::string::npos) return node;
  const auto is_digit = [&](size_t i) {
    return i < node.text.size() && node.text[i] >= '0' && node.text[i] <= '9';
  };
  std::string text;
  for (size_t i = 0; i < node.text.size(); ++i) {
    if (node.text[i] != '_')
      text += node.text[i];
    else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))
      return node;
  }
  Node number = plain_scalar(text, node.where);
  return number.kind == Node::Kind::kInt || number.kind == Node::Kind::kDouble ? number : node;
}

Result<double> to_double(const std::string& text) {
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  double value = 0;
  if (std::from_chars(begin, end, value).ec != std::errc() || !std::isfinite(value))
    return invalid_argument("too large for a double");
  return value;
}

}  // namespace

// "1e3" and "1_000" are integers, too; "1000.0" and "1.5" are not.
Status read_value(const Node& given, const std::string& path, int64_t* out) {
  const Node node = without_underscores(given);
  if (node.kind == Node::Kind::kDouble && node.text.find_first_of("eE") != std::string::npos) {
    constexpr double kExact = 9007199254740992;  // 2^53: every integer up to it is a double
    const Result<double> value = to_double(node.text);
    if (value.ok() && std::abs(*value) <= kExact && *value == std::floor(*value)) {
      *out = static_cast<int64_t>(*value);
      return {};
    }
  }
  if (node.kind != Node::Kind::kInt) return wrong_type(given, path, "an integer");
  const char* begin = node.text.data() + (node.text[0] == '+' ? 1 : 0);
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(begin, end, *out).ec != std::errc())
    return wrong_type(given, path, "an integer of at most 64 bits");
  return {};
}

Status read_value(const Node& given, const std::string& path, double* out) {
  const Node node = without_underscores(given);
  if (node.kind != Node::Kind::kInt && node.kind != Node::Kind::kDouble)
    return wrong_type(given, path, "a number");
  const Result<double> value = to_double(node.text);
  if (!value.ok()) return wrong_type(given, path, "a finite number that a double can hold");
  *out = *value;
  return {};
}

Status read_value(const Node& node, const std::string& path, std::string* out) {
  // An unquoted number or word is accepted as a string (`id: 12`). null is not.
  if (!node.is_scalar() || node.kind == Node::Kind::kNull) return wrong_type(node, path, "a string");
  *out = node.text;
  return {};
}

Status read_value(const Node& node, const std::string& path, Duration* out) {
  if (node.is_scalar()) {
    if (const Result<Duration> value = parse_duration(node.text); value.ok()) {
      *out = *value;
      return {};
    }
  }
  return wrong_type(node, path, "a duration like 90s, 15m or 1h30m");
}

namespace {

Status read_pairs(const Node& node, const std::string& path, IntMap* out) {
  IntMap values;
  for (const Node& pair : node.items) {
    if (pair.kind != Node::Kind::kList || pair.items.size() != 2)
      return wrong_type(pair, path, "a pair of a name and an integer, like [embed, 16]");
    auto& [name, count] = values.emplace_back();
    RETURN_IF_ERROR(read_value(pair.items[0], path, &name));
    RETURN_IF_ERROR(read_value(pair.items[1], join_path(path, name), &count));
    const auto same =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (&*same != &values.back())
      return invalid_argument(fmt::format("{}{}: is given twice, {} and {}; keep one of them",
                                          pair.where.empty() ? "" : pair.where + ": ", join_path(path, name),
                                          same->second, count));
  }
  *out = std::move(values);
  return {};
}

}  // namespace

Status read_value(const Node& node, const std::string& path, IntMap* out) {
  if (node.kind == Node::Kind::kList) return read_pairs(node, path, out);  // the canonical form
  if (node.kind != Node::Kind::kMap)
    return wrong_type(node, path, "a map of names to integers, like {embed: 16}");
  IntMap values;
  Mistakes mistakes;
  for (const Node& item : node.items) {
    int64_t value = 0;
    const std::string full = join_path(path, item.key);
    if (!mistakes.add(given_once(node, item, full))) continue;
    if (mistakes.add(read_value(item, full, &value))) values.emplace_back(item.key, value);
  }
  *out = std::move(values);
  return mistakes.status();
}

Node write_value(bool value, Write) { return Node::boolean(value); }
Node write_value(int64_t value, Write) { return Node::integer(value); }
Node write_value(double value, Write) { return Node::number(value); }
Node write_value(const std::string& value, Write) { return Node::string(value); }
Node write_value(Duration value, Write) { return Node::string(format_duration(value)); }
Node write_value(const IntMap& value, Write which) {
  // A list of pairs: the order may matter, and canonical JSON sorts the keys of maps.
  if (which == Write::kCanonical) {
    std::vector<Node> pairs;
    for (const auto& [name, count] : value)
      pairs.push_back(Node::list({Node::string(name), Node::integer(count)}));
    return Node::list(std::move(pairs));
  }
  Node map = Node::map();
  for (const auto& [name, count] : value) map.put(name, Node::integer(count));
  return map;
}

std::string type_text(const bool*) { return "true or false"; }
std::string type_text(const int64_t*) { return "integer"; }
std::string type_text(const double*) { return "number"; }
std::string type_text(const std::string*) { return "string"; }
std::string type_text(const Duration*) { return "duration"; }
std::string type_text(const IntMap*) { return "map of integers"; }

Result<size_t> read_word(const Node& node, const std::string& path, const std::vector<std::string>& words) {
  std::string word;
  RETURN_IF_ERROR(read_value(node, path, &word));
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return i;
  return wrong_type(
      node, path, "one of " + join_words(words) + " (the nearest is \"" + nearest_name(word, words) + "\")");
}

std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " | ") + word;
  return text;
}

Result<int64_t> read_stage_step(const Node& stage, const std::string& path, size_t index, int64_t before) {
  if (stage.kind != Node::Kind::kList || stage.items.size() != 2)
    return wrong_type(stage, path, "a stage, [first step, value]");
  int64_t step = 0;
  RETURN_IF_ERROR(read_value(stage.items[0], path + "[0]", &step));
  if (index == 0 ? step != 0 : step <= before)
    return wrong_type(stage.items[0], path + "[0]",
                      index == 0 ? "0, the first step of the run"
                                 : fmt::format("a step above {}, where the stage before begins", before));
  return step;
}

ChosenType chosen_type(const Node& node, const std::string& path, const std::string& current,
                       const std::vector<std::string>& known) {
  const Node* type = node.find("type");
  if (!type) return {current, {}};
  const std::string full = join_path(path, "type");
  std::string name;
  if (const Status read = read_value(*type, full, &name); !read.ok()) return {current, read};
  for (const Node& item : node.items)
    if (item.key == "type")
      if (const Status once = given_once(node, item, full); !once.ok()) return {current, once};
  if (std::find(known.begin(), known.end(), name) != known.end()) return {name, {}};
  const std::string unknown = fmt::format("{}: {}: unknown type \"{}\"", type->where, full, name);
  if (const ForeignKey* row = find_foreign(full, *type)) {
    const std::string ours = row->ours, meant = ours.substr(ours.rfind(' ') + 1);
    const bool is_known = std::find(known.begin(), known.end(), meant) != known.end();
    return {is_known ? meant : current,
            invalid_argument(fmt::format("{}; it is called {} here{}{}", unknown, ours,
                                         *row->text ? "; " : "", row->text))};
  }
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  const std::string nearest = nearest_name(name, known);
  return {edit_distance(name, nearest) <= 2 ? nearest : current,
          invalid_argument(fmt::format("{}; known: {}; the nearest is \"{}\"", unknown, all, nearest))};
}

Node without_type(const Node& node) {
  Node rest = node;
  std::erase_if(rest.items, [](const Node& item) { return item.key == "type"; });
  return rest;
}

Node with_type(const std::string& type, Node section) {
  Node all = Node::map();
  all.put("type", Node::string(type));
  for (Node& item : section.items) all.items.push_back(std::move(item));
  return all;
}

OptionInfo type_key_info(const OptionInfo& self, const std::string& current,
                         const std::vector<std::string>& types) {
  OptionInfo info = self;
  info.path = join_path(self.path, "type");
  info.type.clear();
  info.other_value.clear();
  info.by_content = false;
  info.default_value = current;
  if (!info.left_out_at.empty()) info.left_out_at = current;  // of the section
  for (const std::string& type : types) {
    info.type += (info.type.empty() ? "" : " | ") + type;
    if (type != current && info.other_value.empty()) info.other_value = type;
  }
  return info;
}

}  // namespace ostro::config
