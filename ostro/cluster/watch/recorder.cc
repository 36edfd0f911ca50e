#include "ostro/cluster/watch/recorder.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/objects/s3/routing_file_system.h"

namespace ostro::cluster {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // for events
constexpr int kLooks = 10;                       // between two writes without one

}  // namespace

Recorder::Recorder(std::string path, Mesh mesh, const JobWatch& watch)
    : path_(std::move(path)), mesh_(std::move(mesh)), watch_(watch) {
  if (path_.empty()) return;
  write();  // readers that start now find the file
  thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Recorder::run() {
  int64_t events = -1;
  int looks = 0;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const int64_t now = watch_.events();
    if (now != std::exchange(events, now) || ++looks >= kLooks) {
      looks = 0;
      lock.unlock();
      write();
      lock.lock();
    }
    changed_.wait_for(lock, kLook, [this] { return stopped_; });
  }
  lock.unlock();
  write();
  io::FileSystem& fs = objects::default_file_system();
  if (fs.is_object_store(path_)) (void)fs.sync_dir(path_);  // that it has ended
}

void Recorder::write() {
  JobState state = watch_.state();
  if (mesh_ && state.goes_on) state.mesh = mesh_(state.size());
  const Status written = write_cluster_file(objects::default_file_system(), path_, state);
  if (!written.ok() && !std::exchange(failed_, true))
    log_warning(fmt::format("no ostro status of this run: {}", written.error().message()));
  if (written.ok()) failed_ = false;
}

}  // namespace ostro::cluster
