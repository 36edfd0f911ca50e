// run_typst: sets Typst documents, by the Python package typst, whose wheel has the compiler and its fonts.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::paper {

// Another version may give other bytes, so the lock of a report names it.
inline constexpr const char* kTypst = "0.15.0";

struct TypstJob {
  std::string main;    // the file to set, one of `files`
  std::string format;  // "pdf" or "html"
};
struct TypstResult {
  std::string missing;               // why nothing was set, and the command that installs Typst; else empty
  std::vector<std::string> outputs;  // of each job
};

// Sets documents in a folder that has nothing but `files`, with the fonts of the wheel, the date 1970-01-01,
// no other packages and no network, so the bytes of an output follow from those of the files. Errors: those
// of Typst, as "FILE:LINE: what", where FILE is the first of its places that is none of `generated`, in
// `folder`.
Result<TypstResult> run_typst(io::FileSystem& fs, const std::vector<lab::ReportFile>& files,
                              const std::vector<TypstJob>& jobs, const std::string& folder,
                              const std::set<std::string>& generated);

// What Typst says of an error (its diagnostic) as an error's text. Pure.
std::string typst_error(const std::string& message, const std::string& diagnostic, const std::string& folder,
                        const std::set<std::string>& generated);

}  // namespace ostro::paper
