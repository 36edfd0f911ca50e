// The step extract: the texts of pages, by resiliparse, which is a Python program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/run_program.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

// Another version may give another text, so the step's version grows with it.
constexpr const char* kResiliparse = "2.0.1";

// Reads the list of pages, and writes a row for each.
constexpr const char* kProgram = R"py(
import sys
sys.path[:] = [p for p in sys.path if p]  # nothing of the folder in which the command was started
import hashlib, importlib.metadata, json
try:
    there = importlib.metadata.version("resiliparse")
except importlib.metadata.PackageNotFoundError:
    there = ""
pinned, pages, out = sys.argv[1:]
if there != pinned:
    has = "resiliparse " + there if there else "no resiliparse"
    sys.exit(f"extract needs resiliparse {pinned}, and python3 has {has}: python3 -m pip install resiliparse=={pinned}")
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

with open(pages, encoding="utf-8") as file:
    job = json.load(file)

def pieces(path, is_rows):
    with open(path, "rb") as file:
        if not is_rows:
            data = file.read()
            yield path, 0, data, data
            return
        begin = 0
        for number, line in enumerate(file, 1):
            data = line.rstrip(b"\n")
            if data.strip():
                try:
                    html = json.loads(data)[job["html_key"]]
                    if not isinstance(html, str):
                        raise TypeError("is no text")
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    sys.exit(f"{path}:{number}: no page in the field {job['html_key']} (html_key): {error}")
                yield f"{path}:{number}", begin, data, html
            begin += len(line)

with open(out, "wb") as rows:
    for page in job["pages"]:
        for place, begin, data, html in pieces(page["path"], page["is_rows"]):
            try:
                if isinstance(html, bytes):
                    html = bytes_to_str(html, detect_encoding(html))
                if "\0" in html:
                    raise ValueError("it has a NUL character, so it is no HTML")
                text = extract_plain_text(html, main_content=job["content"] == "main")
            except Exception as error:
                sys.exit(f"{place}: resiliparse cannot read this page: {type(error).__name__}: {error}. Mend it or leave it out")
            row = {
                "page": page["name"],
                "bytes": [begin, begin + len(data)],
                "page_sha256": hashlib.sha256(data).hexdigest(),
                "text": text,
            }
            text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            rows.write(text.encode("utf-8", "replace") + b"\n")
)py";

}  // namespace

Status check_pages(const std::vector<data::SourceFile>& files) {
  for (const data::SourceFile& file : files)
    if (file.format == data::FileFormat::kParquet || io::has_extension(file.path, ".gz") ||
        io::has_extension(file.path, ".zst"))
      return invalid_argument(
          fmt::format("{}: extract reads HTML files and .jsonl, not packed ones; unpack it", file.path));
  return {};
}

Result<std::string> make_extraction(const Work& work, const std::string& folder) {
  io::FileSystem& fs = work.context.fs;
  const Step& step = work.step;
  const std::string& content = text_of(step, "content");
  if (content != "main" && content != "all")
    return invalid_argument(fmt::format("content is {}: use main or all", content));
  nlohmann::json job = {
      {"html_key", text_of(step, "html_key")}, {"content", content}, {"pages", nlohmann::json::array()}};
  const std::string& input = step.inputs.at("from");
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> files, files_of(work, input));
  RETURN_IF_ERROR(check_pages(files));
  const FetchedCopies copies(fs, folder);
  for (const data::SourceFile& file : files) {
    const bool is_rows = file.format == data::FileFormat::kJsonl;
    ASSIGN_OR_RETURN(const std::string path, fetched(fs, folder, file.path));
    job["pages"].push_back({{"path", path}, {"name", name_of(work, input, file.path)}, {"is_rows", is_rows}});
  }
  const std::string list = folder + ".pages", out = io::join_path(folder, "rows.jsonl");
  RETURN_IF_ERROR(io::write_file_atomically(fs, list, job.dump()));
  const auto said = run_program({"python3", "-B", "-c", kProgram, kResiliparse, list, out});
  RETURN_IF_ERROR(fs.remove(list));
  if (!said.ok()) return said.error();
  return io::file_sha256(fs, out);
}

}  // namespace ostro::lab
