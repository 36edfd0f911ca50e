// placed_errors (config.h): errors about values that depend on each other, with their places.
#include <algorithm>
#include <cctype>
#include <set>

#include "ostro/config/config.h"

namespace ostro::config {
namespace {

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The last names of all dotted paths in a text, and of a type the name of its section: "model.num_heads"
// gives num_heads, "optimizer.type" gives optimizer. `text` is an error with a place before its first ": ".
std::set<std::string> names_in(const std::string& error) {
  std::set<std::string> names;
  const size_t behind = error.find(": ");
  const std::string text = behind == std::string::npos ? error : error.substr(behind + 1);
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && (is_name_letter(text[end]) || text[end] == '.')) ++end;
    std::string word = text.substr(begin, end - begin);
    while (word.ends_with('.')) word.pop_back();
    if (word.ends_with(".type")) word.resize(word.size() - 5);
    const size_t dot = word.rfind('.');
    if (dot != std::string::npos || text.find(" \"" + word + "\"") != std::string::npos)
      names.insert(word.substr(dot == std::string::npos ? 0 : dot + 1));
    begin = std::max(end, begin + 1);
  }
  names.erase("");
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

// The place of the longest beginning of a path that the tree names; empty if it names none.
std::string place_of(const Node& tree, const std::string& path) {
  const Node* at = &tree;
  std::string where;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    at = at->find(name.substr(0, name.find('[')));
    if (at == nullptr) return where;
    where = at->where;
    begin = end + 1;
  }
  return where;
}

}  // namespace

Status placed_errors(const Status& status, const Node& tree, const Status& read) {
  if (status.ok()) return {};
  std::set<std::string> wrong;
  if (!read.ok())
    for (const std::string& error : split_errors(read.error().message())) wrong.merge(names_in(error));
  Mistakes out;
  for (const std::string& text : split_errors(status.error().message())) {
    if (std::any_of(wrong.begin(), wrong.end(),
                    [&](const std::string& name) { return has_word(text, name); }))
      continue;
    const std::string where = place_of(tree, text.substr(0, text.find(':')));
    out.add(Error(status.error().code(), where.empty() ? text : where + ": " + text));
  }
  return out.status();
}

}  // namespace ostro::config
