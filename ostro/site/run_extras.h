// add_run_extras: what the folders of a lab's runs say beside the record: operations and samples.
#pragma once

#include "ostro/context/context.h"
#include "ostro/site/lab_facts.h"

namespace ostro::site {

// Fills in `flops` and `samples` of all runs. A run that this program cannot open (its model is another
// program's) has no `flops`. Samples have held-out texts and what the model made of all texts, so a run has
// them only with `texts`, and if the plan marks the licences of all sources that it stands on.
void add_run_extras(const Context& context, bool texts, LabFacts& facts);

// The section of a run's page; empty without samples.
std::string samples_html(const LabFacts& facts, const RunFacts& run);
// "1.234e+09 FLOPs"; empty where they are not known.
std::string flops_text(const RunFacts& run);

}  // namespace ostro::site
