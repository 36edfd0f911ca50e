// charts_section, compared_charts: the curves of a run, and those of several runs over each other. Pure
// functions.
#pragma once

#include <span>
#include <string>

#include "ostro/page/facts/run_view.h"

namespace ostro::page {

// All charts of a run, with a text about what they show; a sentence instead when no step was done.
std::string charts_section(const RunView& view);

// A chart for each kind of number, with a curve of each run that has it. `names` are the runs' labels.
std::string compared_charts(std::span<const RunView> runs, std::span<const std::string> names);

// The value of a page's attribute data-axes, from which the script draws curves by tokens and by time: a JSON
// list with an object for each run, whose "tokens" and "seconds" are lists of [steps done, sum up to there].
std::string axes_json(std::span<const RunView> runs);

// The numbers of the metric of this name; null when the run has none.
const Bins* find_metric(const RunView& view, const std::string& name);

}  // namespace ostro::page
