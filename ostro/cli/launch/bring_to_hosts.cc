#include "ostro/cli/launch/bring_to_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/base/units.h"

namespace ostro::cli {
namespace {

constexpr size_t kMostAtATime = 16;
constexpr std::chrono::seconds kBetween{30};
// How long others are waited for when enough machines have the copy.
constexpr std::chrono::seconds kOthers{60};
constexpr std::chrono::milliseconds kShow{200};

}  // namespace

BringToHosts::BringToHosts(io::FileSystem& fs, cluster::BroughtCopy copy, std::vector<std::string> hosts,
                           StartThere start)
    : fs_(fs),
      copy_(std::move(copy)),
      hosts_(std::move(hosts)),
      start_(std::move(start)),
      found_(hosts_.size()) {}

BringToHosts::~BringToHosts() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
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
    if (!stop_ && found_[host].error != arrived.error().message())
      log_error(fmt::format("{} has no copy of the program and the data: {}", hosts_[host],
                            arrived.error().message()));
    found_[host].error = arrived.error().message();
    return false;
  }
  if (!arrived->was_there) brought_.push_back(host);
  std::string what = arrived->files == 0
                         ? fmt::format("{} has all of {} already", hosts_[host], arrived->folder)
                         : fmt::format("{} files ({:.1f} MiB) were copied to {} of {}", arrived->files,
                                       mib(arrived->bytes), arrived->folder, hosts_[host]);
  if (arrived->removed > 0) what += fmt::format("; {} older copies there were removed", arrived->removed);
  log_info(what);
  return true;
}

std::vector<bool> BringToHosts::have() const {
  std::vector<bool> out;
  for (const Host& host : found_) out.push_back(host.has);
  return out;
}

BringToHosts::Host* BringToHosts::due(Clock::time_point& until) {
  Host* first = nullptr;
  for (Host& host : found_)
    if (!host.has && !host.busy && (first == nullptr || host.next < first->next)) first = &host;
  if (first == nullptr || first->next <= Clock::now()) return first;
  until = std::min(until, first->next);
  return nullptr;
}

void BringToHosts::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    auto until = Clock::now() + kBetween;
    Host* const host = due(until);
    if (host == nullptr) {
      changed_.wait_until(lock, until);
      continue;
    }
    host->busy = true;
    lock.unlock();
    const bool has = one(static_cast<size_t>(host - found_.data()));
    lock.lock();
    host->has = has, host->tried = true, host->busy = false;
    host->next = Clock::now() + kBetween;
    changed_.notify_all();
  }
}

std::vector<bool> BringToHosts::all(Progress& progress,
                                    const std::function<bool(const std::vector<bool>&)>& enough) {
  int64_t size = 0;
  for (const cluster::BroughtFile& file : copy_.files) size += file.size;
  for (size_t i = 0; i < std::min(kMostAtATime, hosts_.size()); ++i)
    threads_.emplace_back([this] { work(); });
  std::unique_lock lock(mutex_);
  std::optional<Clock::time_point> until;
  while (true) {
    const auto tried = std::count_if(found_.begin(), found_.end(), [](const Host& h) { return h.tried; });
    if (static_cast<size_t>(tried) == hosts_.size()) break;
    if (!until && enough(have())) until = Clock::now() + kOthers;
    if (until && Clock::now() >= *until) {
      log_warning(fmt::format("{} of {} machines have no copy yet, and are not waited for any longer",
                              hosts_.size() - static_cast<size_t>(tried), hosts_.size()));
      break;
    }
    const double most = static_cast<double>(size) * static_cast<double>(hosts_.size());
    const double part = std::max(static_cast<double>(sent_) / most,
                                 static_cast<double>(tried) / static_cast<double>(hosts_.size()));
    const std::string what =
        fmt::format("copying to {} machines, {:.1f} MiB so far", hosts_.size(), mib(sent_));
    lock.unlock();
    progress.show(what, std::min(part, 1.0));
    lock.lock();
    changed_.wait_for(lock, kShow);
  }
  progress.end();
  return have();
}

bool BringToHosts::ready(size_t host) {
  const std::lock_guard lock(mutex_);
  return found_[host].has || found_[host].tried;
}

void BringToHosts::look_again(size_t host) {
  const std::lock_guard lock(mutex_);
  found_[host].has = found_[host].tried = false;
  found_[host].next = Clock::now();
  changed_.notify_all();
}

std::vector<size_t> BringToHosts::take_brought() {
  const std::lock_guard lock(mutex_);
  return std::exchange(brought_, {});
}

}  // namespace ostro::cli
