#include "ostro/lab/drive/first_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

// The fields that steps of the plan read of this source's rows. Columnar files are read by field.
data::RowOptions fields_of(const Plan& plan, const Step& source) {
  std::set<std::string> names;
  for (const Step& step : plan.steps)
    for (const auto& [parameter, input] : step.inputs)
      if (const config::Node* key = step.parameters.find("text_key"); input == source.name && key != nullptr)
        names.insert(key->text);
  data::RowOptions out;
  for (const std::string& name : names) out.fields.push_back({name, data::RowField::Type::kJson, false});
  return out;
}

// The beginning of a text: whole characters.
std::string beginning(const std::string& text) {
  size_t end = std::min(text.size(), static_cast<size_t>(kSanityTextBytes));
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

Result<std::vector<PinnedFile>> write_first_rows(OpenLab& lab, const Step& source,
                                                 std::vector<data::SourceFile>& files) {
  io::FileSystem& fs = lab.context.fs;
  const std::string folder = io::join_path(lab.directory, "rows/" + source.name);
  const data::RowOptions options = fields_of(lab.plan, source);
  for (const Step& step : lab.plan.steps)  // packed files become plain ones here
    if (step.kind->name == "extract" && step.inputs.at("from") == source.name)
      RETURN_IF_ERROR(check_pages(files));
  std::vector<PinnedFile> pinned;
  std::vector<data::SourceFile> first;
  int64_t rows = 0;
  for (const data::SourceFile& file : files) {
    if (rows == kSanityRows) break;
    ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs, file.path, file.format, options));
    std::string bytes;
    bool is_text = false;
    data::Row row;
    while (rows < kSanityRows) {
      ASSIGN_OR_RETURN(const bool has_row, reader->next(row));
      if (!has_row) break;
      if (row.is_blank()) continue;
      is_text = row.is_text;
      bytes += row.is_text ? beginning(row.bytes) : row.bytes + "\n";
      ++rows;
    }
    const std::string name = fmt::format("{:03}.{}", first.size(), is_text ? "txt" : "jsonl");
    data::SourceFile small = file;
    small.path = io::join_path(folder, name);
    small.format = is_text ? data::FileFormat::kText : data::FileFormat::kJsonl;
    small.size = static_cast<int64_t>(bytes.size());
    const auto there = fs.read_file(small.path);
    if (lab.works && (!there.ok() || *there != bytes)) {
      RETURN_IF_ERROR(fs.make_dirs(folder));
      RETURN_IF_ERROR(io::write_file_atomically(fs, small.path, bytes));
    }
    if (const auto info = fs.stat(small.path); info.ok()) small.mtime_ns = info->mtime_ns;
    pinned.push_back({"rows/" + source.name + "/" + name, sha256_hex(bytes)});
    first.push_back(std::move(small));
  }
  files = std::move(first);
  return pinned;
}

}  // namespace ostro::lab
