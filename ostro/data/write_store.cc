#include "ostro/data/write_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/log.h"

namespace ostro::data {
namespace {

class Progress {
 public:
  Progress(const BuildSettings& settings, const StoreWriter& writer) : settings_(settings) {
    const std::vector<SourceFile>& sources = writer.sources();
    for (const SourceFile& source : sources) progress_.bytes_total += source.size;
    progress_.files_total = static_cast<int64_t>(sources.size());
    for (const FileLedger& file : writer.state().files) progress_.bytes_resumed += file.source.size;
    progress_.bytes_done = progress_.bytes_resumed;
  }
  void add(const EncodedUnit& unit, const StoreWriter& writer) {
    progress_.documents += static_cast<int64_t>(unit.documents.size());
    progress_.tokens += static_cast<int64_t>(unit.tokens.size());
    // Within a file, the bytes of its rows where they are bytes of the file.
    const auto file = static_cast<size_t>(unit.file);
    if (unit.ends_file) progress_.bytes_done += writer.sources()[file].size - in_file_;
    const int64_t in_file =
        unit.ends_file ? 0 : std::clamp(unit.row_bytes, in_file_, writer.sources()[file].size);
    if (!unit.ends_file) progress_.bytes_done += in_file - in_file_;
    in_file_ = in_file;
    progress_.files_done = static_cast<int64_t>(writer.state().files.size());
    report();
  }
  void report() const {
    if (settings_.progress) settings_.progress(progress_);
  }

 private:
  const BuildSettings& settings_;
  BuildProgress progress_;
  int64_t in_file_ = 0;
};

}  // namespace

Result<StoreLedger> write_store(StoreWriter& writer, UnitSource& units, const BuildSettings& settings) {
  Progress progress(settings, writer);
  EncodedUnit unit;
  bool warned = false;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, units.next(unit));
    if (!more) break;
    RETURN_IF_ERROR(writer.add(unit));
    if (!unit.first_skipped.empty() && !warned)
      log_warning(
          fmt::format("{}; skipped, as data.on_bad_row says; further ones are counted", unit.first_skipped));
    warned |= !unit.first_skipped.empty();
    if (writer.uncommitted() >= settings.commit_bytes) RETURN_IF_ERROR(writer.commit(false));
    progress.add(unit, writer);
  }
  RETURN_IF_ERROR(writer.commit(true));
  return writer.finish();
}

}  // namespace ostro::data
