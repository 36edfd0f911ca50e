#include "ostro/cluster_check/check_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "ostro/cluster_check/check_places.h"
#include "ostro/cluster_check/machines.h"
#include "ostro/dist/reach.h"
#include "ostro/run/loop/selftest.h"

namespace ostro::cluster_check {
namespace {

constexpr double kClockLimit = 1.0, kSlowShare = 0.25;
constexpr size_t kAllPairs = 16;

// The digits of a hash that people compare.
std::string digits(const std::string& hash) { return hash.substr(0, 12); }

int64_t now_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Check : Machines {
 public:
  using Machines::Machines;

  Result<ClusterReport> all() {
    start();
    each("asking the machines", [&](size_t i) { ask_facts(i), ask_clock(i), ask_devices(i); });
    compare_builds();
    if (request_.selftest) ask_selftest();
    RETURN_IF_ERROR(check_places(*this));
    ask_links();
    if (context_.stop()) return Error(ErrorCode::kBusy, "the check was stopped by a signal");
    return std::move(out_);
  }

 private:
  void ask_facts(size_t i) {
    const auto facts = answer(i, kStartPatience, "");
    if (!facts) return;
    CheckedHost& host = out_.hosts[i];
    host.reached = true;
    host.address = facts->value("address", "");
    host.processor = facts->value("processor", "");
    host.threads = facts->value("threads", int64_t{0});
    host.memory = facts->value("memory", int64_t{0});
    host.version = facts->value("version", "");
    host.source_commit = facts->value("source_commit", "");
    host.binary_sha256 = facts->value("binary_sha256", "");
    host.numerics = facts->value("numerics", "");
    if (host.address.empty())
      problem(i, "SSH_CONNECTION is not set there, so that no address is known to connect to");
  }

  void ask_clock(size_t i) {
    const int64_t before = now_nanoseconds();
    if (!ask(i, {{"do", "time"}})) return;
    const auto time = answer(i, kShortPatience, "");
    if (!time) return;
    const int64_t after = now_nanoseconds();
    CheckedHost& host = out_.hosts[i];
    host.clock_error = static_cast<double>(after - before) * 0.5e-9;
    host.clock_offset =
        static_cast<double>(time->value("time_ns", int64_t{0}) - before) * 1e-9 - host.clock_error;
    if (std::abs(host.clock_offset) > kClockLimit + host.clock_error)
      out_.notes.push_back(
          fmt::format("{}: its clock is {:.1f} s {} this machine's; times in logs and records will not fit "
                      "together. Let NTP set it",
                      host.name, std::abs(host.clock_offset), host.clock_offset > 0 ? "ahead of" : "behind"));
  }

  void ask_devices(size_t i) {
    std::vector<std::string> asked;
    for (const std::string& device : request_.hosts[i].devices) {
      if (device.empty() || std::find(asked.begin(), asked.end(), device) != asked.end()) continue;
      asked.push_back(device);
      if (ask(i, {{"do", "device"}, {"device", device}}))
        (void)answer(i, kLongPatience, fmt::format("device {}: ", device));
    }
  }

  // The programs must have one arithmetic; they should be one file.
  void compare_builds() {
    const CheckedHost* first = nullptr;
    for (size_t i = 0; i < out_.hosts.size(); ++i) {
      const CheckedHost& host = out_.hosts[i];
      if (!host.reached) continue;
      if (first == nullptr) first = &host;
      if (host.numerics != first->numerics)
        problem(i,
                fmt::format("its program has numerics version {}, that of {} has {}; copy one program to all "
                            "machines",
                            host.numerics, first->name, first->numerics));
      else if (host.binary_sha256 != first->binary_sha256)
        out_.notes.push_back(fmt::format(
            "{}: its program is another one than that of {}: version {} with SHA-256 {}, and {} with "
            "{}. Workers compare options and arithmetic, so it may do",
            host.name, first->name, host.version, digits(host.binary_sha256), first->version,
            digits(first->binary_sha256)));
    }
  }

  void ask_selftest() {
    each("self-test", [&](size_t i) { ask(i, {{"do", "selftest"}}); });
    const run::SelftestHashes known = run::known_selftest_hashes();
    each("self-test", [&](size_t i) {
      const auto hashes = answer(i, kLongPatience, "self-test: ");
      if (!hashes) return;
      CheckedHost& host = out_.hosts[i];
      host.floats = hashes->value("floats", ""), host.integers = hashes->value("integers", "");
      if (host.floats != known.floats || host.integers != known.integers)
        problem(
            i, fmt::format("its self-test gives {} and {}, and every machine must get {} and {}: it computes "
                           "other bits, leave it out",
                           digits(host.floats), digits(host.integers), digits(known.floats),
                           digits(known.integers)));
    });
  }

  bool is_measured(size_t from, size_t to) const {
    const size_t count = out_.hosts.size();
    if (count <= kAllPairs) return from < to;
    return to == (from + 1) % count || from == 0;
  }

  // Whether a worker of this host would listen for others in a way that can be tried here; says why not.
  bool is_tried(size_t i) {
    const std::string& advertised = request_.hosts[i].advertise;
    if (advertised.empty()) return listens_;
    if (!listens_) {
      problem(i,
              fmt::format("advertise={} has no use with trainer.relay: always, with which its workers do not "
                          "listen; leave one out",
                          advertised));
      return false;
    }
    const auto host = dist::parse_advertised(advertised);
    if (!host.ok() || !host->ports || request_.ports) return true;
    out_.notes.push_back(fmt::format(
        "{}: advertise={} is not tried, since its ports lead to those of trainer.worker_ports: name "
        "the configuration (--config)",
        out_.hosts[i].name, advertised));
    return false;
  }

  void ask_links() {
    std::vector<bool> tried;
    for (size_t i = 0; i < out_.hosts.size(); ++i) tried.push_back(is_tried(i));
    if (!listens_)
      out_.notes.push_back(
          "links between the machines are not tried: with trainer.relay: always the coordinator passes all "
          "bytes on");
    const size_t count = out_.hosts.size();
    for (size_t from = 0; from < count; ++from)
      for (size_t to = 0; to < count && !context_.stop(); ++to) {
        request_.on_progress("links",
                             static_cast<double>(from * count + to) / static_cast<double>(count * count));
        if (from != to && tried[to] && processes_[from] && processes_[to] && !out_.hosts[to].address.empty())
          ask_link(from, to);
      }
    std::vector<double> rates;
    for (const CheckedLink& link : out_.links)
      if (link.rate > 0) rates.push_back(link.rate);
    if (rates.empty()) return;
    std::nth_element(rates.begin(), rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2), rates.end());
    const double median = rates[rates.size() / 2];
    for (const CheckedLink& link : out_.links)
      if (link.rate > 0 && link.rate < kSlowShare * median)
        out_.notes.push_back(fmt::format(
            "{} to {}: {:.1f} MB/s, and the median of all links is {:.1f} MB/s; a step "
            "waits for its slowest link",
            out_.hosts[link.from].name, out_.hosts[link.to].name, link.rate * 1e-6, median * 1e-6));
  }

  void ask_link(size_t from, size_t to) {
    const std::string key = new_key();
    const std::string& address = out_.hosts[to].address;
    if (!ask(to, {{"do", "listen"},
                  {"address", address},
                  {"key", key},
                  {"ports", request_.ports.value_or("")},
                  {"advertise", request_.hosts[to].advertise}}))
      return;
    const auto listens = answer(to, kShortPatience, fmt::format("listens not at {}: ", address));
    if (!listens) return;
    const int64_t bytes = is_measured(from, to) ? request_.link_bytes : 0;
    const std::string advice =
        !request_.relay.empty()
            ? ""
            : "a firewall may be between them: name the ports that it lets through in "
              "trainer.worker_ports, or let the coordinator pass bytes on (trainer.relay)";
    const CheckJson question = {{"do", "send"},
                                {"advice", advice},
                                {"address", listens->value("address", address)},
                                {"port", listens->value("port", 0)},
                                {"key", key},
                                {"bytes", bytes}};
    std::optional<CheckJson> sent;
    if (ask(from, question))
      sent = answer(from, kLinkPatience, fmt::format("to {}: ", out_.hosts[to].name),
                    !request_.relay.empty() ? "the coordinator will pass their bytes on" : "");
    if (sent) {
      const double seconds = sent->value("seconds", 0.0);
      out_.links.push_back({from, to, bytes > 0 ? static_cast<double>(bytes) / std::max(seconds, 1e-9) : 0});
    }
    // Where nothing came, that side has been told already.
    if (!ask(to, {{"do", "taken"}})) return;
    const auto line = processes_[to]->answer(kLinkPatience, context_.stop);
    if (!line.ok()) {
      problem(to, line.error().message());
      processes_[to].reset();
    }
  }

  const bool listens_ = request_.relay != "always";  // workers, for others
};

}  // namespace

Result<ClusterReport> check_cluster(const Context& context, const CheckRequest& request) {
  return Check(context, request).all();
}

}  // namespace ostro::cluster_check
