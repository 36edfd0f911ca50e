// Query, read_queries: the named SELECTs of a plan, and how the rows of a figure are drawn. Values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ostro/config/node.h"

namespace ostro::lab {

enum class FigureMarks { kLines, kPoints, kBands, kBars };

// How a figure is drawn. Its SELECT gives the columns series, x, y, in front of them the panel with `facets`,
// and behind them low and high: of bands always, of points and bars where it has them.
struct FigureForm {
  FigureMarks marks = FigureMarks::kLines;
  bool facets = false;
  bool operator==(const FigureForm&) const = default;
};

// A named SELECT.
struct Query {
  std::string name, sql, where;
  FigureForm form = {};  // of a figure
};

// The SELECTs of a map from names to them; none without the key. With `figures` a value may be a map
// {query, draw, facets}, too. Errors name file and line.
Result<std::vector<Query>> read_queries(const config::Node& root, const char* key, bool figures = false);

// By name: the SELECT, of a figure of another form than lines a map as in the plan.
nlohmann::json queries_json(const std::vector<Query>& queries);

}  // namespace ostro::lab
