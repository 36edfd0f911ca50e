// s3_file_system: objects on an S3 server as files, files to read, to write as a whole and to append
// to, and locks.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"
#include "ostro/objects/s3/s3_client.h"

namespace ostro::objects {

// Paths are s3://bucket/key. "/" in keys separates directories; a directory exists while there is a key in
// it. Keys with "//" are not visible. FileInfo::mtime_ns is the time of the last change in whole seconds,
// plus a fraction made from the ETag, so that changed content has another time. A file that changes while it
// is open is ErrorCode::kCorrupt.
//
// What differs from a disk (docs/inside/object_store.md): a file appears when it is synced or closed, as a
// whole; appends are sent by sync(), by a thread every twelve seconds, and before this process reads the
// file; a folder cannot be renamed, and a file of more than 5 GiB neither (kUnsupported); a lock has a lease,
// and a process that has lost one changes nothing more below its folder (kIo).
//
// `http` and `clock` must outlive it. Thread-safe.
std::unique_ptr<io::FileSystem> s3_file_system(S3Options options, HttpClient& http, RetryClock& clock);

// An s3_file_system() with its own connections and with s3_options() from the environment, whose errors it
// returns.
Result<std::unique_ptr<io::FileSystem>> s3_file_system_from_environment();

}  // namespace ostro::objects
