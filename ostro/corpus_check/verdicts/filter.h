// filter_rows: which rows of a data set are left out by rules: figures of the text, evaluation texts in it,
// duplicates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/corpus_check/verdicts/text_rows.h"

namespace ostro::corpus_check {

// A figure of document_stats.h that must lie from low to high, both included.
struct FigureRule {
  std::string figure;  // one of filter_figures()
  std::optional<double> low, high;
};

struct FilterRules {
  std::vector<FigureRule> figures;
  std::vector<data::SourceFile> evaluation;   // texts of which no n-gram may stand in a row
  std::vector<std::string> evaluation_names;  // of these files, for people
  bool exact_duplicates = false;              // of rows with the same text the first is taken
  bool near_duplicates = false;  // and of near duplicates, which are looked for as `data check` does
};

// The names of figures that rules may have. Those that depend on a library's version (the compressed size)
// are not among them.
const std::vector<std::string>& filter_figures();

// The verdicts on all rows. The reason of a row is the first that holds: a figure by its name, in the order
// of the rules, "evaluation", "exact_duplicate", "near_duplicate". Duplicates are looked for among the rows
// that no other reason leaves out, so one of each kind stays. `folder` is for temporary files; it is made and
// removed. The result does not depend on `threads`. Errors: those of each_text and of add_eval_files.
Result<data::RowVerdicts> filter_rows(io::FileSystem& fs, const TextRows& rows, const FilterRules& rules,
                                      const std::string& folder, int threads);

}  // namespace ostro::corpus_check
