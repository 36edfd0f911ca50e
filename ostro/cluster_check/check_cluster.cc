#include "ostro/cluster_check/check_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/base/sha256.h"
#include "ostro/dist/reach.h"
#include "ostro/io/files/path.h"
#include "ostro/run/loop/selftest.h"

namespace ostro::cluster_check {
namespace {

using CheckJson = nlohmann::json;

constexpr std::chrono::seconds kStartPatience{60}, kShortPatience{20}, kLinkPatience{120}, kLongPatience{900};
constexpr double kClockLimit = 1.0, kSlowShare = 0.25;
constexpr int64_t kLowSpace = int64_t{1} << 30;
constexpr size_t kAllPairs = 16;

// The digits of a hash that people compare.
std::string digits(const std::string& hash) { return hash.substr(0, 12); }

int64_t now_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// 64 digits that no other check has.
std::string new_key() {
  const Nonce nonce = new_nonce();
  return sha256_hex(std::string_view(nonce.data(), nonce.size()));
}

class Check {
 public:
  Check(const Context& context, const CheckRequest& request) : context_(context), request_(request) {
    processes_.resize(request.hosts.size());
    for (const cluster::SshHost& host : request.hosts) out_.hosts.emplace_back().name = host.name;
  }

  Result<ClusterReport> all() {
    start();
    each("asking the machines", [&](size_t i) { ask_facts(i), ask_clock(i), ask_devices(i); });
    compare_builds();
    if (request_.selftest) ask_selftest();
    for (const std::string& folder : request_.folders)
      if (!context_.stop()) RETURN_IF_ERROR(ask_folder(folder));
    ask_links();
    if (context_.stop()) return Error(ErrorCode::kBusy, "the check was stopped by a signal");
    return std::move(out_);
  }

 private:
  void problem(size_t i, const std::string& text) {
    out_.problems.push_back(fmt::format("{}: {}", out_.hosts[i].name, text));
  }

  // Those that can be asked.
  void each(const char* what, const std::function<void(size_t)>& use) {
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (context_.stop()) return;
      request_.on_progress(what, static_cast<double>(i) / static_cast<double>(processes_.size()));
      if (processes_[i]) use(i);
    }
  }

  // A machine that does not answer is asked nothing more.
  bool ask(size_t i, const CheckJson& question) {
    if (!processes_[i]) return false;
    if (const Status asked = processes_[i]->ask(question.dump()); !asked.ok()) {
      problem(i, asked.error().message());
      processes_[i].reset();
      return false;
    }
    return true;
  }
  // An error is a problem, unless `as_note` says that a run can start nevertheless.
  std::optional<CheckJson> answer(size_t i, std::chrono::seconds patience, const std::string& about,
                                  const std::string& as_note = "") {
    if (!processes_[i]) return std::nullopt;
    const auto line = processes_[i]->answer(patience, context_.stop);
    if (!line.ok()) {
      problem(i, line.error().message());
      processes_[i].reset();
      return std::nullopt;
    }
    CheckJson json = CheckJson::parse(*line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
      problem(i, fmt::format("answers with \"{}\": is that program ostro, of this version?",
                             line->substr(0, 200)));
      processes_[i].reset();
      return std::nullopt;
    }
    if (json.contains("error") && !as_note.empty()) {
      out_.notes.push_back(
          fmt::format("{}: {}{}; {}", out_.hosts[i].name, about, json.value("error", ""), as_note));
      return std::nullopt;
    }
    if (json.contains("error")) {
      problem(i, about + json.value("error", ""));
      return std::nullopt;
    }
    return json;
  }

  // All are started before the first is waited for.
  void start() {
    for (size_t i = 0; i < processes_.size(); ++i) {
      auto process = request_.start(request_.hosts[i]);
      if (process.ok())
        processes_[i] = std::move(*process);
      else
        problem(i, process.error().message());
    }
    for (size_t i = 0; i < processes_.size(); ++i) ask(i, {{"do", "facts"}});
  }

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

  // A file that this machine makes and locks must be seen, and its lock held, everywhere.
  Status ask_folder(const std::string& folder) {
    io::FileSystem& fs = context_.fs;
    RETURN_IF_ERROR(fs.make_dirs(folder));
    const std::string marker = fmt::format(".ostro-check-{}", new_key().substr(0, 16));
    const std::string path = io::join_path(folder, marker);
    auto lock = fs.lock(path, "a check of the cluster");
    if (!lock.ok()) return lock.error();
    RETURN_IF_ERROR(fs.sync_dir(folder));
    each("folders", [&](size_t i) { ask(i, {{"do", "path"}, {"path", folder}, {"marker", marker}}); });
    each("folders", [&](size_t i) {
      const auto seen = answer(i, kLongPatience, fmt::format("{}: ", folder));
      if (!seen) return;
      if (!seen->value("seen", false)) {
        problem(i,
                fmt::format(
                    "{}: {}, so a file that was made here is not there; mount one file system there on "
                    "all machines",
                    folder, seen->value("exists", false) ? "is another folder" : "there is no such folder"));
        return;
      }
      if (!seen->value("locked", false))
        problem(
            i, fmt::format("{}: locks of other machines are not seen there, so that two jobs could write one "
                           "run; mount it with locks (NFSv4, or `nolock` left out)",
                           folder));
      CheckedFolder& checked = out_.hosts[i].folders.emplace_back();
      checked = {folder, seen->value("free", int64_t{0}), seen->value("write_rate", 0.0)};
      if (checked.free < kLowSpace)
        out_.notes.push_back(
            fmt::format("{}: {}: only {} MiB are free", out_.hosts[i].name, folder, checked.free >> 20));
    });
    lock->reset();
    // Programs that are cut off cannot remove the files that they try the disk with.
    if (context_.stop())
      for (auto& process : processes_) process.reset();
    return remove_files(folder, marker);
  }

  // Removes the files of the folder whose names begin so.
  Status remove_files(const std::string& folder, const std::string& begin) const {
    ASSIGN_OR_RETURN(const auto entries, context_.fs.list(folder));
    for (const io::DirEntry& entry : entries) {
      if (!entry.name.starts_with(begin)) continue;
      const Status removed = context_.fs.remove(io::join_path(folder, entry.name));
      if (!removed.ok() && removed.error().code() != ErrorCode::kNotFound) return removed;
    }
    return {};
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

  const Context& context_;
  const CheckRequest& request_;
  const bool listens_ = request_.relay != "always";  // workers, for others
  std::vector<std::optional<cluster::LineProcess>> processes_;
  ClusterReport out_;
};

}  // namespace

Result<ClusterReport> check_cluster(const Context& context, const CheckRequest& request) {
  return Check(context, request).all();
}

}  // namespace ostro::cluster_check
