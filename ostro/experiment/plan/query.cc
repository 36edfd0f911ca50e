#include "ostro/experiment/plan/query.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/config/codec.h"
#include "ostro/experiment/plan/declared.h"

namespace ostro::lab {
namespace {

using config::Node;

constexpr const char* kMarksNames[] = {"lines", "points", "bands", "bars"};

bool is_select(const Node* node) {
  return node != nullptr && node->kind == Node::Kind::kString && !node->text.empty();
}

// {query, draw, facets}
Result<Query> read_figure(const Node& map, const std::string& name) {
  RETURN_IF_ERROR(check_keys(map, name, {"query", "draw", "facets"}));
  const Node* sql = map.find("query");
  if (!is_select(sql))
    return plan_error(sql == nullptr ? map : *sql, fmt::format("{}.query: expected a SELECT", name));
  Query out{map.key, sql->text, map.where};
  if (const Node* draw = map.find("draw"); draw != nullptr) {
    size_t i = 0;
    while (i < std::size(kMarksNames) && draw->text != kMarksNames[i]) ++i;
    if (i == std::size(kMarksNames))
      return plan_error(*draw,
                        fmt::format("{}.draw: \"{}\": use lines, points, bands or bars", name, draw->text));
    out.form.marks = static_cast<FigureMarks>(i);
  }
  if (const Node* facets = map.find("facets"); facets != nullptr)
    if (!config::read_value(*facets, "", &out.form.facets).ok())
      return plan_error(*facets, fmt::format("{}.facets: expected true or false", name));
  return out;
}

}  // namespace

Result<std::vector<Query>> read_queries(const Node& root, const char* key, bool figures) {
  std::vector<Query> out;
  const Node* map = root.find(key);
  if (map == nullptr) return out;
  if (map->kind != Node::Kind::kMap)
    return plan_error(*map, fmt::format("{}: expected a map from names to SELECTs", key));
  for (const Node& item : map->items) {
    RETURN_IF_ERROR(check_name(item, item.key));
    const std::string name = fmt::format("{}.{}", key, item.key);
    if (figures && item.kind == Node::Kind::kMap) {
      ASSIGN_OR_RETURN(Query figure, read_figure(item, name));
      out.push_back(std::move(figure));
      continue;
    }
    if (!is_select(&item)) return plan_error(item, fmt::format("{}: expected a SELECT", name));
    out.push_back({item.key, item.text, item.where});
  }
  return out;
}

nlohmann::json queries_json(const std::vector<Query>& queries) {
  auto out = nlohmann::json::object();
  for (const Query& q : queries) {
    if (q.form == FigureForm()) {
      out[q.name] = q.sql;
      continue;
    }
    out[q.name] = {{"query", q.sql}, {"draw", kMarksNames[static_cast<size_t>(q.form.marks)]}};
    if (q.form.facets) out[q.name]["facets"] = true;
  }
  return out;
}

}  // namespace ostro::lab
