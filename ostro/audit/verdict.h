// Verdict: the word that a check of a run ends with (docs/reference/verdicts.md). Values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::audit {

// From the best to the worst.
enum class Verdict {
  kEqual,        // everything that was compared is the same
  kIncomplete,   // nothing differs, but a part of the record is missing
  kCannotCheck,  // nothing differs, but this program could not compare what the verdict would be about
  kDiffers,      // the record contradicts itself, the replay, or the hash that was given
};
// "equal", "incomplete", "cannot check", "differs".
const char* verdict_word(Verdict verdict);

// One thing that a check found.
struct Finding {
  Verdict verdict = Verdict::kEqual;
  std::string text;
  bool operator==(const Finding&) const = default;
};
// The worst first; those of one verdict keep their order.
void sort_worst_first(std::vector<Finding>& findings);
// The verdict about findings that are sorted so: that of the first, and kEqual without one.
Verdict verdict_of_sorted(const std::vector<Finding>& findings);
// "differs: chain.jsonl: line 2 was altered", "differs at step 7: ..." where the text begins with "at ".
std::string finding_text(const Finding& finding);

// Returns the finding that an error of reading or replaying a record stands for: kDiffers for damaged or
// contradictory content (kCorrupt); kCannotCheck for what is absent, cannot be read here, or is not known to
// this program.
Finding finding_of(const Error& error);

// Folds findings of one kind, whose texts are equal except for numbers and hashes, into one: the first stays,
// with the number of the others behind it. The order is that of the first of each kind.
std::vector<Finding> folded(const std::vector<Finding>& findings);

}  // namespace ostro::audit
