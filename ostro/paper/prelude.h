// prelude: the Typst files that a report has beside the author's: the functions that a paper calls, and the
// document that joins paper and appendix. Constant texts.
#pragma once

#include <string>

namespace ostro::paper {

// ostro.typ: num, fig, tab, verdict and the appendix; it reads values.json.
extern const char* const kPrelude;

// report.typ: the paper, then the appendix of its numbers. `paper` is the file's name.
std::string main_document(const std::string& paper);

// A document that is one figure, as large as it is.
std::string figure_document(const std::string& svg);

// Typst's HTML with a style, and a rule that it may load and run nothing. Without a head it stays as it is.
std::string styled_html(std::string html);

}  // namespace ostro::paper
