// ObjectLock: a lock that is an object: taken by a conditional write, kept by renewing it, lost when another
// process was allowed to take it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/objects/s3/lock_text.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// Another process may take the lock when its holder has set it free, when the holder was on this machine and
// is gone, or when the object has not changed for the lease that its text names. A holder renews it three
// times in a lease. One that could not (a server out of reach, a stopped process) does not know whether it
// has the lock, so still_held() asks the server before anything else is written. The server's order of
// conditional writes alone decides; clocks of machines are not compared. A server that ignores conditions is
// found when the lock is taken.
//
// Thread-safe. `client` must outlive it.
class ObjectLock {
 public:
  // Takes the lock. Waits for a holder that may be gone, at most for its lease. kBusy, with the owner's text,
  // when the holder gave a sign of life; kUnsupported when the server has no conditional writes.
  static Result<std::shared_ptr<ObjectLock>> take(S3Client& client, const S3Path& path,
                                                  std::string_view owner);
  ~ObjectLock();  // release()

  // Fails when another process has taken the lock, and from then on always; asks the server when the last
  // renewal is long ago.
  Status still_held();
  // The error, if it is known that another process has taken the lock. Asks no server.
  Status lost();
  // Renews it now.
  Status renew();
  // Sets it free, once. Errors are logged: the lease then ends it.
  void release();
  // The folder in which the lock lies.
  const std::string& folder() const { return folder_; }
  const S3Path& path() const { return path_; }

 private:
  ObjectLock(S3Client& client, S3Path path, LockText text, std::string etag, int64_t since);
  Status write(LockText text);
  void keep();

  S3Client& client_;
  const S3Path path_;
  const std::string folder_;
  const int64_t lease_;  // seconds
  std::mutex mutex_;     // held while the object is written
  LockText text_;
  std::string etag_;
  std::vector<std::string> unsettled_;  // ids of writes of which it is not known whether they were done
  int64_t since_;                       // when the last renewal began, RetryClock::outside_ms
  bool free_ = false;
  Status lost_;
  std::mutex end_mutex_;
  std::condition_variable end_changed_;
  bool ends_ = false;
  std::thread keeper_;
};

}  // namespace ostro::objects
