#include "ostro/without/price.h"

#include <fmt/format.h>

#include "ostro/base/units.h"
#include "ostro/io/files/path.h"
#include "ostro/run/report/forecast.h"
#include "ostro/without/measure.h"

namespace ostro::without {

double price_seconds(const Price& price, const chain::SessionTimes& times, const run::Cost& of_run,
                     int64_t run_steps) {
  if (of_run.flops <= 0) return 0;
  if (times.computing <= 0) return of_run.seconds * (price.flops + price.measuring_flops) / of_run.flops;
  const double a_flop = times.computing * static_cast<double>(run_steps) / of_run.flops;
  return static_cast<double>(price.runs + price.states) * times.beginning +
         static_cast<double>(price.steps) * times.a_step + price.measuring_flops * a_flop;
}

Result<Price> find_price(const Context& context, const WithoutRequest& request, const RemovalPlan& plan,
                         const run::Cost& of_run) {
  ASSIGN_OR_RETURN(const std::vector<MeasuredText> texts, compared_texts(context.fs, request, plan));
  ASSIGN_OR_RETURN(const std::vector<double> states,
                   measuring_flops(context, plan.config, *plan.tokenizer, texts_by_state(texts, plan)));
  Price out;
  out.steps = plan.steps_to_do();
  out.states = std::ssize(states);
  out.runs = out.states - 1;
  out.flops = of_run.flops * static_cast<double>(out.steps) / static_cast<double>(plan.steps);
  for (const double flops : states) out.measuring_flops += flops;
  const auto record = chain::read_record(context.fs, io::join_path(request.run, chain::kRecordFile));
  const chain::SessionTimes times = record.ok() ? chain::session_times(*record) : chain::SessionTimes();
  out.seconds = price_seconds(out, times, of_run, plan.steps);
  out.memory = of_run.memory;
  return out;
}

std::string price_text(const Price& price) {
  const std::string time = price.seconds > 0 ? fmt::format(", about {}", run::span_text(price.seconds)) : "";
  return fmt::format("{} steps in {} run{}, {} states measured, {:.4g} GFLOP{}, {:.1f} MiB of memory\n",
                     price.steps, price.runs, price.runs == 1 ? "" : "s", price.states,
                     (price.flops + price.measuring_flops) * 1e-9, time, mib(price.memory));
}

}  // namespace ostro::without
