// rebuild_options: the stores of a run, to be made again without some documents (`--as rebuild`).
#pragma once

#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/train/options/config.h"
#include "ostro/without/removal.h"

namespace ostro::without {

// Writes verdicts that leave out the documents of the removal into `folder`,
// and returns the options that make a training of `config` build the stores that had them anew, there, and
// read the others where they are. The tokenizer stays: one that was trained is that of the run's directory.
// Errors: kInvalidArgument, with the document, where it is also in a store that is used in place or whose
// texts do not have its file any more, and for columnar files without texts; those of reading the sources,
// which must be there.
Result<std::vector<config::Override>> rebuild_options(const Context& context, const std::string& run,
                                                      const train::TrainConfig& config,
                                                      const Removal& removal, const std::string& folder);

}  // namespace ostro::without
