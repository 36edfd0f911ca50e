// gather_sources: the files that a paper is made of: the author's document, and the files that it names.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::paper {

// The document `main` and each file that a text in quotes of it, or of a .typ file so found, names: relative
// to that file, or from `folder` when it begins with "/". Names are relative to `folder`, the document's
// first. A file outside of the folder, or with a name in `generated`, is not taken. Errors: the document
// cannot be read, or has a generated file's name.
Result<std::vector<lab::ReportFile>> gather_sources(io::FileSystem& fs, const std::string& folder,
                                                    const std::string& main,
                                                    const std::set<std::string>& generated);

// The texts between quotes, in their order, those in comments too. Pure.
std::vector<std::string> quoted_texts(const std::string& document);

}  // namespace ostro::paper
