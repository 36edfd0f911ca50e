// check_figure: whether the rows of a figure's query are those of its form; figure_svg (values.h) draws them.
// Pure functions.
#pragma once

#include "ostro/experiment/plan/query.h"
#include "ostro/experiment/tables/database.h"

namespace ostro::lab {

// Error: the columns are not those of the form; there are no rows; a point is no two finite numbers (of bars
// the place may be a text), or not between its low and high; more than 200 series, 24 panels or 40 places of
// bars; two bars of one series at one place; numbers whose range is not finite.
Status check_figure(const Query& query, const Rows& rows);

// The error about the answer to a query: "FILE:LINE: WHAT.NAME: message".
Error wrong_shape(const char* what, const Query& query, const std::string& message);

}  // namespace ostro::lab
