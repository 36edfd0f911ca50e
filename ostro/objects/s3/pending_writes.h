// PendingWrites: what this process has written to an object store and not sent yet.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "ostro/objects/s3/appended_object.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// Two kinds: objects that grow (AppendedObject), and contents that may come later, of which only the newest
// counts. A thread sends the latter every four seconds, the former every twelve; send() does so at once, so
// that a process reads what it wrote. An object that grows is kept until all of it was sent, also when the
// last file that appends to it is closed. Paths are URLs. Thread-safe. `client` must outlive it.
class PendingWrites {
 public:
  explicit PendingWrites(S3Client& client) : client_(client) {}
  ~PendingWrites() { stop(); }

  // The object that grows at the path. All who append to it in this process share it.
  Result<std::shared_ptr<AppendedObject>> growing(const std::string& path);
  void later(const std::string& path, std::string content);
  // Sends what belongs to the path, and, with `below`, to paths below it. Returns the first error; what
  // failed is tried again later.
  Status send(const std::string& path, bool below);
  // The path gets other content now: what was not sent does not count, and files that append to it fail.
  void forget(const std::string& path);
  // The same for all paths below a folder; `why` is what writers are told.
  void drop(const std::string& folder, const Error& why);
  // Ends the thread. What was not sent is lost.
  void stop();

 private:
  void start();           // with mutex_ held
  void let_go_of_sent();  // the same
  void end(const std::string& place, bool below, const Error& why);
  void keep_sending();
  Status put(const std::string& path);

  S3Client& client_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<AppendedObject>> growing_;
  std::map<std::string, std::string> later_;
  std::set<std::string> told_;  // paths whose failure was logged
  std::mutex putting_;          // an older content must not come after a newer one
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread sender_;
};

}  // namespace ostro::objects
