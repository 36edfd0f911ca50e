#include "ostro/cpu/engine_cc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/base/test_fault.h"
#include "ostro/compile/prelude.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace ostro::cpu {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Runs a program; its standard output and errors go to `log`. The exit status, or -1 when it could not start.
int run_program(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string unique_name() {
  static std::atomic<uint64_t> next{0};
  return fmt::format("tmp-{}-{}", getpid(), next++);
}

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

std::string default_cache_dir() {
  if (const std::string dir = variable("OSTRO_CACHE_DIR"); !dir.empty()) return dir;
  if (const std::string dir = variable("XDG_CACHE_HOME"); !dir.empty()) return dir + "/ostro";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/ostro";
  return "";
}

bool writable(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  return !error && access(dir.c_str(), W_OK) == 0;
}

constexpr size_t kHashDigits = 64;

// An object is followed by the hash of its bytes: damage shows before the loader maps it.
bool intact(const std::string& bytes) {
  return bytes.size() > kHashDigits &&
         sha256_hex(std::string_view(bytes).substr(0, bytes.size() - kHashDigits)) ==
             std::string_view(bytes).substr(bytes.size() - kHashDigits);
}

}  // namespace

SharedObject::~SharedObject() { dlclose(handle_); }

void* SharedObject::symbol(const char* name) const { return dlsym(handle_, name); }

KernelCompiler::KernelCompiler(std::string cc, std::string cc_opt, std::string cache_dir, Isa isa)
    : cc_(std::move(cc)), cache_dir_(std::move(cache_dir)) {
  if (cc_.empty()) cc_ = variable("OSTRO_CC");
  if (cc_opt.empty()) cc_opt = variable("OSTRO_CC_OPT");
  if (cc_opt.empty()) cc_opt = "-O3";
  flags_ = fmt::format(
      "{} -ffp-contract={} -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fno-unwind-tables "
      "-fno-asynchronous-unwind-tables -std=gnu11 -w -fPIC -shared {}",
      isa >= Isa::kAvx512 ? "-march=x86-64-v4 -mprefer-vector-width=512" : "-march=x86-64-v3",
      test_fault("contraction") ? "fast" : "off", cc_opt);
  if (cache_dir_.empty()) cache_dir_ = default_cache_dir();
  const fs::path temporary = fs::path(variable("TMPDIR").empty() ? "/tmp" : variable("TMPDIR"));
  if (cache_dir_.empty() || !writable(fs::path(cache_dir_) / "kernels")) {
    keep_ = false;
    cache_dir_ = (temporary / fmt::format("ostro-{}", getpid())).string();
    if (!writable(fs::path(cache_dir_) / "kernels")) {
      problem_ = fmt::format("neither the cache folder nor {} can be written", temporary.string());
      return;
    }
  }
  const fs::path log = fs::path(cache_dir_) / unique_name();
  std::vector<std::string> candidates =
      cc_.empty() ? std::vector<std::string>{"cc", "gcc", "clang"} : std::vector<std::string>{cc_};
  for (const std::string& candidate : candidates) {
    std::vector<std::string> words = split(candidate);
    if (words.empty()) continue;
    words.push_back("--version");
    if (run_program(words, log.string()) == 0) {
      cc_ = candidate;
      version_ = read_file(log);
      break;
    }
  }
  std::error_code ignored;
  fs::remove(log, ignored);
  if (version_.empty())
    problem_ =
        fmt::format("no C compiler runs ({}); install one or set OSTRO_CC", fmt::join(candidates, ", "));
}

Result<CompiledKernels> KernelCompiler::compile(const std::vector<compile::Kernel>& kernels) {
  CompiledKernels out;
  if (kernels.empty()) return out;
  // Two files by length, so that both compilers end at about the same time.
  size_t total = 0, half = 0, first = kernels.size();
  for (const compile::Kernel& k : kernels) total += k.source.size();
  if (kernels.size() >= 8)
    for (size_t i = 0; i < kernels.size(); ++i) {
      half += kernels[i].source.size();
      if (2 * half >= total) {
        first = i + 1;
        break;
      }
    }
  const auto text = [&](size_t begin, size_t end) {
    std::string source = compile::prelude_text();
    for (size_t i = begin; i < end; ++i) source += kernels[i].source;
    return source;
  };
  std::future<Result<std::unique_ptr<SharedObject>>> second;
  if (first < kernels.size())
    second = std::async(std::launch::async, [&] { return load_or_build(text(first, kernels.size())); });
  auto object = load_or_build(text(0, first));
  Result<std::unique_ptr<SharedObject>> other = std::unique_ptr<SharedObject>();
  if (second.valid()) other = second.get();
  if (!object.ok()) return object.error();
  if (!other.ok()) return other.error();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const SharedObject& from = i < first ? **object : **other;
    void* symbol = from.symbol(kernels[i].name.c_str());
    if (symbol == nullptr) return corrupt(fmt::format("generated code lacks {}", kernels[i].name));
    out.functions.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  out.objects.push_back(std::move(*object));
  if (first < kernels.size()) out.objects.push_back(std::move(*other));
  return out;
}

Result<std::unique_ptr<SharedObject>> KernelCompiler::load_or_build(const std::string& source) {
  const std::string key =
      sha256_hex(fmt::format("ostro kernels 1\n{}\n{}\n{}\n{}", cc_, version_, flags_, source));
  const fs::path path = fs::path(cache_dir_) / "kernels" / (key + ".so");
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::error_code ignored;
    if (attempt == 1 || !fs::exists(path, ignored) || !intact(read_file(path))) {
      if (Result<std::string> built = build(source, key); !built.ok()) return built.error();
    }
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      auto object = std::make_unique<SharedObject>(handle);
      if (!keep_) fs::remove(path, ignored);
      return object;
    }
  }
  const char* why = dlerror();
  return io_error(
      fmt::format("{} does not load: {}", path.string(), why == nullptr ? "unknown reason" : why));
}

Result<std::string> KernelCompiler::build(const std::string& source, const std::string& key) {
  const fs::path folder = fs::path(cache_dir_) / "kernels";
  const fs::path base = folder / unique_name();
  const std::string c = base.string() + ".c", object = base.string() + ".so", log = base.string() + ".log";
  std::ofstream(c, std::ios::binary) << source;
  std::vector<std::string> words = split(cc_);
  for (const std::string& f : split(flags_)) words.push_back(f);
  words.insert(words.end(), {"-o", object, c});
  const int status = run_program(words, log);
  std::error_code ignored, failed;
  const std::string messages = read_file(log);
  fs::remove(log, ignored);
  if (status != 0) {
    fs::remove(c, ignored);
    fs::remove(object, ignored);
    return io_error(fmt::format("{} failed on generated code: {}", cc_, messages.substr(0, 2000)));
  }
  const std::string hash = sha256_hex(read_file(object));
  std::ofstream(object, std::ios::binary | std::ios::app) << hash;
  // The source stays beside the object, for people.
  const fs::path target = folder / (key + ".so");
  fs::rename(c, folder / (key + ".c"), ignored);
  if (!keep_) fs::remove(folder / (key + ".c"), ignored);
  fs::rename(object, target, failed);
  if (failed) return io_error(fmt::format("cannot write {}: {}", target.string(), failed.message()));
  return target.string();
}

}  // namespace ostro::cpu
