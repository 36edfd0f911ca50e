// The cache of compiled kernels: what it must find out, share and do without.
#include "ostro/cpu/engine/engine_cc.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "ostro/base/log.h"

namespace ostro::cpu {
namespace {

namespace fs = std::filesystem;

// All programs' kernels look alike from outside; these give a number.
std::vector<Kernel> kernels_giving(int number) {
  return {
      {"k0", fmt::format("void k0(char* const* b, i64 begin, i64 end) {{ *(int*)b[0] = {}; }}\n", number)}};
}

int result_of(const CompiledKernels& kernels) {
  int result = 0;
  char* buffer = reinterpret_cast<char*>(&result);
  kernels.functions.at(0)(&buffer, 0, 1);
  return result;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::set<fs::path> entries_of(const fs::path& folder, const std::string& extension) {
  std::set<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (extension.empty() || entry.path().extension() == extension) found.insert(entry.path());
  return found;
}

struct Fixture {
  PrivateFolder root = PrivateFolder::make(fs::temp_directory_path(), "ostro-kernels-test-").value();
  fs::path kernels = root.path() / "kernels";
  std::vector<std::string> warnings;
  LogSink before = set_log_sink([this](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning) warnings.emplace_back(line);
  });

  Fixture() = default;
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() { set_log_sink(before); }

  Result<CompiledKernels> compile(int number, const std::string& cc = "", const std::string& opt = "-O1",
                                  const std::string& cache = "") const {
    KernelCompiler compiler(cc, opt, cache.empty() ? root.path().string() : cache, machine::Isa::kAvx2);
    REQUIRE_MESSAGE(compiler.available(), compiler.problem());
    return compiler.compile(kernels_giving(number));
  }

  // A compiler that fails from the moment on that `broken` exists.
  fs::path broken = root.path() / "broken";
  std::string breakable_compiler() const {
    const fs::path script = root.path() / "compiler";
    std::ofstream(script) << "#!/bin/sh\ncase \"$*\" in *--version*) ;; *) if [ -e " << broken.string()
                          << " ]; then echo the disk is full; exit 3; fi ;; esac\nexec cc \"$@\"\n";
    fs::permissions(script, fs::perms::owner_all);
    return script.string();
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a sound object of another program under this key is found out and made again") {
  CHECK(result_of(compile(1).value()) == 1);
  const fs::path first = *entries_of(kernels, ".so").begin();
  CHECK(result_of(compile(2).value()) == 2);
  fs::path second;
  for (const fs::path& object : entries_of(kernels, ".so"))
    if (object != first) second = object;
  fs::remove(first);
  fs::copy_file(second, first);
  CHECK(is_sealed(first));  // so that only the key inside tells
  CHECK(result_of(compile(1).value()) == 1);
  CHECK((contents(first) != contents(second)));
  CHECK(result_of(compile(2).value()) == 2);
}

TEST_CASE_FIXTURE(Fixture, "many compilers at once in one cache give each program its own kernels") {
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        KernelCompiler compiler("", "-O1", root.path().string(), machine::Isa::kAvx2);
        const auto made = compiler.compile(kernels_giving(i % 2));
        if (!made.ok() || result_of(*made) != i % 2) ++wrong;
      });
  }
  CHECK(wrong == 0);
  CHECK(warnings.empty());
  CHECK(entries_of(kernels, ".so").size() == 2);
  CHECK(entries_of(kernels, "").size() == 4);  // with the sources; nothing unfinished
}

TEST_CASE_FIXTURE(Fixture, "private folders never share a name and go with their owner") {
  std::set<fs::path> names;
  {
    std::vector<PrivateFolder> folders;
    for (int i = 0; i < 20; ++i) {
      folders.push_back(PrivateFolder::make(kernels, kUnfinished).value());
      names.insert(folders.back().path());
      CHECK(fs::status(folders.back().path()).permissions() == fs::perms::owner_all);
    }
    CHECK(names.size() == 20);
    CHECK(entries_of(kernels, "") == names);
  }
  CHECK(entries_of(kernels, "").empty());
}

// A stand-in for Zig, which takes cc's words only as Zig's compiler does, and keeps its caches where it is
// told.
TEST_CASE_FIXTURE(Fixture,
                  "Zig's C compiler gets its own names of processors, no libraries and a cache of ours") {
  const fs::path zig = root.path() / "zig", module = root.path() / "ziglang";
  std::ofstream(zig) << R"(#!/bin/sh
[ "$1" = cc ] || exit 4
shift
[ "$1" = --version ] && exec cc --version
case "$*" in *-march*) echo "error: unknown CPU: 'x86'"; exit 5 ;; esac
case "$*" in *-mcpu=x86_64_v3*-nostdlib*) ;; *) exit 6 ;; esac
[ -d "$ZIG_GLOBAL_CACHE_DIR" ] && [ -d "$ZIG_LOCAL_CACHE_DIR" ] || exit 7
for word in "$@"; do
  shift
  case "$word" in -mcpu=*) word=-march=x86-64-v3 ;; esac
  set -- "$@" "$word"
done
exec cc "$@"
)";
  fs::permissions(zig, fs::perms::owner_all);
  fs::copy_file(zig, module);
  const auto made = compile(1, zig.string() + " cc");
  REQUIRE_MESSAGE(made.ok(), made.error().message());
  CHECK(result_of(*made) == 1);
  CHECK(result_of(compile(2, module.string() + " cc").value()) == 2);
  CHECK(warnings.empty());
}

TEST_CASE_FIXTURE(Fixture, "a filled cache needs no compiler that works") {
  const std::string cc = breakable_compiler();
  CHECK(result_of(compile(1, cc).value()) == 1);
  std::ofstream(broken) << "yes";
  CHECK(result_of(compile(1, cc).value()) == 1);
  CHECK(warnings.empty());
  const auto other = compile(2, cc);
  REQUIRE(!other.ok());
  for (const char* word : {"the disk is full", "status 3", "OSTRO_CC", "OSTRO_CACHE_DIR", "TMPDIR"})
    CHECK_MESSAGE(other.error().message().find(word) != std::string::npos, other.error().message());
  CHECK(entries_of(kernels, "").size() == 2);  // of program 1; nothing unfinished
}

TEST_CASE_FIXTURE(Fixture, "a cache that cannot be made means kernels for this process alone, said once") {
  std::ofstream(root.path() / "file") << "not a folder";
  const std::string place = root.path() / "file" / "cache";
  KernelCompiler compiler("", "-O1", place, machine::Isa::kAvx2);
  for (int number : {1, 2}) {
    const auto made = compiler.compile(kernels_giving(number));
    REQUIRE_MESSAGE(made.ok(), made.error().message());
    CHECK(result_of(*made) == number);
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(place) != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "an object that cannot be moved to its key is used all the same") {
  CHECK(result_of(compile(1).value()) == 1);
  const fs::path object = *entries_of(kernels, ".so").begin();
  fs::remove(object);
  fs::create_directory(object);
  CHECK(result_of(compile(1).value()) == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(object.string()) != std::string::npos);
  CHECK(entries_of(kernels, "").size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "unfinished work of a process that was killed is removed after a day") {
  const fs::path old = kernels / "tmp-old", fresh = kernels / "tmp-new";
  fs::create_directories(old);
  std::ofstream(old / "kernels.c") << "void";
  fs::create_directories(fresh);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  CHECK(result_of(compile(1).value()) == 1);
  CHECK(!fs::exists(old));
  CHECK(fs::exists(fresh));
}

}  // namespace ostro::cpu
