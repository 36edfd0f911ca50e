// bring: carries a program and small files to another machine, over the connection of ssh by which that
// machine is reached anyway, and only what is not there yet.
//
// A copy is a folder that is named by the SHA-256 of its list, below the folder of all copies. A file that an
// older copy there has already, with the same SHA-256, is linked. Others come as a tar file on standard
// input; each is compared with its SHA-256. The copy gets its name when it is whole, by a rename. Of older
// copies the newest are kept, and those that are in use: a process there runs them, or their list was touched
// in the last days, as workers do that begin in one (remote_command.h), maybe on another machine with the
// same home folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cluster/ssh/line_process.h"
#include "ostro/io/files/file_system.h"

namespace ostro::cluster {

// How many copies stay on a machine, the newest ones.
inline constexpr int kKeptCopies = 3;
// For how many days a copy counts as in use after its list was touched.
inline constexpr int kDaysOfCopy = 7;
// The folder of a copy in which workers run, which is there also when no file is in it; and its list, seen
// from that folder.
inline constexpr const char *kWorkOfCopy = "work", *kListOfCopy = "../list";
// A file of a copy is smaller than this: tar has 11 octal digits for its size.
inline constexpr int64_t kMostOfBroughtFile = int64_t{1} << 33;

struct BroughtFile {
  std::string name;  // in the copy: relative, without ".."
  std::string from;  // the file on this machine; "": `text` is what it holds
  std::string text;
  int64_t size = 0;    // bytes
  std::string sha256;  // 64 digits
};

// What a machine is to have.
struct BroughtCopy {
  std::string folder;                  // of all copies there; with "~/" in front, below the home folder there
  std::vector<BroughtFile> files;      // in the order of their names; one of them is `program`
  std::string program;                 // with this name; it must run there
  std::vector<std::string> elsewhere;  // paths outside of the copy that must be there already

  std::string list() const;   // of names and sums, as sha256sum reads it
  std::string place() const;  // the folder of the copy: `folder` and 16 digits of the list's SHA-256
};

// Checks the names and sizes of files. Errors: kInvalidArgument, with the name.
Status check_copy(const BroughtCopy& copy);

// The script of a POSIX shell that takes the copy, as one word for ssh. `nonce` is the name of its folder for
// what has not arrived yet: digits and letters that no other call uses.
std::string bring_script(const BroughtCopy& copy, const std::string& nonce);

struct Arrival {
  std::string folder;      // of the copy there
  int64_t files = 0;       // that were sent
  int64_t bytes = 0;       // of them
  int64_t removed = 0;     // older copies
  bool was_there = false;  // the copy, whole
};

// Talks with bring_script on the other machine. `sent` is told of bytes that were sent, now and then; `stop`
// ends it. Errors name what is wrong there, with the fix: another architecture, too little room (kIo), what
// is missing (kNotFound), a file that arrived with other bytes (kCorrupt), a program that does not run.
Result<Arrival> bring(io::FileSystem& fs, const BroughtCopy& copy, LineProcess& remote,
                      const std::function<void(int64_t bytes)>& sent, const std::function<bool()>& stop);

}  // namespace ostro::cluster
