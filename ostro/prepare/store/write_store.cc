#include "ostro/prepare/store/write_store.h"

#include <fmt/core.h>

#include <utility>

#include "ostro/base/log.h"

namespace ostro::prepare {
namespace {

class Progress {
 public:
  Progress(const data::BuildSettings& settings, const StoreWriter& writer) : settings_(settings) {
    const std::vector<data::SourceFile>& sources = writer.sources();
    for (const data::SourceFile& source : sources) progress_.bytes_total += source.size;
    progress_.files_total = static_cast<int64_t>(sources.size());
    for (const data::FileLedger& file : writer.state().files) finished_ += file.source.size;
  }
  void add(const EncodedUnit& unit, const StoreWriter& writer) {
    if (!std::exchange(begun_, true)) progress_.bytes_resumed = finished_ + unit.stored_begin;
    progress_.documents += static_cast<int64_t>(unit.documents.size());
    progress_.tokens += static_cast<int64_t>(unit.tokens.size());
    progress_.bytes_done = finished_ + unit.stored_end;
    if (unit.ends_file) finished_ = progress_.bytes_done;
    progress_.files_done = static_cast<int64_t>(writer.state().files.size());
    if (settings_.progress) settings_.progress(progress_);
  }

 private:
  const data::BuildSettings& settings_;
  data::BuildProgress progress_;
  int64_t finished_ = 0;  // bytes of all files before the file of the next unit
  bool begun_ = false;
};

}  // namespace

Result<data::StoreLedger> write_store(StoreWriter& writer, UnitSource& units,
                                      const data::BuildSettings& settings) {
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
  return writer.finish(settings.threads_or_all());
}

}  // namespace ostro::prepare
