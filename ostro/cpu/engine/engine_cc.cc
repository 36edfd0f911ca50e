#include "ostro/cpu/engine/engine_cc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <future>
#include <sstream>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"
#include "ostro/base/sha256.h"
#include "ostro/compile/text/prelude.h"
#include "ostro/machine/machine.h"

namespace ostro::cpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKeySymbol = "ostro_kernels_key";
constexpr const char* kSource = "kernels.c";
constexpr const char* kObject = "kernels.so";

std::vector<std::string> split_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

// The object in the file; error: it does not load, or was compiled from another source.
Result<std::unique_ptr<SharedObject>> load_object(const fs::path& path, const std::string& key) {
  const Result<void*> handle = open_library(path.string());
  if (!handle.ok()) return io_error(fmt::format("compiled code does not load: {}", handle.error().message()));
  auto object = std::make_unique<SharedObject>(*handle);
  const auto* found = static_cast<const char*>(object->symbol(kKeySymbol));
  if (found == nullptr || std::strcmp(found, key.c_str()) != 0)
    return corrupt(fmt::format("{} holds the kernels of {}, not of {}", path.string(),
                               found == nullptr ? "no known source" : found, key));
  return object;
}

using Words = std::vector<std::string>;

// The compilers to try, best first; each is the words that start it.
std::vector<Words> candidates_for(const std::string& cc) {
  if (!cc.empty()) return {split_words(cc)};
  std::vector<Words> candidates = {{"cc"}, {"gcc"}, {"clang"}};
  // The Python packages ostro and ziglang lie side by side: .../ostro/bin/ostro, or
  // .../ostro/lib/libostro_native.so, and .../ziglang/zig.
  if (const auto program = code_path(); program.ok()) {
    const fs::path zig = fs::path(*program).parent_path().parent_path().parent_path() / "ziglang" / "zig";
    std::error_code ignored;
    if (fs::exists(zig, ignored)) candidates.push_back({zig.string(), "cc"});
  }
  return candidates;
}

// Whether the words start Zig's C compiler: "zig cc", "python3 -m ziglang cc".
bool is_zig(const Words& words) {
  if (words.size() < 2 || words.back() != "cc") return false;
  const std::string before = fs::path(words[words.size() - 2]).filename().string();
  return before == "zig" || before == "ziglang";
}

// The flags as Zig's C compiler takes them. It is clang, but has other names for processors. Without
// -nostdlib it would first compile parts of a C library, which kernels do not use.
std::string flags_for_zig(std::string flags) {
  for (const auto& [name, zig_name] :
       {std::pair("-march=x86-64-v3", "-mcpu=x86_64_v3"), std::pair("-march=x86-64-v4", "-mcpu=x86_64_v4")})
    if (const size_t at = flags.find(name); at != std::string::npos)
      flags.replace(at, std::strlen(name), zig_name);
  return flags + " -nostdlib";
}

}  // namespace

KernelCompiler::KernelCompiler(std::string cc, std::string cc_opt, const std::string& cache_dir,
                               machine::Isa isa, const compile::Dialect& dialect)
    : prelude_(compile::prelude_text(dialect)) {
  if (cc.empty()) cc = environment_variable("OSTRO_CC");
  if (cc_opt.empty()) cc_opt = environment_variable("OSTRO_CC_OPT");
  if (cc_opt.empty()) cc_opt = "-O3";
  flags_ = fmt::format(
      "{} -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fno-unwind-tables "
      "-fno-asynchronous-unwind-tables {} -w -fPIC -shared {}",
      machine::target_flags(isa), dialect.language, cc_opt);
  const fs::path cache = cache_dir.empty() ? default_cache_dir() : fs::path(cache_dir);
  if (!cache.empty()) cache_.folder = cache / "kernels";
  cache_.prefix = kUnfinished;
  temporary_.folder = temporary_dir();
  temporary_.prefix = "ostro-";
  std::vector<std::string> tried;
  for (const Words& candidate : candidates_for(cc)) {
    if (candidate.empty()) continue;
    tried.push_back(fmt::format("{}", fmt::join(candidate, " ")));
    Words words = candidate;
    words.emplace_back("--version");
    if (Result<std::string> version = run_program(words); version.ok()) {
      cc_ = candidate;
      version_ = std::move(*version);
      break;
    }
  }
  if (version_.empty())
    problem_ = fmt::format(
        "no C compiler runs ({}); install one (beside the Python package ostro, `pip install ziglang` does) "
        "or set OSTRO_CC",
        fmt::join(tried, ", "));
  if (is_zig(cc_)) flags_ = flags_for_zig(std::move(flags_));
}

Result<CompiledKernels> KernelCompiler::compile(const std::vector<Kernel>& kernels) {
  CompiledKernels out;
  if (kernels.empty()) return out;
  // Two files of about equal length, so that both compilers take about the same time.
  size_t total = 0, half = 0, first = kernels.size();
  for (const Kernel& k : kernels) total += k.source.size();
  if (kernels.size() >= 8)
    for (size_t i = 0; i < kernels.size(); ++i) {
      half += kernels[i].source.size();
      if (2 * half >= total) {
        first = i + 1;
        break;
      }
    }
  const auto text = [&](size_t begin, size_t end) {
    std::string source = prelude_;
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
  const std::string key = sha256_hex(
      fmt::format("ostro kernels 2\n{}\n{}\n{}\n{}", fmt::join(cc_, " "), version_, flags_, source));
  if (!cache_.folder.empty()) {
    const fs::path kept = cache_.folder / (key + ".so");
    if (is_sealed(kept)) {
      auto object = load_object(kept, key);
      if (object.ok()) return object;
    }
  }
  std::string failures;
  for (Place* place : {&cache_, &temporary_}) {
    if (place->folder.empty()) continue;
    std::string why = problem_of(*place);
    if (why.empty()) {
      Result<Built> built = build(*place, source, key);
      if (built.ok()) {
        if (place == &cache_) keep(*built, key);
        if (!failures.empty()) tell_not_kept(failures);
        return std::move(built->object);
      }
      why = built.error().message();
    }
    failures += fmt::format("{}in {}: {}", failures.empty() ? "" : "; ", place->folder.string(), why);
  }
  return io_error(
      fmt::format("{}; mend the compiler or set OSTRO_CC to another, and let OSTRO_CACHE_DIR or TMPDIR be a "
                  "folder with space that can be written and run from",
                  failures));
}

const std::string& KernelCompiler::problem_of(Place& place) const {
  std::call_once(place.tried, [&] {
    if (&place == &cache_) sweep_unfinished(place.folder);
    const auto built = build(place, "void probe(void) {}\n", "probe");
    if (!built.ok()) place.problem = built.error().message();
  });
  return place.problem;
}

Result<KernelCompiler::Built> KernelCompiler::build(const Place& place, const std::string& source,
                                                    const std::string& key) const {
  ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(place.folder, place.prefix));
  const std::string c = folder.path() / kSource, made = folder.path() / kObject;
  RETURN_IF_ERROR(write_text_file(c, fmt::format("{}const char {}[] = \"{}\";\n", source, kKeySymbol, key)));
  Words words;
  if (is_zig(cc_))  // it keeps parts of its work on disk, by default in the home folder
    words = {"env", "ZIG_GLOBAL_CACHE_DIR=" + folder.path().string(),
             "ZIG_LOCAL_CACHE_DIR=" + folder.path().string()};
  words.insert(words.end(), cc_.begin(), cc_.end());
  for (const std::string& f : split_words(flags_)) words.push_back(f);
  words.insert(words.end(), {"-o", made, c});
  RETURN_IF_ERROR(run_program(words));
  RETURN_IF_ERROR(seal_object(made));
  // Loaded from the private folder, so changes that others make to the cache have no effect.
  ASSIGN_OR_RETURN(auto object, load_object(made, key));
  return Built{std::move(folder), std::move(object)};
}

void KernelCompiler::keep(const Built& built, const std::string& key) {
  std::error_code ignored, failed;
  fs::rename(built.folder.path() / kSource, cache_.folder / (key + ".c"), ignored);  // for people
  const fs::path target = cache_.folder / (key + ".so");
  fs::rename(built.folder.path() / kObject, target, failed);
  if (failed && !is_sealed(target))
    tell_not_kept(fmt::format("cannot write {}: {}", target.string(), failed.message()));
}

void KernelCompiler::tell_not_kept(const std::string& why) {
  if (told_not_kept_.exchange(true)) return;
  log_warning(fmt::format(
      "compiled kernels are not kept, so every start compiles them again ({}); let OSTRO_CACHE_DIR "
      "be a folder with space that can be written and run from",
      why));
}

}  // namespace ostro::cpu
