// WorkerOutput: keeps what workers on any machines write to standard error in files of one folder, HOST-N.log
// (kept_output.h): N counts the workers of a host that write at the same time. A thread of its own writes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ostro/cluster/watch/kept_output.h"
#include "ostro/io/files/file_system.h"

namespace ostro::cluster {

// Thread-safe; no function but the destructor waits. The folder may be in an object store, and is made when
// the first worker writes. What cannot be written is one warning for each file, and is lost, as is what comes
// while 4 MiB wait to be written; that a worker is gone is never lost, but why it is.
class WorkerOutput {
 public:
  WorkerOutput(io::FileSystem& fs, std::string folder);
  // Writes what waits.
  ~WorkerOutput();

  // The worker has written these bytes.
  void said(std::string_view host, int64_t pid, std::string_view bytes);
  // It has ended; `why` is kept behind what it wrote, unless it wrote nothing. "": as it should.
  void gone(std::string_view host, int64_t pid, std::string_view why);

 private:
  using Worker = std::pair<std::string, int64_t>;  // host and process
  struct Item {
    Worker worker;
    std::string bytes;
    bool ends = false;
  };
  struct Place {
    int64_t number = 0;
    std::unique_ptr<KeptOutput> output;
  };

  // Both with mutex_ held.
  bool has_room(std::string_view text) const;
  void push(Item item);
  void run();
  void write(const Item& item);
  Place& place_of(const Worker& worker);

  io::FileSystem& fs_;
  const std::string folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> waiting_;
  size_t bytes_ = 0;     // of waiting_, its items and their texts
  size_t left_out_ = 0;  // bytes
  bool stopped_ = false;
  std::map<Worker, Place> places_;  // of the thread
  std::thread thread_;              // after what it uses
};

}  // namespace ostro::cluster
