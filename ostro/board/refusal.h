// Refusal: a rule of a board that an entry breaks, and how. Values.
#pragma once

#include <string>
#include <vector>

namespace ostro::board {

// The rules in the order in which they are checked; rule_name() has their names.
enum class Rule {
  kNotABundle,      // it is no published bundle
  kBundle,          // the bundle contradicts itself, or lacks something
  kCannotCheck,     // this version of Ostro cannot read or replay it
  kCopy,            // all its steps are those of another entry that counts
  kTokenizer,       // another tokenizer than the track's
  kData,            // other data than the track's
  kEvaluationText,  // a document of the evaluation is a row of its data
  kStart,           // it does not begin at step 0 with weights drawn from its seed
  kEnd,             // its last step has no state
  kConstants,       // its programs can hold more than kMostConstantBytes of constants and numbers
  kFlops,           // its training has more operations than the track allows
  kScoreFlops,      // scoring the evaluation has more operations than the track allows
  kMemory,          // a program needs more memory than the check was given
  kScoreProgram,    // its score program is missing, or is none
  kBatch,           // a step was done with another batch than data and configuration give
  kReplay,          // a replayed step is another one
  kNotFinite,       // a loss of the evaluation is no finite number
  kLooksAhead,      // later tokens change the loss of an earlier one
  kNotACode,        // exp(-loss) over all targets does not sum to 1
};
const char* rule_name(Rule rule);

struct Refusal {
  Rule rule;
  std::string text;
};
using Refusals = std::vector<Refusal>;

// True for a rule that another machine, or another version of Ostro, may find unbroken.
bool is_of_machine(Rule rule);

}  // namespace ostro::board
