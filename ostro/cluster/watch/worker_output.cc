#include "ostro/cluster/watch/worker_output.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "ostro/io/files/path.h"

namespace ostro::cluster {
namespace {

constexpr size_t kMostUnwritten = size_t{4} << 20;  // bytes
constexpr size_t kMostOfHostName = 64;              // in the name of a file

// A host's name is whatever a worker says.
std::string file_word(std::string_view host) {
  std::string out;
  for (const char c : host.substr(0, kMostOfHostName)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       (c == '.' && !out.empty());
    out += plain ? c : '_';
  }
  return out.empty() ? "host" : out;
}

}  // namespace

WorkerOutput::WorkerOutput(io::FileSystem& fs, std::string folder)
    : fs_(fs), folder_(std::move(folder)), thread_([this] { run(); }) {}

WorkerOutput::~WorkerOutput() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerOutput::said(std::string_view host, int64_t pid, std::string_view bytes) {
  if (bytes.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!has_room(bytes)) {
    left_out_ += bytes.size();
    return;
  }
  std::string text(bytes);
  if (const size_t gone = std::exchange(left_out_, 0); gone > 0)
    text.insert(0, fmt::format("\n({} bytes of this worker and others left out)\n", gone));
  push({{file_word(host), pid}, std::move(text)});
}

void WorkerOutput::gone(std::string_view host, int64_t pid, std::string_view why) {
  const std::lock_guard lock(mutex_);
  push({{file_word(host), pid}, std::string(has_room(why) ? why : ""), true});
}

bool WorkerOutput::has_room(std::string_view text) const {
  return bytes_ + text.size() + sizeof(Item) <= kMostUnwritten;
}

void WorkerOutput::push(Item item) {
  bytes_ += item.bytes.size() + sizeof(Item);
  waiting_.push_back(std::move(item));
  changed_.notify_all();
}

void WorkerOutput::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) break;
    const std::vector<Item> items = std::exchange(waiting_, {});
    bytes_ = 0;
    lock.unlock();
    for (const Item& item : items) write(item);
    lock.lock();
  }
  lock.unlock();
  for (const auto& [worker, place] : places_) place.output->end(worker.second);
  places_.clear();  // in an object store it sends the rest
}

void WorkerOutput::write(const Item& item) {
  const int64_t pid = item.worker.second;
  if (!item.ends) return place_of(item.worker).output->add(pid, item.bytes);
  const auto found = places_.find(item.worker);
  if (found == places_.end()) return;
  found->second.output->end(pid);
  if (!item.bytes.empty()) found->second.output->add(pid, fmt::format("[{}]\n", item.bytes));
  places_.erase(found);
}

// A worker that is new gets the first number that no other of its host has.
WorkerOutput::Place& WorkerOutput::place_of(const Worker& worker) {
  if (const auto found = places_.find(worker); found != places_.end()) return found->second;
  std::set<int64_t> taken;
  for (const auto& [other, place] : places_)
    if (other.first == worker.first) taken.insert(place.number);
  int64_t number = 0;
  while (taken.contains(number)) ++number;
  (void)fs_.make_dirs(folder_);  // where it fails, so does writing, which is told
  return places_[worker] = {number,
                            std::make_unique<KeptOutput>(
                                fs_, io::join_path(folder_, fmt::format("{}-{}.log", worker.first, number)))};
}

}  // namespace ostro::cluster
