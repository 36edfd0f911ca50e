// placed_errors (config.h): errors about values that depend on each other, with their places.
#include <algorithm>
#include <cctype>
#include <set>

#include "ostro/config/config.h"

namespace ostro::config {
namespace {

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The last names of all dotted paths in a text, and of a type the name of its section: "model.num_heads"
// gives num_heads, "optimizer.type" gives optimizer. `error` has a place before its first ": ". A section
// that the tree has beside a misspelt one is not wrong.
std::set<std::string> names_in(const std::string& error, const Node& tree) {
  std::set<std::string> names;
  const size_t behind = error.find(": ");
  const std::string text = behind == std::string::npos ? error : error.substr(behind + 1);
  const bool is_unknown = text.find("unknown key") != std::string::npos;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && (is_name_letter(text[end]) || text[end] == '.')) ++end;
    std::string word = text.substr(begin, end - begin);
    while (word.ends_with('.')) word.pop_back();
    if (word.ends_with(".type")) word.clear();  // the section was read as the type that is nearest
    // Values are no names: a word without a dot counts in a sentence about an unknown key alone.
    const size_t dot = word.rfind('.');
    const std::string last = word.substr(dot == std::string::npos ? 0 : dot + 1);
    const bool is_key = is_unknown && text.find(" \"" + word + "\"") != std::string::npos &&
                        (dot != std::string::npos || tree.find(word) == nullptr);
    if (!last.empty() && std::isalpha(static_cast<unsigned char>(last[0])) != 0 &&
        (dot != std::string::npos || is_key))
      names.insert(last);
    begin = std::max(end, begin + 1);
  }
  return names;
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) {
    const bool begins = at == 0 || !is_name_letter(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !is_name_letter(text[end]))) return true;
  }
  return false;
}

// The place of the longest beginning of a path that the tree names, empty if it names none; and whether that
// is all of the path.
std::string place_of(const Node& tree, const std::string& path, bool* whole) {
  const Node* at = &tree;
  std::string where;
  *whole = false;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    at = at->find(name.substr(0, name.find('[')));
    if (at == nullptr) return where;
    where = at->where;
    begin = end + 1;
  }
  *whole = true;
  return where;
}

}  // namespace

Status placed_errors(const Status& status, const Node& tree, const Status& read) {
  if (status.ok()) return {};
  std::set<std::string> wrong;
  if (!read.ok())
    for (const std::string& error : split_errors(read.error().message())) wrong.merge(names_in(error, tree));
  Mistakes out;
  for (const std::string& text : split_errors(status.error().message())) {
    const std::string path = text.substr(0, text.find(':'));
    bool is_given = false;
    const std::string where = place_of(tree, path, &is_given);
    // A value that was read is wrong by itself, whatever else is said of its name.
    const bool was_read =
        is_given && (read.ok() || read.error().message().find(": " + path + ": ") == std::string::npos);
    const std::string own = was_read ? path.substr(path.rfind('.') + 1) : "";
    if (std::any_of(wrong.begin(), wrong.end(),
                    [&](const std::string& name) { return name != own && has_word(text, name); }))
      continue;
    out.add(Error(status.error().code(), where.empty() ? text : where + ": " + text));
  }
  return out.status();
}

}  // namespace ostro::config
