#include "ostro/paper/typst.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ostro/base/object_cache.h"
#include "ostro/base/run_program.h"
#include "ostro/io/files/path.h"

namespace ostro::paper {
namespace {

// Sets the jobs of job.json in the folder "in", and writes outputs and answer.json.
constexpr const char* kProgram = R"py(
import sys
sys.path[:] = [p for p in sys.path if p]  # nothing of the folder in which the command was started
import importlib.metadata, json, os
pinned, folder = sys.argv[1:]

def answer(**words):
    with open(folder + "/answer.json", "w", encoding="utf-8") as file:
        json.dump(words, file)
    sys.exit(0)

install = f"python3 -m pip install typst=={pinned}"
try:
    there = importlib.metadata.version("typst")
except importlib.metadata.PackageNotFoundError:
    answer(missing=f"a paper needs typst {pinned}, and python3 has no typst: {install}")
if there != pinned:
    answer(missing=f"a paper needs typst {pinned}, and python3 has typst {there}: {install}")
for name in list(os.environ):
    if name.lower().endswith("_proxy"):
        del os.environ[name]
os.environ["https_proxy"] = os.environ["http_proxy"] = "http://127.0.0.1:9"  # packages are not fetched
try:
    import typst
except ImportError as error:
    answer(missing=f"typst {pinned} is there and cannot be loaded ({error}): {install}")
with open(folder + "/job.json", encoding="utf-8") as file:
    jobs = json.load(file)
root = folder + "/in"
os.chdir(root)
for number, job in enumerate(jobs):
    try:
        made, _ = typst.compile_with_warnings(root + "/" + job["main"], root=root, ignore_system_fonts=True,
            format=job["format"], timestamp=0, package_path=folder + "/none", package_cache_path=folder + "/none")
    except typst.TypstError as error:
        answer(error=error.message, diagnostic=error.diagnostic, hints=list(error.hints))
    with open(f"{folder}/{number}", "wb") as file:
        file.write(made)
answer()
)py";

// A folder for Typst, which is gone with the object.
Result<PrivateFolder> scratch_folder() {
  std::error_code failed;
  const std::filesystem::path place = std::filesystem::temp_directory_path(failed);
  if (failed)
    return io_error(fmt::format("TMPDIR: no folder for Typst: {}; set it to one", failed.message()));
  auto made = PrivateFolder::make(place, "ostro-paper-");
  if (!made.ok()) return io_error(made.error().message() + "; set TMPDIR to another folder");
  return made;
}

}  // namespace

std::string typst_error(const std::string& message, const std::string& diagnostic, const std::string& folder,
                        const std::set<std::string>& generated) {
  std::string what = message;
  if (constexpr std::string_view kPanicked = "panicked with: "; what.starts_with(kPanicked))
    what.erase(0, kPanicked.size());
  std::istringstream lines(diagnostic);
  constexpr std::string_view kPlace = "\u250c\u2500 ";  // before "FILE:LINE:COLUMN"
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(kPlace);
    if (at == std::string::npos) continue;
    std::string place = line.substr(at + kPlace.size());
    place.resize(std::min(place.size(), place.rfind(':')));
    const std::string file = place.substr(0, place.rfind(':'));
    if (!generated.contains(file)) return fmt::format("{}: {}", io::join_path(folder, place), what);
  }
  return what;
}

Result<TypstResult> run_typst(io::FileSystem& fs, const std::vector<lab::ReportFile>& files,
                              const std::vector<TypstJob>& jobs, const std::string& folder,
                              const std::set<std::string>& generated) {
  ASSIGN_OR_RETURN(const PrivateFolder scratch, scratch_folder());
  const auto scratch_file = [&](const std::string& name) { return (scratch.path() / name).string(); };
  for (const lab::ReportFile& file : files) {
    const std::string path = scratch_file(io::join_path("in", file.name));
    RETURN_IF_ERROR(fs.make_dirs(io::parent_path(path)));
    RETURN_IF_ERROR(fs.write_file(path, file.bytes));
  }
  auto list = nlohmann::json::array();
  for (const TypstJob& job : jobs) list.push_back({{"main", job.main}, {"format", job.format}});
  RETURN_IF_ERROR(fs.write_file(scratch_file("job.json"), list.dump()));
  TypstResult out;
  const auto said = run_program({"python3", "-B", "-c", kProgram, kTypst, scratch.path().string()});
  if (!said.ok() && said.error().code() == ErrorCode::kNotFound) {
    out.missing = fmt::format(
        "a paper needs typst {}, and {}: install Python 3 and run python3 -m pip install typst=={}", kTypst,
        said.error().message(), kTypst);
    return out;
  }
  if (!said.ok()) return said.error();
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(scratch_file("answer.json")));
  const nlohmann::json answer = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return io_error("python3 gave no answer about the paper");
  if (answer.contains("missing")) {
    out.missing = answer.value("missing", "");
    return out;
  }
  if (answer.contains("error")) {
    std::string what = answer.value("error", "");
    for (const auto& hint : answer.value("hints", std::vector<std::string>()))
      what += fmt::format("; {}", hint);
    return invalid_argument(typst_error(what, answer.value("diagnostic", ""), folder, generated));
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    ASSIGN_OR_RETURN(std::string bytes, fs.read_file(scratch_file(std::to_string(i))));
    out.outputs.push_back(std::move(bytes));
  }
  return out;
}

}  // namespace ostro::paper
