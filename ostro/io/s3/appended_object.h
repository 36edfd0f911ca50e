// AppendedObject: an object that grows: appends are collected, and sent together.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/io/s3/s3_client.h"

namespace ostro::io {

// An object store has no appends. So the object is replaced by a longer one: as long as it is small by one
// that is sent as a whole, later by one that the server makes of what it has and of the new bytes. Each
// replacement has the condition that the object is still the one that was read: of two processes that append
// to it one fails, and so does each of its calls from then on. A reader sees the object before or after.
//
// Thread-safe. `client` must outlive it.
class AppendedObject {
 public:
  // Finds what is there; the object does not have to exist. `may_write` is asked before each write.
  static Result<std::shared_ptr<AppendedObject>> open(S3Client& client, const S3Path& path,
                                                      std::function<Status()> may_write);

  // Keeps the bytes in memory. Errors: that of an earlier publish() that found another writer.
  Status append(std::span<const std::byte> bytes);
  // Sends what was appended. After an error that may pass the bytes are kept, for the next call.
  Status publish();
  // Cuts the object, and what was not sent yet, to `size` bytes. kInvalidArgument: it is shorter.
  Status truncate(int64_t size);
  // Whether there is something to send.
  bool is_behind() const;

 private:
  AppendedObject(S3Client& client, S3Path path, std::function<Status()> may_write)
      : client_(client), path_(std::move(path)), may_write_(std::move(may_write)) {}
  Status load();
  Status settle();
  Status send(const std::string& tail);

  S3Client& client_;
  const S3Path path_;
  const std::function<Status()> may_write_;
  std::mutex sending_;          // held while the object is written; before mutex_
  std::string etag_;            // empty: there is no object
  int64_t size_ = 0;            // of the object
  std::string head_;            // its content, while that is less than kS3PartBytes
  std::string unsettled_;       // the id of a write of which it is not known whether it was done
  size_t unsettled_bytes_ = 0;  // how much of tail_ it sent
  mutable std::mutex mutex_;
  std::string tail_;      // what was not sent
  bool created_ = false;  // an object that was not there is made, also of no bytes
  Status lost_;           // another process has written
};

// A WritableFile that appends to it. Destroying it sends what is left; an error is then only logged.
std::unique_ptr<WritableFile> appending_file(std::shared_ptr<AppendedObject> object);

}  // namespace ostro::io
