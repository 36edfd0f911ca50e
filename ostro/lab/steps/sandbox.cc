#include "ostro/lab/steps/sandbox.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "ostro/base/run_program.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

using Words = std::vector<std::string>;

// The environment of every program.
const std::vector<std::pair<std::string, std::string>> kEnvironment = {
    {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/tmp"}, {"LANG", "C.UTF-8"}, {"TZ", "UTC"}};

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// What is the same for every program.
Words sandbox_words() {
  Words words = {"bwrap",         "--unshare-all", "--die-with-parent",
                 "--new-session", "--clearenv",    "--hostname",
                 "ostro",         "--uid",         "1000",
                 "--gid",         "1000",          "--ro-bind",
                 "/usr",          "/usr"};
  for (const auto& [name, value] : kEnvironment) add(words, {"--setenv", name, value});
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib64"}) {
    std::error_code none;
    const std::filesystem::path target = std::filesystem::read_symlink(folder, none);
    if (!none)
      add(words, {"--symlink", target.string(), folder});
    else
      add(words, {"--ro-bind-try", folder, folder});
  }
  for (const char* file : {"/etc/alternatives", "/etc/ld.so.cache"})
    add(words, {"--ro-bind-try", file, file});
  add(words, {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/work"});
  return words;
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).string(); }

// Runs the words, the first of which only starts the program.
Status run_words(const Words& words) {
  const auto said = run_program(words);
  if (said.ok()) return {};
  std::string message = said.error().message();
  if (message.starts_with(words[0] + " ")) message.replace(0, words[0].size(), "the program");
  return Error(said.error().code(), message);
}

Status run_in_bubblewrap(const SandboxedRun& run) {
  Words words = sandbox_words();
  for (const auto& [path, there] : run.shown)
    add(words, {"--ro-bind", absolute(there), io::join_path("/work", path)});
  add(words, {"--bind", absolute(run.out), "/work/out", "--remount-ro", "/", "--chdir", "/work", "--"});
  add(words, run.words);
  return run_words(words);
}

Status link_to(const std::string& target, const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(io::parent_path(path), failed);
  if (!failed) std::filesystem::create_symlink(absolute(target), path, failed);
  return failed ? Status(io_error(fmt::format("{}: {}", path, failed.message()))) : Status();
}

Status run_among_links(io::FileSystem& fs, const SandboxedRun& run) {
  RETURN_IF_ERROR(fs.remove_all(run.scratch));
  RETURN_IF_ERROR(fs.make_dirs(run.scratch));
  for (const auto& [path, there] : run.shown)
    RETURN_IF_ERROR(link_to(there, io::join_path(run.scratch, path)));
  RETURN_IF_ERROR(link_to(run.out, io::join_path(run.scratch, "out")));
  Words words = {"env", "-i", "-C", run.scratch};
  for (const auto& [name, value] : kEnvironment) words.push_back(name + "=" + value);
  add(words, run.words);
  const Status ran = run_words(words);
  std::string beside;
  for (std::filesystem::recursive_directory_iterator it(run.scratch), end; it != end; ++it) {
    const std::string path = std::filesystem::relative(it->path(), run.scratch).string();
    if (!it->is_symlink() && !it->is_directory()) beside = path;
  }
  std::filesystem::remove_all(run.scratch);  // the links, not what they lead to
  RETURN_IF_ERROR(ran);
  if (!beside.empty())
    return invalid_argument(fmt::format("wrote {}, and may write to \"out\" alone", beside));
  return {};
}

}  // namespace

Status sandbox_works() {
  static const Status works = [] {
    Words words = sandbox_words();
    add(words, {"--remount-ro", "/", "--", "true"});
    const auto said = run_program(words);
    return said.ok() ? Status() : Status(said.error());
  }();
  return works;
}

Status run_sandboxed(io::FileSystem& fs, const SandboxedRun& run) {
  return sandbox_works().ok() ? run_in_bubblewrap(run) : run_among_links(fs, run);
}

}  // namespace ostro::lab
