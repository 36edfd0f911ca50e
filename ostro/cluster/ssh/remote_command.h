// remote_script: the shell script that runs one worker on another machine, for ssh.
//
// It reads variables for the worker's environment from standard input (worker_variables), so that no secret
// is in a program's arguments. The worker gets the addresses by which ssh came: that of the coordinator, and
// its own for the other workers. When standard input ends, because the launcher or the connection is gone,
// the worker gets SIGTERM, and SIGKILL ten seconds later, which also ends one that is stopped. The script
// says on standard error which process the worker is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ostro::cluster {

struct RemoteWorker {
  std::string folder;   // where it runs; as home_word takes it
  std::string program;  // ostro on that machine
  int port = 0;         // of the coordinator
  std::string address;  // of the coordinator; "": the one from which ssh came
  int64_t workers = 1;  // on that machine; they share its cores unless OSTRO_THREADS is set
  // A file that is touched when the worker starts, and at each line that comes after the variables, so that
  // others see that the folder is in use; seen from the folder, "": none.
  std::string touched;
  int if_killed = 1;               // the script's exit status when the worker was killed
  std::vector<std::string> words;  // further arguments of `ostro worker`
};

// A path on another machine as a word of its shell: with "~/" in front, below the home folder there.
std::string home_word(const std::string& path);

// A script of a POSIX shell, as one word for ssh.
std::string remote_script(const RemoteWorker& worker);

// Finds, in what the scripts of places write to standard error, which process of which host is the worker of
// which place. Not thread-safe.
class RemoteProcesses {
 public:
  // The script of the place has written these bytes.
  void said(size_t place, std::string_view bytes);
  // The place whose worker is this process; nothing: none has said so.
  std::optional<size_t> place_of(const std::string& host, int64_t pid) const;

 private:
  std::map<size_t, std::string> lines_;  // that have no end yet
  std::map<size_t, std::pair<std::string, int64_t>> workers_;
};

}  // namespace ostro::cluster
