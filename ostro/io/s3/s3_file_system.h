// Objects of an S3 server as files, for reading.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"
#include "ostro/io/s3/s3_client.h"

namespace ostro::io {

// Paths are s3://bucket/key; "/" in keys makes directories, which exist while a key lies in them. Names with
// "//" are not seen. FileInfo::mtime_ns is the time of the last change in whole seconds plus a fraction made
// from the ETag, so that another content has another time. A file that changes while it is open is
// ErrorCode::kCorrupt.
//
// Everything that changes something is ErrorCode::kUnsupported: stores, checkpoints and records need appends,
// atomic renames and locks, which S3 does not have. They are written elsewhere and copied.
//
// Refers to `http` and `clock`.
std::unique_ptr<FileSystem> s3_file_system(S3Options options, HttpClient& http, RetryClock& clock);

// The same with connections of its own, by the environment (s3_options).
Result<std::unique_ptr<FileSystem>> s3_file_system_from_environment();

}  // namespace ostro::io
