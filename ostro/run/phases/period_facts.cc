#include "ostro/run/phases/period_facts.h"

#include "ostro/audit/record/amend.h"
#include "ostro/optim/schedule.h"

namespace ostro::run {

Result<std::vector<PeriodFacts>> period_facts(const train::TrainConfig& base, const chain::Chain& chain,
                                              const std::string& where) {
  ASSIGN_OR_RETURN(const std::vector<audit::Period> periods, audit::periods_of(base, chain, where));
  std::vector<std::string> changes = {""};
  for (const chain::ChainLink& link : chain.links)
    if (const auto* amend = std::get_if<chain::AmendEntry>(&link.entry))
      changes.push_back(audit::amend_text(amend->difference));
  std::vector<PeriodFacts> out;
  for (size_t i = 0; i < periods.size(); ++i) {
    PeriodFacts facts;
    const int64_t end = i + 1 < periods.size() ? periods[i + 1].first : chain.last_step();
    if (end == periods[i].first && periods.size() > 1) {
      if (i + 1 < periods.size() && !changes[i].empty()) changes[i + 1] = changes[i] + "; " + changes[i + 1];
      continue;
    }
    facts.first_step = periods[i].first + 1;
    facts.last_step = end;
    facts.changes = changes[i];
    facts.data_hash = periods[i].data_hash;
    for (const chain::ChainLink& link : chain.links)
      if (const auto* step = std::get_if<chain::StepEntry>(&link.entry);
          step != nullptr && step->step >= facts.first_step && step->step <= end)
        facts.tokens += step->tokens;
    if (const auto config = audit::config_of_period(base, periods[i].config);
        config.ok() && facts.last_step >= facts.first_step) {
      const optim::CommonOptions& rates = optim::common(config->optimizer);
      const int64_t length = config->trainer.num_train_steps;
      facts.first_rate = optim::learning_rate(rates, facts.first_step - 1, length);
      facts.last_rate = optim::learning_rate(rates, facts.last_step - 1, length);
      facts.first_batch = config->trainer.train_batch_size.at(facts.first_step - 1);
      facts.last_batch = config->trainer.train_batch_size.at(facts.last_step - 1);
    }
    out.push_back(std::move(facts));
  }
  return out;
}

}  // namespace ostro::run
