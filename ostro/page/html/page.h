// The page of a run: one HTML file that holds everything it shows (docs/reference/formats/run_directory.md).
#pragma once

#include <string>

#include "ostro/page/facts/run_view.h"

namespace ostro::page {

// Points of a curve at most, so that a page of a long run is no larger than one of a short run.
inline constexpr size_t kPageBins = 256;

// A function of what the run directory holds: the same run gives the same page, wherever it lies.
std::string page_html(const RunView& view);

// Of the page, for page.cc: a heading with its table or list each; empty where there is nothing to say.
std::string samples_section(const RunView& view);
std::string data_section(const RunView& view);
std::string time_section(const RunView& view);
std::string sessions_section(const RunView& view);
std::string hashes_section(const RunView& view);
std::string checkpoints_section(const RunView& view);
std::string config_section(const RunView& view);

// Seconds of one session; nothing when its end is not known.
std::optional<double> session_seconds(const chain::Session& session);
// From the first session's start to the last one's end.
std::optional<double> run_seconds(const RunView& view);

}  // namespace ostro::page
