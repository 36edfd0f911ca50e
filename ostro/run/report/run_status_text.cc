// The two forms of a RunStatus.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/chain/clock_text.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/run/report/run_status.h"

namespace ostro::run {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kEventsShown = 10;

std::string amount_of_bytes(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (b < 1e6) return fmt::format("{:.1f} kB", b * 1e-3);
  return b < 1e9 ? fmt::format("{:.1f} MB", b * 1e-6) : fmt::format("{:.2f} GB", b * 1e-9);
}

std::string explained(const RunStatus& s) {
  if (s.state == "gone")
    return "its processes are gone, and it had not ended: the same command goes on from its last checkpoint";
  if (s.state == "elsewhere")
    return "it had not ended; whether its processes are there, only their host knows: " + s.lock;
  if (s.state == "waiting") return "its workers start, or recover";
  if (s.state == "incomplete")
    return fmt::format("incomplete: its chain ends at step {} of {}, although run.json says that it is done",
                       s.step, s.total);
  if (s.state == "interrupted") return "interrupted: it was stopped and saved; the same command goes on";
  return s.state;
}

std::string workers_text(const cluster::JobState& job) {
  std::string out = fmt::format("{:<7} {:<26} {:>8}  {:<10} {:>6} {:>10} {:>10} {:>10}\n", "worker", "place",
                                "step", "phase", "leaves", "compute", "wait", "sent");
  for (const cluster::MemberState& m : job.members) {
    const cluster::Progress& p = m.progress;
    out += fmt::format("{:<7} {:<26} {:>8}  {:<10} {:>6} {:>8.3f} s {:>8.3f} s {:>10}",
                       m.rank < 0 ? "-" : fmt::to_string(m.rank), fmt::format("{} (pid {})", m.host, m.pid),
                       p.step, p.phase, p.work, static_cast<double>(p.compute_microseconds) * 1e-6,
                       static_cast<double>(p.wait_microseconds) * 1e-6, amount_of_bytes(p.bytes_sent));
    if (p.bytes_between_slices > 0)
      out += fmt::format("  between slices {}", amount_of_bytes(p.bytes_between_slices));
    if (m.straggles) out += fmt::format("  straggles: {:.1f} times the median", m.slowness);
    if (m.rank < 0) out += "  not in the epoch";
    out += "\n";
  }
  return out;
}

}  // namespace

std::string status_text(const RunStatus& s) {
  std::string out = fmt::format("{}: {}\n", s.directory, explained(s));
  out += fmt::format("step      {}", s.step);
  if (s.total > 0)
    out += fmt::format(" of {} ({:.1f} %)", s.total,
                       100 * static_cast<double>(s.step) / static_cast<double>(s.total));
  if (s.loss) out += fmt::format(", loss {:.4f}", *s.loss);
  if (s.tokens_per_second) out += fmt::format(", {:.0f} tokens/s", *s.tokens_per_second);
  if (s.eta_seconds) out += fmt::format(", ETA {}", chain::duration_text(*s.eta_seconds));
  out += "\n";
  if (s.goodput) {
    out += fmt::format("goodput   {}, {} session{}\n", goodput_text(*s.goodput), s.sessions,
                       s.sessions == 1 ? "" : "s");
    if (const auto dollars = s.goodput->dollars()) {
      out += fmt::format("cost      {:.2f} dollars", *dollars);
      if (const auto each = s.goodput->dollars_per_billion_tokens())
        out += fmt::format(", {:.2f} per billion tokens", *each);
      out += "\n";
    }
  }
  if (!s.job) return out;
  if (s.job_is_live) {
    out += fmt::format("epoch     {}", s.job->epoch);
    out += s.job->goes_on ? fmt::format(" of {} worker{}", s.job->size(), s.job->size() == 1 ? "" : "s")
                          : " has ended, the next has not begun";
    if (!s.job->mesh.empty()) out += fmt::format(", mesh {}", s.job->mesh);
    out += "\n\n" + workers_text(*s.job);
  } else {
    out += fmt::format("epoch     {}, the last; the coordinator was process {} on {}\n", s.job->epoch,
                       s.job->pid, s.job->host);
  }
  const auto& events = s.job->events;
  if (!events.empty()) out += "\n";
  for (size_t i = events.size() - std::min(events.size(), kEventsShown); i < events.size(); ++i)
    out += fmt::format(
        "{}  {}{}\n", chain::utc_text(static_cast<int64_t>(events[i].time)),
        events[i].text.starts_with("epoch ") || events[i].kind == "over" ? "" : events[i].kind + ": ",
        events[i].text);
  return out;
}

std::string status_json(const RunStatus& s) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? OrderedJson(*value) : OrderedJson();
  };
  OrderedJson json;
  json["directory"] = s.directory;
  json["state"] = s.state;
  json["lock"] = s.lock;
  json["sessions"] = s.sessions;
  json["step"] = s.step;
  json["steps"] = s.total > 0 ? OrderedJson(s.total) : OrderedJson();
  json["loss"] = optional(s.loss);
  json["tokens_per_second"] = optional(s.tokens_per_second);
  json["eta_seconds"] = optional(s.eta_seconds);
  json["goodput"] = s.goodput ? OrderedJson::parse(goodput_json(*s.goodput)) : OrderedJson();
  json["dollars"] = s.goodput ? optional(s.goodput->dollars()) : OrderedJson();
  json["dollars_per_billion_tokens"] =
      s.goodput ? optional(s.goodput->dollars_per_billion_tokens()) : OrderedJson();
  json["cluster_is_live"] = s.job_is_live;
  json["cluster"] = s.job ? OrderedJson::parse(cluster::cluster_json(*s.job)) : OrderedJson();
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ostro::run
