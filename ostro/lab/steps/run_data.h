// run_data: the data of a run that is done, for code that reads its batches: its configuration with stores
// and files where they are now, and the names of these files for people.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/lab/steps/work.h"

namespace ostro::lab {

// A file of texts that a store was made from: where it is now, and its name in plan or output.
struct NamedFile {
  std::string path, name;
};

struct StoreFrom {
  std::string step;              // of kind tokens
  std::vector<NamedFile> files;  // of the training split, in the order of the store's ledger
  bool may_be_shown = false;     // texts_may_be_shown() of its texts
};

struct RunData {
  train::TrainConfig config;
  std::map<std::string, StoreFrom> stores;  // by component; "" where there are no components
};

// `made` has the run `step` and all that it needs. Nothing for a run of a model that this program does not
// have. Errors: those of reading.
Result<std::optional<RunData>> run_data(const Context& context, const Plan& plan,
                                        const std::map<std::string, Made>& made, const Step& step);

// Whether the plan marks the licence of every source that `step` and what it needs were made from as one
// whose texts may be shown (Plan::show_texts). Drawn texts have the licence "drawn". False where there is no
// source, and where a step `run` among them reads files of the plan's folder, which have no licence.
bool texts_may_be_shown(const Plan& plan, const Step& step);

}  // namespace ostro::lab
