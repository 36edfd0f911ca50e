// ApiKeys: the keys that a server lets in, from a file that has only their hashes.
//
// A line of the file is the SHA-256 of a key, 64 hexadecimal digits, then white space and a name of the
// key's owner: what `sha256sum` prints, with a name in place of "-". Empty lines and lines that begin with
// "#" count for nothing. The file is read again for every request, so a key that is taken out of it is
// refused at once. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::serve {

class ApiKeys {
 public:
  // `fs` must outlive it. Errors: as read().
  static Result<ApiKeys> open(io::FileSystem& fs, std::string path);

  // Reads the file again. Errors name the file and the line: it cannot be read; a line is none; a key or a
  // name stands there twice; there is no key. Then no key is let in until the file is right again.
  Status read();
  // How many keys there are with other names than this one.
  size_t count_without(std::string_view name) const;
  // The name of the key's owner; "": it is none of them. All keys are compared, so the time says nothing of
  // which one it nearly was.
  std::string owner(std::string_view key) const;

 private:
  ApiKeys(io::FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}

  io::FileSystem* fs_;
  std::string path_, text_;
  std::vector<std::pair<std::string, std::string>> hash_and_name_;
};

}  // namespace ostro::serve
