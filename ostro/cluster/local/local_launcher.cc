#include "ostro/cluster/local/local_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/cluster/watch/kept_output.h"
#include "ostro/cluster/watch/overheard.h"
#include "ostro/cluster/wire/socket.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"

extern char** environ;

namespace ostro::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{10};  // from the end of the job to SIGTERM, and from there to SIGKILL
constexpr int kMostFailures = 3;            // in a row, in one place

// Null-terminated pointers to strings that live as long as this object.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& w : words_) pointers_.push_back(w.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    bool replaced = false;
    for (const auto& [name, value] : added) replaced |= entry.rfind(name + "=", 0) == 0;
    if (!replaced) out.push_back(entry);
  }
  for (const auto& [name, value] : added) out.push_back(name + "=" + value);
  return out;
}

class Launcher {
 public:
  explicit Launcher(const LocalWorkers& workers)
      : workers_(workers), envp_(environment_with(workers.environment)) {
    places_.reserve(static_cast<size_t>(workers.count));
    for (size_t place = 0; place < static_cast<size_t>(workers.count); ++place) {
      std::vector<std::string> words = workers.command;
      if (place < workers.more.size())
        words.insert(words.end(), workers.more[place].begin(), workers.more[place].end());
      places_.emplace_back(std::move(words));
      if (place < workers.names.size()) places_.back().name = workers.names[place];
      places_.back().machine = place < workers.machines.size() ? workers.machines[place] : place;
      failures_.resize(std::max(failures_.size(), places_.back().machine + 1));
      corrupt_.resize(failures_.size());
    }
  }
  ~Launcher() {
    for (const Place& p : places_)
      if (p.pid > 0) ::kill(p.pid, SIGKILL);
    for (const Place& p : places_)
      if (p.pid > 0) ::waitpid(p.pid, nullptr, 0);
  }

  Result<int> run() {
    for (Place& place : places_) {
      if (!ready(place))
        place.again = Clock::now();
      else
        RETURN_IF_ERROR(start(place));
    }
    while (running() > 0 || (!over_ && !stopping() && waiting())) {
      for (Place& place : places_) {
        if (place.pid > 0) {
          int status = 0;
          const pid_t pid = ::waitpid(place.pid, &status, WNOHANG);
          hear(place);
          if (pid == place.pid)
            RETURN_IF_ERROR(ended(place, status));
          else
            feed(place);
        } else if (place.again && Clock::now() >= *place.again && !over_ && !stopping() && ready(place)) {
          RETURN_IF_ERROR(start(place));
        }
      }
      if (workers_.look) workers_.look();
      if (workers_.mended)
        for (const size_t machine : workers_.mended()) mended(machine);
      end_hopeless();
      press();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (over_) return result_;
    // One that was lost while it was to save may have been the one that had something to save.
    if (stopping() && !all_of_places_went()) return 1;
    log_warning("all workers have left");
    return kExitInterrupted;
  }

 private:
  // A place for one worker.
  struct Place {
    explicit Place(std::vector<std::string> words) : argv(std::move(words)) {}
    Words argv;
    std::string name;
    size_t machine = 0;
    std::unique_ptr<KeptOutput> output;
    pid_t pid = 0;  // 0: none runs
    Socket input;   // the end that this process holds of the worker's standard input
    Overheard said;
    Clock::time_point started, fed;
    bool went = false;                       // the last one left as it was asked to, or stopped with the job
    int failures = 0;                        // in a row, of workers that ended with an error
    int corrupt = 0;                         // workers that ended with kExitCorrupt
    std::optional<Clock::time_point> again;  // when another is tried after one that failed
  };

  int64_t running() const {
    return std::count_if(places_.begin(), places_.end(), [](const Place& p) { return p.pid > 0; });
  }
  bool waiting() const {
    return std::any_of(places_.begin(), places_.end(), [](const Place& p) { return p.again.has_value(); });
  }
  bool all_of_places_went() const {
    return std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.went; });
  }
  bool stopping() const { return workers_.stopping && workers_.stopping(); }
  // The job's exit status, when it is known to have ended for all workers.
  std::optional<int> job_ended() const { return workers_.over ? workers_.over() : std::nullopt; }
  bool ready(const Place& place) const { return !workers_.ready || workers_.ready(place.machine); }

  void mended(size_t machine) {
    failures_[machine] = corrupt_[machine];
    for (Place& place : places_) {
      if (place.machine != machine) continue;
      place.failures = place.corrupt;
      if (place.again && !place.went) place.again = Clock::now();
    }
  }

  void feed(Place& place) const {
    if (!workers_.line_feed_every || place.input.fd() < 0) return;
    if (Clock::now() - place.fed < *workers_.line_feed_every) return;
    place.fed = Clock::now();
    (void)!::write(place.input.fd(), "\n", 1);  // where that fails, the worker has ended
  }

  // Whether command[0] is another file than `program` by now.
  bool replaced() const {
    struct stat named{}, wanted{};
    if (workers_.program.empty() || ::stat(workers_.program.c_str(), &wanted) != 0) return false;
    return ::stat(workers_.command[0].c_str(), &named) != 0 || named.st_ino != wanted.st_ino ||
           named.st_dev != wanted.st_dev;
  }

  // The end of a pipe that a worker reads `input` from, which fits into a pipe; the place keeps the other
  // one.
  Result<Socket> input_of(Place& place) const {
    constexpr size_t kMost = size_t{32} << 10;
    if (workers_.input.empty()) return Socket();
    if (workers_.input.size() > kMost)
      return invalid_argument(
          fmt::format("the variables OSTRO_* and AWS_* have {} bytes; at most {} can be "
                      "given to a worker",
                      workers_.input.size(), kMost));
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    Socket read(ends[0]);
    place.input = Socket(ends[1]);
    if (::write(ends[1], workers_.input.data(), workers_.input.size()) !=
        static_cast<ssize_t>(workers_.input.size()))
      return Error(ErrorCode::kIo, fmt::format("cannot write to a worker: {}", std::strerror(errno)));
    return read;
  }

  // What its worker has written since the last call.
  void hear(Place& place) {
    place.said.read([&](std::string_view bytes) {
      const auto number = static_cast<size_t>(&place - places_.data());
      if (workers_.said) workers_.said(number, bytes);
      if (workers_.output_folder.empty()) return;
      if (place.output == nullptr) {
        io::FileSystem& fs = objects::default_file_system();
        (void)fs.make_dirs(workers_.output_folder);  // where it fails, so does writing, which is told
        place.output = std::make_unique<KeptOutput>(
            fs, io::join_path(workers_.output_folder, fmt::format("worker-{}.log", number)));
      }
      place.output->add(place.pid, bytes);
    });
  }

  Status start(Place& place) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    place.said = Overheard(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const Socket errors(ends[1]);
    ASSIGN_OR_RETURN(const Socket input, input_of(place));
    const char* program = replaced() ? workers_.program.c_str() : place.argv.get()[0];
    char** const argv = place.argv.get();
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      // Only calls that are safe after a fork of a process with threads. The workers get a process group of
      // their own: the terminal's Ctrl-C reaches the launcher alone, which asks them to end.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(errors.fd(), STDERR_FILENO);
      if (input.fd() >= 0) ::dup2(input.fd(), STDIN_FILENO);
      if (::getppid() == parent) ::execve(program, argv, envp_.get());
      ::_exit(127);
    }
    if (pid < 0) return Error(ErrorCode::kIo, fmt::format("cannot start a worker: {}", std::strerror(errno)));
    place.pid = pid;
    place.started = place.fed = Clock::now();
    place.went = false;
    place.again.reset();
    return Status();
  }

  Status ended(Place& place, int status) {
    if (place.output != nullptr) place.output->end(place.pid);
    const pid_t pid = std::exchange(place.pid, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool replaceable = WIFSIGNALED(status) || code == kExitLostPlace;
    const std::string what = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                                 : std::string("lost its place");
    if (over_) {
      // A job that has ended well is not failed by what a worker does after that.
      if (!replaceable && code != kExitLeft) finish(job_ended().value_or(code));
    } else if (replaceable && stopping()) {
      log_warning(fmt::format("worker process {}{} {}", pid, place.name, what));
    } else if (replaceable) {
      if (const std::string why = no_more(place); !why.empty()) {
        log_error(fmt::format("worker process {}{} {}; {}: giving up", pid, place.name, what, why));
        fail(1);
        return Status();
      }
      RETURN_IF_ERROR(start(place));
      log_warning(fmt::format("worker process {}{} {}; process {} takes its place", pid, place.name, what,
                              place.pid));
    } else if (code == kExitLeft) {
      left(place, pid);
    } else if (code == kExitInterrupted && stopping() && running() > 0) {
      // It may have had nothing to save; the others still compute and save.
      place.went = true;
      log_info(fmt::format("worker process {}{} has stopped", pid, place.name));
    } else if (code == 0 || code == kExitInterrupted) {
      finish(code);
    } else if (const std::optional<int> own = job_ended()) {
      finish(*own);
    } else {
      failed(place, pid, code);
    }
    return Status();
  }

  void left(Place& place, pid_t pid) {
    place.went = true;
    std::string later;
    if (workers_.back_after && !stopping()) {
      place.again = Clock::now() + *workers_.back_after;
      later = fmt::format("; another is tried in its place in {:.0f} s", seconds_of(*workers_.back_after));
    }
    log_info(fmt::format("worker process {}{} has left{}", pid, place.name, later));
  }

  static double seconds_of(std::chrono::milliseconds time) {
    return std::chrono::duration<double>(time).count();
  }

  // Counts a failure on the machine of the place. Whether the machine is left out: then none of its places is
  // tried before that is over.
  bool left_out(Place& place) {
    int64_t& failures = failures_[place.machine];
    if (workers_.left_out_after == 0 || ++failures < workers_.left_out_after) return false;
    const auto until = Clock::now() + workers_.left_out_for;
    for (Place& other : places_)
      if (other.machine == place.machine && (other.again || &other == &place)) other.again = until;
    return true;
  }

  // A worker that ended with an error, which it has told.
  void failed(Place& place, pid_t pid, int code) {
    if (code == 127)  // through another program the worker's is one of its words
      log_error(place.name.empty() ? fmt::format("{} could not be started", workers_.command[0])
                                   : fmt::format("a program for the worker{} could not be started; what was "
                                                 "said before names it",
                                                 place.name));
    if (stopping()) {  // no other is tried; what the others have they save
      log_warning(fmt::format("worker process {}{} ended with status {}", pid, place.name, code));
      if (running() == 0) finish(code);
      return;
    }
    const bool lived = Clock::now() - place.started > workers_.lived;
    if (lived) place.failures = place.corrupt, failures_[place.machine] = corrupt_[place.machine];
    if (!lived && workers_.failed) workers_.failed(place.machine);
    if (code == kExitCorrupt) ++place.corrupt, ++corrupt_[place.machine];
    ++place.failures;
    const bool progress = workers_.progress && workers_.progress() > 0;
    if (running() < workers_.least && (!progress || place.failures >= kMostFailures)) {
      if (progress)
        log_error(
            fmt::format("worker process {}{} ended with status {}, as {} before it in its place; {} workers "
                        "are left, and {} are needed",
                        pid, place.name, code, place.failures - 1, running(), workers_.least));
      return fail(code);
    }
    if (left_out(place)) {
      log_warning(fmt::format(
          "worker process {}{} ended with status {}; the machine is left out after {} failures in a row, and "
          "tried again in {:.0f} s; the others go on",
          pid, place.name, code, failures_[place.machine], seconds_of(workers_.left_out_for)));
      return;
    }
    const auto rest =
        std::min(workers_.most_rest, workers_.rest * (int64_t{1} << std::min(place.failures - 1, 20)));
    place.again = Clock::now() + rest;
    log_warning(
        fmt::format("worker process {}{} ended with status {}; the others go on, and another is tried in "
                    "its place in {:.1f} s",
                    pid, place.name, code, seconds_of(rest)));
  }

  int64_t most_fruitless() const { return workers_.restarts_without_progress * workers_.count; }

  // The reason why a worker that ended is not replaced; "" if it is, and then counts the replacement.
  std::string no_more(const Place& place) {
    const int64_t now = workers_.progress ? workers_.progress() : restarts_;
    if (std::exchange(progress_, now) != now) fruitless_ = 0;
    if (restarts_ >= workers_.restarts)
      return fmt::format("{} workers were replaced already", workers_.restarts);
    if (fruitless_ >= most_fruitless())
      return fmt::format("{} workers were replaced already while no step was done; {}", fruitless_,
                         place.said.last_words());
    ++restarts_;
    ++fruitless_;
    return "";
  }

  // SIGKILL also ends a stopped process. A pid is not reused before waitpid(), so it is one of this
  // launcher's.
  void end_hopeless() {
    if (workers_.hopeless_places)
      for (const size_t number : workers_.hopeless_places()) {
        const Place& place = places_.at(number);
        if (place.pid <= 0) continue;
        log_warning(fmt::format("the worker{} is silent: its process is killed", place.name));
        ::kill(place.pid, SIGKILL);
      }
    if (!workers_.hopeless) return;
    for (const int64_t pid : workers_.hopeless()) {
      if (std::none_of(places_.begin(), places_.end(),
                       [&](const Place& p) { return p.pid == static_cast<pid_t>(pid); }))
        continue;
      log_warning(fmt::format("worker process {} is silent: it is killed", pid));
      ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }

  // The job is over: with this status if none failed before.
  void finish(int code) {
    if (result_ == 0) result_ = code;
    if (!over_) over_ = Clock::now(), grace_ = kGrace;
  }

  // The job cannot go on. What its workers have they may save.
  void fail(int code) {
    finish(code);
    if (!workers_.stop) return;
    workers_.stop();
    grace_ = workers_.stop_grace;
  }

  // Ends workers that remain when the job is over, or when they were asked to stop and do not.
  void press() {
    if (!over_ && stopping()) {
      if (!asked_) asked_ = Clock::now();
      if (Clock::now() - *asked_ < workers_.stop_grace) return;
      log_error(
          fmt::format("the run was not saved within {:.0f} s (trainer.stop_timeout); its workers are ended",
                      seconds_of(workers_.stop_grace)));
      result_ = 1;
      over_ = Clock::now(), grace_ = std::chrono::milliseconds(0);
    }
    if (!over_ || pressed_ > 1 || Clock::now() - *over_ < grace_ + kGrace * pressed_) return;
    signal_all(pressed_ == 0 ? SIGTERM : SIGKILL);
    ++pressed_;
  }

  void signal_all(int number) {
    for (const Place& p : places_)
      if (p.pid > 0) ::kill(p.pid, number);
  }

  const LocalWorkers& workers_;
  Words envp_;
  std::vector<Place> places_;
  std::vector<int64_t> failures_;                  // in a row, by machine
  std::vector<int64_t> corrupt_;                   // of them with kExitCorrupt, ever
  std::optional<Clock::time_point> over_, asked_;  // when the job ended; when it was asked to stop
  std::chrono::milliseconds grace_{0};             // from over_ to SIGTERM
  int64_t restarts_ = 0;
  int64_t fruitless_ = 0;  // replaced since there was progress
  int64_t progress_ = 0;
  int pressed_ = 0, result_ = 0;
};

}  // namespace

Result<int> run_local_workers(const LocalWorkers& workers) { return Launcher(workers).run(); }

}  // namespace ostro::cluster
