#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/run/report/forecast.h"
#include "ostro/simulate/simulate.h"
#include "ostro/simulate/step/units.h"

namespace ostro::simulate {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercent = 100;

double share(double part, double whole) { return whole > 0 ? kPercent * part / whole : 0; }

std::string amount(int64_t bytes) {
  return fmt::format("{} bytes ({:.4g} GB)", bytes, static_cast<double>(bytes) / kGiga);
}

std::string plan_lines(const Simulation& s) {
  const SimulateOptions& o = s.options;
  std::string out = fmt::format("simulated: {} hosts", o.hosts);
  if (o.slices > 1) out += fmt::format(" in {} slices of {}", o.slices, o.hosts / o.slices);
  out += fmt::format(", {} on a machine; seed {}\n", o.hosts_per_machine, o.seed);
  if (o.min_workers > 1) out += fmt::format("with fewer than {} hosts the run waits\n", o.min_workers);
  out +=
      fmt::format("model: {} parameters; a step has {} leaves and {} tokens; exchange: {}{}{}\n",
                  s.model.parameters, s.plan.leaves, s.model.tokens, s.plan.layered ? "layer" : "step",
                  s.plan.two_levels ? ", in two levels" : "", s.plan.overlaps ? ", beside the leaves" : "");
  out += "assumed:\n";
  for (const Rate& rate : rates())
    out += fmt::format("  {:<18} {:>10g} {:<7} {}\n", rate.name, o.*rate.value, rate.unit, rate.help);
  for (const std::string& note : s.notes) out += "note: " + note + "\n";
  return out;
}

std::string step_lines(const Simulation& s) {
  std::string out = fmt::format("a step: {:.4g} s, {:.0f} tokens/s; of a host's time, on average\n",
                                s.step.seconds, static_cast<double>(s.model.tokens) / s.step.seconds);
  for (size_t i = 0; i < kParts; ++i)
    out += fmt::format("  {:<22} {:>10.4g} s {:>5.1f} %\n", kPartNames[i], s.step.parts[i],
                       share(s.step.parts[i], s.step.seconds));
  if (s.plan.two_levels)
    out += fmt::format("links between slices carry what grows with the model for {:.4g} s, sent {}\n",
                       s.step.between_links,
                       s.plan.overlaps ? "beside the leaves" : "before and after the leaves");
  const Traffic sent = s.plan.sent();
  int64_t memory = 0;
  for (const HostWork& kind : s.plan.kinds) memory = std::max(memory, kind.memory);
  out += "all hosts send in a step\n";
  out += fmt::format("  inside slices   {}\n  between slices  {}\n  messages        {}\n",
                     amount(sent.inside), amount(sent.between), sent.messages);
  const HostWork& busiest = *std::max_element(
      s.plan.kinds.begin(), s.plan.kinds.end(),
      [](const HostWork& a, const HostWork& b) { return a.sent().bytes() < b.sent().bytes(); });
  if (!busiest.sends.empty()) out += "the host that sends the most sends, and of it between slices\n";
  for (const train::Sent& sent : busiest.sends)
    out += fmt::format("  {:>10.4g} GB {:>10.4g} GB  {}\n", static_cast<double>(sent.bytes) / kGiga,
                       static_cast<double>(sent.between) / kGiga, sent.what);
  out += fmt::format("a host holds at most {} of parameters, optimizer's arrays and gradients\n",
                     amount(memory));
  return out;
}

std::string run_lines(const RunHistory& r) {
  std::string out = fmt::format("{}: goodput {:.1f} %, {} steps, of which the longest took {:.4g} s\n",
                                run::span_text(r.seconds), kPercent * r.goodput(), r.steps, r.longest_step);
  for (size_t i = 0; i < kTimeUses; ++i)
    if (r.uses[i] > 0)
      out += fmt::format("  {:<12} {:>12} {:>6.2f} %\n", kTimeUseNames[i], run::span_text(r.uses[i]),
                         share(r.uses[i], r.seconds));
  out += fmt::format(
      "  {} hosts and {} slices were lost, {} hosts joined; {} epochs, {} checkpoints, {} returns to one\n",
      r.host_losses, r.slice_losses, r.joins, r.epochs, r.checkpoints, r.restarts);
  std::vector<double> losses, joins;
  int64_t back = 0;
  for (const Recovery& x : r.recoveries) {
    (x.lost > 0 ? losses : joins).push_back(x.seconds);
    back = std::max(back, x.steps_back);
  }
  const auto line = [&](const char* what, std::vector<double>& seconds) {
    if (seconds.empty()) return;
    std::sort(seconds.begin(), seconds.end());
    out += fmt::format("  {}: {} times, {:.3g} s (median), {:.3g} s at most\n", what, seconds.size(),
                       seconds[seconds.size() / 2], seconds.back());
  };
  line("from a loss to the next step", losses);
  line("change of epoch for hosts that join", joins);
  if (back > 0) out += fmt::format("  at most {} steps were done again\n", back);
  out += fmt::format(
      "  the coordinator sent {} messages ({:.4g} GB), got {} ({:.4g} GB), and answered {} heartbeats\n",
      r.control.sent, static_cast<double>(r.control.sent_bytes) / kGiga, r.control.received,
      static_cast<double>(r.control.received_bytes) / kGiga, r.heartbeats);
  return out;
}

Json traffic_json(const Traffic& t) {
  return {{"inside", t.inside}, {"between", t.between}, {"messages", t.messages}, {"exchanges", t.exchanges}};
}

Json run_json(const RunHistory& r) {
  Json uses, recoveries = Json::array();
  for (size_t i = 0; i < kTimeUses; ++i) uses[kTimeUseNames[i]] = r.uses[i];
  for (const Recovery& x : r.recoveries)
    recoveries.push_back({{"at", x.at},
                          {"seconds", x.seconds},
                          {"lost", x.lost},
                          {"hosts_before", x.before},
                          {"hosts_after", x.after},
                          {"steps_back", x.steps_back}});
  return {{"hours", r.seconds / kHour},
          {"goodput", r.goodput()},
          {"seconds", uses},
          {"host_seconds", r.host_seconds},
          {"steps", r.steps},
          {"longest_step", r.longest_step},
          {"host_losses", r.host_losses},
          {"slice_losses", r.slice_losses},
          {"joins", r.joins},
          {"epochs", r.epochs},
          {"checkpoints", r.checkpoints},
          {"restarts", r.restarts},
          {"recoveries", recoveries},
          {"coordinator",
           {{"sent", r.control.sent},
            {"sent_bytes", r.control.sent_bytes},
            {"received", r.control.received},
            {"received_bytes", r.control.received_bytes},
            {"heartbeats", r.heartbeats}}}};
}

}  // namespace

std::string limit_text(const Simulation& s) {
  const Limit& first = s.limits.front();
  std::string out =
      fmt::format("what limits a step: {}: {}. Twice as good, a step takes {:.4g} s instead of {:.4g} s",
                  first.what, first.figures, first.seconds, s.as_it_is);
  for (size_t i = 1; i < std::min<size_t>(3, s.limits.size()); ++i)
    out += fmt::format("{} {}: {:.4g} s", i == 1 ? "; twice as good" : ",", s.limits[i].what,
                       s.limits[i].seconds);
  out += "\n";
  if (!s.run) return out;
  size_t most = 1;
  for (size_t i = 2; i < kTimeUses; ++i)
    if (s.run->uses[i] > s.run->uses[most]) most = i;
  if (s.run->uses[most] > 0)
    out += fmt::format("what limits the run beside its steps: {}, {:.2f} % of the time\n",
                       kTimeUseNames[most], share(s.run->uses[most], s.run->seconds));
  return out;
}

std::string report_text(const Simulation& s) {
  std::string out = plan_lines(s) + step_lines(s);
  if (s.run) out += run_lines(*s.run);
  return out + limit_text(s);
}

std::string report_json(const Simulation& s) {
  Json assumed, parts, limits = Json::array(), hosts = Json::array();
  for (const Rate& rate : rates()) assumed[rate.name] = s.options.*rate.value;
  for (size_t i = 0; i < kParts; ++i) parts[kPartNames[i]] = s.step.parts[i];
  for (const Limit& l : s.limits)
    limits.push_back({{"what", l.what}, {"step_seconds_twice_as_good", l.seconds}, {"figures", l.figures}});
  for (size_t k = 0; k < s.plan.kinds.size(); ++k) {
    const HostWork& w = s.plan.kinds[k];
    Json sends = Json::array();
    for (const train::Sent& x : w.sends)
      sends.push_back({{"what", x.what}, {"times", x.times}, {"bytes", x.bytes}, {"between", x.between}});
    hosts.push_back({{"hosts", std::count(s.plan.kind_of.begin(), s.plan.kind_of.end(), k)},
                     {"leaves", w.leaves},
                     {"memory", w.memory},
                     {"state", w.state},
                     {"sent", traffic_json(w.sent())},
                     {"sends", sends}});
  }
  Json out = {{"format", "ostro simulation"},
              {"format_version", 1},
              {"hosts", s.options.hosts},
              {"slices", s.options.slices},
              {"hosts_per_machine", s.options.hosts_per_machine},
              {"min_workers", s.options.min_workers},
              {"seed", s.options.seed},
              {"parameters", s.model.parameters},
              {"leaves", s.plan.leaves},
              {"tokens", s.model.tokens},
              {"exchange", s.plan.layered ? "layer" : "step"},
              {"two_levels", s.plan.two_levels},
              {"slice_overlap", s.plan.overlaps},
              {"assumed", assumed},
              {"notes", s.notes},
              {"step",
               {{"seconds", s.step.seconds},
                {"parts", parts},
                {"between_links_seconds", s.step.between_links},
                {"sent", traffic_json(s.plan.sent())}}},
              {"kinds_of_hosts", hosts},
              {"limits", limits}};
  if (s.run) out["run"] = run_json(*s.run);
  out["limit"] = limit_text(s);
  return out.dump(2) + "\n";
}

}  // namespace ostro::simulate
