// page_html: the page of a run: one HTML file that holds everything it shows
// (docs/reference/formats/run_directory.md). Pure functions; there are no errors: what a run directory lacks,
// its page lacks.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ostro/page/facts/run_view.h"

namespace ostro::page {

// The largest number of points of a curve, so that the page of a long run is not larger than that of a short
// run.
inline constexpr size_t kPageBins = 256;

// kFile: a page that lies in a file. kLive: a page that a server sends; it asks the server for newer numbers.
enum class PageKind { kFile, kLive };

// Returns the HTML of a run's page. It depends on the content of the run directory alone, not on its path.
std::string page_html(const RunView& view, PageKind kind = PageKind::kFile);

// Returns the HTML of a page of several runs: their curves over each other, their results, and the options in
// which they differ. `names` has the name of each run on the page.
std::string comparison_html(std::span<const RunView> runs, std::span<const std::string> names);

// The parts from which whole_page makes a page. `title` and `body` are HTML, `axes` is axes_json()
// (page_charts.h), and `version` is a text that changes when the page does.
struct PageParts {
  std::string title, body, axes, version;
  PageKind kind = PageKind::kFile;
};
std::string whole_page(const PageParts& parts);

// Sections of the page, for page.cc: a heading with its table or list; empty if there is nothing to show.
std::string samples_section(const RunView& view);
std::string data_section(const RunView& view);
std::string time_section(const RunView& view);
std::string sessions_section(const RunView& view);
std::string hashes_section(const RunView& view);
std::string checkpoints_section(const RunView& view);
std::string config_section(const RunView& view);

// The seconds of one session; nothing when its end is not known.
std::optional<double> session_seconds(const chain::Session& session);
// The seconds from the first session's start to the last one's end; nothing when one of them is not known.
std::optional<double> run_seconds(const RunView& view);

}  // namespace ostro::page
