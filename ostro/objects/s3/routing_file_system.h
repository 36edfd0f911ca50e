// default_file_system: the file system of the commands: local files and S3 objects.
#pragma once

#include "ostro/io/files/file_system.h"

namespace ostro::objects {

// Paths that begin with s3:// are objects on an S3 server (s3_file_system.h), other paths are local files.
// The environment is read when the first s3:// path is used. Other schemes (gs://, http://, ...) are
// ErrorCode::kUnsupported. Thread-safe; lives as long as the process.
io::FileSystem& default_file_system();

}  // namespace ostro::objects
