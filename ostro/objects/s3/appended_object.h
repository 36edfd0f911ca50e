// AppendedObject: an object that grows: appends are collected, and sent together.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// An object store has no appends. So the object is replaced by a longer one: as long as it is small by one
// that is sent as a whole, later by one that the server makes of what it has and of the new bytes. Each
// replacement has the condition that the object is still the one that was read: of two processes that append
// to it one fails, and so does each of its calls from then on. A reader sees the object before or after.
//
// Thread-safe. `client` must outlive it.
class AppendedObject {
 public:
  // Finds what is there; the object does not have to exist.
  static Result<std::shared_ptr<AppendedObject>> open(S3Client& client, const S3Path& path);

  // Keeps the bytes in memory. Errors: that of an earlier publish() that found another writer.
  Status append(std::span<const std::byte> bytes);
  // Sends what was appended. After an error that may pass the bytes are kept, for the next call.
  Status publish();
  // Cuts the object, and what was not sent yet, to `size` bytes. kInvalidArgument: it is shorter.
  Status truncate(int64_t size);
  // Waits for a write that is under way. From then on nothing is sent, and every call fails with this error:
  // the object was removed, renamed or replaced by this process, or the process may not write it any more.
  void end(const Error& why);
  // Whether there is something to send.
  bool is_behind() const;

 private:
  // A write of the object, and what it has when that was done.
  struct Attempt {
    std::string id;
    int64_t size = 0;
    std::string head;
    size_t sent = 0;  // of tail_
  };

  AppendedObject(S3Client& client, S3Path path) : client_(client), path_(std::move(path)) {}
  Status load();
  Status send(const std::string& tail);
  // Makes one write, `put`. Ok: it was done, or an earlier one of which that was not known.
  Status attempt(Attempt what, const std::function<Result<std::string>()>& put);
  Result<bool> find_done();
  void done(const Attempt& what, std::string etag);

  S3Client& client_;
  const S3Path path_;
  std::mutex sending_;              // held while the object is written; before mutex_
  std::string etag_;                // empty: there is no object
  int64_t size_ = 0;                // of the object
  std::string head_;                // its content, while that is less than kS3PartBytes
  std::vector<Attempt> unsettled_;  // of which it is not known whether they were done: one at most was
  mutable std::mutex mutex_;
  std::string tail_;      // what was not sent
  bool created_ = false;  // an object that was not there is made, also of no bytes
  Status lost_;           // another process has written
};

// A WritableFile that appends to it. Destroying it sends what is left; an error is then only logged.
std::unique_ptr<io::WritableFile> appending_file(std::shared_ptr<AppendedObject> object);

}  // namespace ostro::objects
