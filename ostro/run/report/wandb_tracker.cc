#include "ostro/run/report/wandb_tracker.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/run/report/wandb_script.h"

extern char** environ;

namespace ostro::run {
namespace {

using Json = nlohmann::json;

// The Python process, with a socket that is its standard input and output.
class WandbProcess {
 public:
  WandbProcess() = default;
  ~WandbProcess() {
    if (socket_ >= 0) ::close(socket_);
    wait();
  }
  WandbProcess(const WandbProcess&) = delete;
  WandbProcess& operator=(const WandbProcess&) = delete;

  Status start() {
    const char* named = std::getenv("OSTRO_PYTHON");
    const std::string python = named != nullptr && *named != '\0' ? named : "python3";
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      return io_error(fmt::format("no socket: {}", std::strerror(errno)));
    socket_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // A group of its own: Ctrl-C is for the training, which ends this process when it has saved.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    std::string words[] = {python, "-c", kWandbScript};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    const int failed = ::posix_spawnp(&pid_, python.c_str(), &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    if (failed == 0) return {};
    pid_ = -1;
    return not_found(
        fmt::format("cannot start {}: {}; the tracker wandb needs Python 3 in PATH, or OSTRO_PYTHON names "
                    "one",
                    python, std::strerror(failed)));
  }

  // The first line that the process says; what there is of it when the process ends.
  std::string answer() {
    std::string line;
    for (char c = 0; ::recv(socket_, &c, 1, 0) == 1 && c != '\n';) line += c;
    return line;
  }

  // Passes on what the process takes now; the rest waits for the next call.
  Status send(const std::string& text) {
    constexpr size_t kMost = size_t{16} << 20;
    waiting_ += text;
    RETURN_IF_ERROR(pass_on(MSG_DONTWAIT));
    if (waiting_.size() > kMost)
      return io_error("the process that passes metrics on to wandb does not take any more");
    return {};
  }

  // Everything is passed on, and the process has ended.
  Status finish() {
    RETURN_IF_ERROR(pass_on(0));
    ::shutdown(socket_, SHUT_WR);
    return wait() ? Status()
                  : io_error("the process that passes metrics on to wandb failed; it said why above");
  }

 private:
  Status pass_on(int flags) {
    while (!waiting_.empty()) {
      const ssize_t n = ::send(socket_, waiting_.data(), waiting_.size(), MSG_NOSIGNAL | flags);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
      if (n < 0)
        return io_error(
            fmt::format("the process that passes metrics on to wandb has ended ({})", std::strerror(errno)));
      waiting_.erase(0, static_cast<size_t>(n));
    }
    return {};
  }
  bool wait() {
    if (pid_ <= 0) return true;
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  pid_t pid_ = -1;
  int socket_ = -1;
  std::string waiting_;
};

class WandbTracker final : public Tracker {
 public:
  explicit WandbTracker(std::unique_ptr<WandbProcess> process) : process_(std::move(process)) {}
  Status log(int64_t step, const Metrics& metrics) override {
    const Json line = {{"step", step}, {"metrics", metrics}};
    return process_->send(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  Status finish() override { return process_->finish(); }

 private:
  std::unique_ptr<WandbProcess> process_;
};

// The id under which wandb knows the run, also after it was resumed.
Result<std::string> run_id(io::FileSystem& fs, const std::string& directory) {
  const std::string path = io::join_path(directory, "ostro_run_id");
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (exists) return fs.read_file(path);
  const Nonce nonce = new_nonce();
  const std::string id = sha256_hex(std::string_view(nonce.data(), nonce.size())).substr(0, 16);
  RETURN_IF_ERROR(io::write_file_atomically(fs, path, id));
  return id;
}

}  // namespace

Result<std::unique_ptr<Tracker>> wandb_tracker(io::FileSystem& fs, const std::string& run_directory,
                                               const train::WandbTrackerOptions& options) {
  const std::string directory = io::join_path(run_directory, "wandb");
  RETURN_IF_ERROR(fs.make_dirs(directory));
  ASSIGN_OR_RETURN(const std::string id, run_id(fs, directory));
  Json init = {{"project", options.project},
               {"name", io::base_name(run_directory)},
               {"id", id},
               {"resume", "allow"},
               {"dir", run_directory},
               {"settings", {{"silent", true}}}};  // its lines would break up the progress line
  if (options.entity) init["entity"] = *options.entity;
  if (options.mode) init["mode"] = *options.mode;
  auto process = std::make_unique<WandbProcess>();
  RETURN_IF_ERROR(process->start());
  RETURN_IF_ERROR(process->send(init.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
  constexpr std::string_view kReady = "ready ";
  const std::string answer = process->answer();
  if (!answer.starts_with(kReady))
    return io_error(fmt::format("trainer.tracker: wandb: {}",
                                answer.empty() ? "its process ended without a word" : answer));
  log_info(fmt::format("wandb: {}", answer.substr(kReady.size())));
  return std::unique_ptr<Tracker>(std::make_unique<WandbTracker>(std::move(process)));
}

}  // namespace ostro::run
