// PendingWrites: what this process has written to an object store and not sent yet.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "ostro/io/s3/appended_object.h"
#include "ostro/io/s3/s3_client.h"

namespace ostro::io {

// Two kinds: objects that grow (AppendedObject), and contents that may come later, of which only the newest
// counts. A thread sends the latter every four seconds, the former every twelve; send() does so at once, so
// that a process reads what it wrote. Paths are URLs. Thread-safe. `client` must outlive it.
class PendingWrites {
 public:
  using MayWrite = std::function<Status(const std::string& path)>;
  PendingWrites(S3Client& client, MayWrite may_write) : client_(client), may_write_(std::move(may_write)) {}
  ~PendingWrites() { stop(); }

  // The object that grows at the path. All who append to it in this process share it.
  Result<std::shared_ptr<AppendedObject>> growing(const std::string& path);
  void later(const std::string& path, std::string content);
  // Sends what belongs to the path, and, with `below`, to paths below it. Returns the first error; what
  // failed is tried again later.
  Status send(const std::string& path, bool below);
  // The path gets other content now: what was to come later does not count.
  void forget(const std::string& path);
  // Ends the thread. What was not sent is lost.
  void stop();

 private:
  void start();  // with mutex_ held
  void keep_sending();
  Status put(const std::string& path);

  S3Client& client_;
  const MayWrite may_write_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<AppendedObject>> growing_;
  std::map<std::string, std::string> later_;
  std::set<std::string> told_;  // paths whose failure was logged
  std::mutex putting_;          // an older content must not come after a newer one
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread sender_;
};

}  // namespace ostro::io
