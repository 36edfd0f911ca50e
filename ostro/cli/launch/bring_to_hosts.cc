#include "ostro/cli/launch/bring_to_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/base/units.h"

namespace ostro::cli {
namespace {

constexpr size_t kMostAtATime = 16;
constexpr std::chrono::seconds kBetween{30};
constexpr std::chrono::milliseconds kShow{200};

}  // namespace

BringToHosts::BringToHosts(io::FileSystem& fs, cluster::BroughtCopy copy, std::vector<std::string> hosts,
                           StartThere start)
    : fs_(fs),
      copy_(std::move(copy)),
      hosts_(std::move(hosts)),
      start_(std::move(start)),
      has_(hosts_.size()),
      errors_(hosts_.size()) {}

BringToHosts::~BringToHosts() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (again_.joinable()) again_.join();
}

bool BringToHosts::stopped() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

bool BringToHosts::one(size_t host) {
  const Nonce nonce = new_nonce();
  const std::string script =
      cluster::bring_script(copy_, sha256_hex(std::string_view(nonce.data(), nonce.size())).substr(0, 16));
  const auto carry = [&]() -> Result<cluster::Arrival> {
    ASSIGN_OR_RETURN(cluster::LineProcess remote, start_(host, script));
    return cluster::bring(
        fs_, copy_, remote,
        [&](int64_t bytes) {
          const std::lock_guard lock(mutex_);
          sent_ += bytes;
        },
        [&] { return stopped(); });
  };
  const auto arrived = carry();
  const std::lock_guard lock(mutex_);
  if (!arrived.ok()) {
    if (!stop_ && errors_[host] != arrived.error().message())
      log_error(fmt::format("{} has no copy of the program and the data: {}", hosts_[host],
                            arrived.error().message()));
    errors_[host] = arrived.error().message();
    return false;
  }
  has_[host] = true;
  std::string what = arrived->files == 0
                         ? fmt::format("{} has all of {} already", hosts_[host], arrived->folder)
                         : fmt::format("{} files ({:.1f} MiB) were copied to {} of {}", arrived->files,
                                       mib(arrived->bytes), arrived->folder, hosts_[host]);
  if (arrived->removed > 0) what += fmt::format("; {} older copies there were removed", arrived->removed);
  log_info(what);
  return true;
}

std::vector<bool> BringToHosts::all(Progress& progress) {
  int64_t size = 0;
  for (const cluster::BroughtFile& file : copy_.files) size += file.size;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(kMostAtATime, hosts_.size()); ++i)
    threads.emplace_back([&] {
      while (true) {
        size_t host = 0;
        {
          const std::lock_guard lock(mutex_);
          if (next_ == hosts_.size()) return;
          host = next_++;
        }
        one(host);
        const std::lock_guard lock(mutex_);
        ++tried_;
        changed_.notify_all();
      }
    });
  {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kShow, [&] { return tried_ == hosts_.size(); })) {
      const double most = static_cast<double>(size) * static_cast<double>(hosts_.size());
      const double part = std::max(static_cast<double>(sent_) / most,
                                   static_cast<double>(tried_) / static_cast<double>(hosts_.size()));
      const std::string what =
          fmt::format("copying to {} machines, {:.1f} MiB so far", hosts_.size(), mib(sent_));
      lock.unlock();
      progress.show(what, std::min(part, 1.0));
      lock.lock();
    }
  }
  for (std::thread& thread : threads) thread.join();
  progress.end();
  return has_;
}

void BringToHosts::keep_trying() {
  again_ = std::thread([this] {
    while (true) {
      std::vector<size_t> without;
      {
        std::unique_lock lock(mutex_);
        for (size_t host = 0; host < has_.size(); ++host)
          if (!has_[host]) without.push_back(host);
        if (without.empty() || changed_.wait_for(lock, kBetween, [&] { return stop_; })) return;
      }
      for (const size_t host : without)
        if (!stopped()) one(host);
    }
  });
}

}  // namespace ostro::cli
