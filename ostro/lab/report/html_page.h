// html_page, html_table: pages that open from a file, without scripts, and load nothing. Pure functions.
#pragma once

#include <string>

#include "ostro/experiment/tables/database.h"

namespace ostro::lab {

// A whole page. `title` is escaped here; `body` is HTML.
std::string html_page(const std::string& title, const std::string& body);

// A text for a page, escaped; of one with more than 2,000 bytes the beginning, and how long it is.
std::string shown_text(const std::string& text);

// A table of rows; all texts are as shown_text() gives them. Numbers are at the right. Of more than `most`
// rows the first are shown, and the number of the others is said.
std::string html_table(const Rows& rows, size_t most = 500);
// A cell with what is HTML already.
std::string cell(const std::string& html, bool is_number = false);

}  // namespace ostro::lab
