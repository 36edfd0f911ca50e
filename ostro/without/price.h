// find_price: what the runs without documents and the measuring of their effect will take, before they begin.
#pragma once

#include <string>

#include "ostro/chain/record.h"
#include "ostro/context/context.h"
#include "ostro/run/loop/dry_run.h"
#include "ostro/without/removal.h"

namespace ostro::without {

struct Price {
  int64_t steps = 0;           // of all runs that are made
  int64_t runs = 0;            // that are made
  int64_t states = 0;          // that are measured: those of the runs, and of the run itself
  double flops = 0;            // of the steps
  double measuring_flops = 0;  // of the held-out text and the texts, in all states
  double seconds = 0;          // all of it; 0: not known
  int64_t memory = 0;          // bytes, at the peak
};

// The price of all that find_effect does. `of_run`: of all steps of the run. Times are those of the run
// (run.json): each run and each state that is measured begins as its sessions did, a step takes what its
// steps took, and operations of measuring take as long as those of steps. Where run.json has no times, all
// operations are done as fast as those of `of_run`. What earlier calls did already is in it. Errors: those of
// compared_texts and measuring_flops.
Result<Price> find_price(const Context& context, const WithoutRequest& request, const RemovalPlan& plan,
                         const run::Cost& of_run);

// The seconds of a price by these times; 0: not known.
double price_seconds(const Price& price, const chain::SessionTimes& times, const run::Cost& of_run,
                     int64_t run_steps);

// "144 steps in 3 runs, 4 states measured, 12.3 GFLOP, about 14 s, 120.0 MiB of memory".
std::string price_text(const Price& price);

}  // namespace ostro::without
