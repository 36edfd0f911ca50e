// ObjectWriter: a new object that is written from its first byte to its last.
#pragma once

#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// The object appears when sync() or close() returns, as a whole, and takes the place of the one before. More
// cannot be appended then: kUnsupported. A writer that is destroyed before leaves what was there.
//
// Up to 64 MiB are kept in memory; longer content goes to the server in parts as it comes. With `once` no
// object may be there yet: if it has the same bytes, all is well, otherwise writing fails (kIo).
class ObjectWriter final : public io::WritableFile {
 public:
  // `client` must outlive it.
  ObjectWriter(S3Client& client, S3Path path, bool once)
      : client_(client), path_(std::move(path)), once_(once) {}
  ~ObjectWriter() override;

  Status append(std::span<const std::byte> bytes) override;
  Status sync() override;
  Status close() override { return sync(); }

 private:
  Status publish();
  Status send_part(std::span<const std::byte> bytes);

  S3Client& client_;
  const S3Path path_;
  const bool once_;
  std::vector<std::byte> buffer_;  // what was not sent
  std::string upload_, write_id_;  // of an upload that has begun
  std::vector<std::string> parts_;
  bool published_ = false;
  Status status_;  // the first error; every call after it fails
};

}  // namespace ostro::objects
