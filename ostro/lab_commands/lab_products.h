// make_products: what `ostro lab run` makes of a lab whose steps are done: the report and the pages, where
// the plan says so.
#pragma once

#include "ostro/context/context.h"
#include "ostro/experiment/plan/plan.h"

namespace ostro::cli {

// Compares every byte of the outputs with the journal, writes report and pages into their folders, and prints
// a line for each. The same lab gives the same files. Errors: those of queries, of the report's text and of
// writing, and a paper that Typst could not set because it is not here: all other files are written then.
Status make_products(const Context& context, const lab::Plan& plan);

}  // namespace ostro::cli
