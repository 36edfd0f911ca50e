#include "ostro/init/import_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "ostro/config/foreign_keys.h"
#include "ostro/config/options.h"
#include "ostro/init/import_parts.h"

namespace ostro::init {

using config::find_foreign;
using config::flow_text;
using config::ForeignKey;
using config::Node;
using config::plain_scalar;

void put_path(Node& tree, const std::string& path, Node value) {
  Node* at = &tree;
  size_t begin = 0;
  for (size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1) {
    const std::string name = path.substr(begin, dot - begin);
    Node* child = at->find(name);
    at = child != nullptr ? child : &at->put(name, Node::map());
  }
  const std::string name = path.substr(begin);
  if (Node* old = at->find(name)) {
    value.key = name;
    *old = std::move(value);
  } else {
    at->put(name, std::move(value));
  }
}

bool has_path(const Node& tree, const std::string& path) {
  const Node* at = &tree;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    at = at->find(path.substr(begin, end - begin));
    if (at == nullptr) return false;
    begin = end + 1;
  }
  return true;
}

std::string said(const Node& item, const std::string& path) {
  return fmt::format("{}{}: {}", item.where.empty() ? "" : item.where + ": ", path, flow_text(item));
}

namespace {

// "optimizer.type: adam" as a path and a value; the value of the file where there is none.
void take_renamed(const ForeignKey& row, const Node& item, const std::string& path, Imported& out) {
  const std::string_view ours = row.ours;
  const size_t colon = ours.find(": ");
  const std::string to(ours.substr(0, colon));
  Node value =
      colon == std::string_view::npos ? item : plain_scalar(std::string(ours.substr(colon + 2)), item.where);
  out.converted.push_back(fmt::format("{} is {}: {}", said(item, path), to, flow_text(value)));
  put_path(out.tree, to, std::move(value));
}

}  // namespace

bool take_foreign(const Node& item, const std::string& path, Imported& out) {
  const ForeignKey* row = find_foreign(path, item);
  if (row == nullptr) return false;
  const std::string_view ours = row->ours, text = row->text;
  if (row->kind == ForeignKey::Kind::kNoEffect)
    out.left_out.push_back(fmt::format("{}: {}", said(item, path), text));
  else if (row->kind == ForeignKey::Kind::kNone)
    out.missing.push_back(fmt::format("{}: {}", said(item, path), text));
  else if (ours.find('<') != std::string_view::npos || ours.find('{') != std::string_view::npos)
    out.missing.push_back(fmt::format("{}: it is {} here; {}", said(item, path), ours, text));
  else
    take_renamed(*row, item, path, out);
  return true;
}

bool is_training_arguments(const Node& file) {
  for (const char* section : {"data", "trainer", "model", "optimizer"})
    if (const Node* found = file.find(section); found != nullptr && found->kind == Node::Kind::kMap)
      return false;
  return true;
}

}  // namespace ostro::init
