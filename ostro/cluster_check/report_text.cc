// The two forms of a ClusterReport.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/one_line.h"
#include "ostro/cluster_check/check_cluster.h"

namespace ostro::cluster_check {
namespace {

std::string host_lines(const CheckedHost& host) {
  if (!host.reached) return fmt::format("{}\n  not reached\n", host.name);
  std::string out = fmt::format(
      "{}\n  {}, {} threads, {:.1f} GB; at {}\n", host.name, one_line(host.processor), host.threads,
      static_cast<double>(host.memory) * 1e-9, host.address.empty() ? "no known address" : host.address);
  out += fmt::format("  ostro {} ({}), program {}, numerics {}\n", host.version,
                     host.source_commit.substr(0, 12), host.binary_sha256.substr(0, 12), host.numerics);
  if (!host.floats.empty())
    out += fmt::format("  self-test {} and {}\n", host.floats.substr(0, 12), host.integers.substr(0, 12));
  out += fmt::format("  clock {:+.3f} s, known to {:.3f} s\n", host.clock_offset, host.clock_error);
  for (const CheckedFolder& folder : host.folders)
    out += fmt::format("  {}: shared, {:.1f} GB free, written at {:.0f} MB/s\n", folder.path,
                       static_cast<double>(folder.free) * 1e-9, folder.write_rate * 1e-6);
  for (const CheckedStore& store : host.stores)
    out += fmt::format("  {}: written and read at {}, {}\n", store.path, store.server,
                       store.keys.empty() ? "without keys" : "with the keys of " + store.keys);
  for (const CheckedFolder& disk : host.disks)
    out += fmt::format("  {}: {:.1f} GB free\n", disk.path, static_cast<double>(disk.free) * 1e-9);
  return out;
}

std::string link_lines(const ClusterReport& report) {
  if (report.links.empty()) return "";
  std::string out = fmt::format("links: {} of {} connect\n", report.links.size(),
                                report.hosts.size() * (report.hosts.size() - 1));
  for (const CheckedLink& link : report.links)
    if (link.rate > 0)
      out += fmt::format("  {} to {}: {:.1f} MB/s over one connection\n", report.hosts[link.from].name,
                         report.hosts[link.to].name, link.rate * 1e-6);
  return out;
}

}  // namespace

std::string report_text(const ClusterReport& report) {
  std::string out;
  for (const CheckedHost& host : report.hosts) out += host_lines(host);
  out += link_lines(report);
  for (const std::string& note : report.notes) out += "note: " + one_line(note) + "\n";
  for (const std::string& problem : report.problems) out += "problem: " + one_line(problem) + "\n";
  if (!report.problems.empty())
    return out + fmt::format("{} problem{} on {} machines\n", report.problems.size(),
                             report.problems.size() == 1 ? "" : "s", report.hosts.size());
  return out + fmt::format("{} machines can train together\n", report.hosts.size());
}

std::string report_json(const ClusterReport& report) {
  using Ordered = nlohmann::ordered_json;
  Ordered out;
  out["ok"] = report.problems.empty();
  out["hosts"] = Ordered::array();
  for (const CheckedHost& host : report.hosts) {
    Ordered folders = Ordered::array();
    for (const CheckedFolder& folder : host.folders)
      folders.push_back(
          {{"path", folder.path}, {"free_bytes", folder.free}, {"bytes_per_second", folder.write_rate}});
    Ordered stores = Ordered::array(), disks = Ordered::array();
    for (const CheckedStore& store : host.stores)
      stores.push_back({{"path", store.path}, {"server", store.server}, {"keys", store.keys}});
    for (const CheckedFolder& disk : host.disks)
      disks.push_back({{"path", disk.path}, {"free_bytes", disk.free}});
    out["hosts"].push_back({{"name", host.name},
                            {"reached", host.reached},
                            {"address", host.address},
                            {"processor", host.processor},
                            {"threads", host.threads},
                            {"memory_bytes", host.memory},
                            {"version", host.version},
                            {"source_commit", host.source_commit},
                            {"binary_sha256", host.binary_sha256},
                            {"numerics", host.numerics},
                            {"clock_offset_seconds", host.clock_offset},
                            {"clock_error_seconds", host.clock_error},
                            {"selftest", host.floats},
                            {"selftest_integers", host.integers},
                            {"folders", folders},
                            {"stores", stores},
                            {"disks", disks}});
  }
  out["links"] = Ordered::array();
  for (const CheckedLink& link : report.links)
    out["links"].push_back({{"from", report.hosts[link.from].name},
                            {"to", report.hosts[link.to].name},
                            {"bytes_per_second", link.rate > 0 ? Ordered(link.rate) : Ordered()}});
  out["problems"] = report.problems;
  out["notes"] = report.notes;
  return out.dump(-1, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

}  // namespace ostro::cluster_check
