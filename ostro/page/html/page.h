// page_html: the page of a run: one HTML file that holds everything it shows
// (docs/reference/formats/run_directory.md).
#pragma once

#include <string>

#include "ostro/page/facts/run_view.h"

namespace ostro::page {

// The largest number of points of a curve, so that the page of a long run is not larger than that of a short
// run.
inline constexpr size_t kPageBins = 256;

// The HTML. It depends on the content of the run directory alone, not on its path.
std::string page_html(const RunView& view);

// Sections of the page, for page.cc: a heading with its table or list; empty if there is nothing to show.
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
