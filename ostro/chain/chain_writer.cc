#include "ostro/chain/chain_writer.h"

#include <fmt/format.h>

#include <span>

#include "ostro/base/failpoint.h"
#include "ostro/io/files/atomic_file.h"

namespace ostro::chain {

ChainWriter::ChainWriter(io::FileSystem& fs, std::string path, Chain chain,
                         std::unique_ptr<io::WritableFile> file)
    : fs_(&fs), path_(std::move(path)), chain_(std::move(chain)), file_(std::move(file)) {}

Result<ChainWriter> ChainWriter::create(io::FileSystem& fs, const std::string& path,
                                        const GenesisEntry& genesis) {
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (exists) return busy(fmt::format("{}: exists already", path));
  ASSIGN_OR_RETURN(const std::string json, entry_json(genesis));
  const std::string hash = entry_hash("", json);
  RETURN_IF_ERROR(io::write_file_once(fs, path, chain_line(json, hash) + "\n"));
  return resume(fs, path, entry_step(genesis));
}

Result<ChainWriter> ChainWriter::resume(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(Chain chain, truncate_to_step(fs, path, step));
  ASSIGN_OR_RETURN(std::unique_ptr<io::WritableFile> file, fs.open_append(path));
  return ChainWriter(fs, path, std::move(chain), std::move(file));
}

Status ChainWriter::append(const StepEntry& entry) { return append_entry(entry); }
Status ChainWriter::append(const AmendEntry& entry) { return append_entry(entry); }

Status ChainWriter::append(const CheckpointEntry& entry) {
  expecting_ = false;
  RETURN_IF_ERROR(append_entry(entry));
  for (ChainEntry& next : std::exchange(waiting_, {})) RETURN_IF_ERROR(append_entry(std::move(next)));
  return sync();
}

void ChainWriter::expect_checkpoint() {
  OSTRO_CHECK(!expecting_, "{}: the checkpoint entry of step {} has not come yet", path_, chain_.last_step());
  expecting_ = true;
}

Status ChainWriter::append_entry(ChainEntry entry) {
  RETURN_IF_ERROR(status_);
  ASSIGN_OR_RETURN(const std::string json, entry_json(entry));
  if (expecting_) {
    waiting_.push_back(std::move(entry));
    return {};
  }
  if (const Status order = check_order(chain_.links, entry); !order.ok())
    return order.error().with_context(path_);
  std::string hash = entry_hash(head(), json);
  const std::string line = chain_line(json, hash) + "\n";
  status_ = write_line(line);
  RETURN_IF_ERROR(status_);
  chain_.links.push_back({std::move(entry), std::move(hash)});
  chain_.bytes += static_cast<int64_t>(line.size());
  return {};
}

Status ChainWriter::write_line(const std::string& line) {
  const std::string_view text = line;
  Status status = file_->append(text.substr(0, text.size() / 2));
  if (status.ok()) {
    failpoint("chain_append");
    status = file_->append(text.substr(text.size() / 2));
  }
  // Readers take an unfinished last line for torn, so failing to cut it off loses nothing.
  if (!status.ok()) static_cast<void>(fs_->truncate(path_, chain_.bytes));
  return status;
}

Status ChainWriter::sync() {
  RETURN_IF_ERROR(status_);
  status_ = file_->sync();
  RETURN_IF_ERROR(status_);
  status_ = check_in_place();
  return status_;
}

// A file that was removed or replaced can still be written to, and nothing of it would be found afterwards.
Status ChainWriter::check_in_place() const {
  const auto lost = [&](const std::string& what) {
    return Status(io_error(fmt::format(
        "{}: {}: it was removed, moved or replaced while this process wrote to it. What was "
        "written since is lost; put back what you have of the run, and start the same command again",
        path_, what)));
  };
  const auto there = fs_->open(path_);
  if (!there.ok())
    return there.error().code() == ErrorCode::kNotFound ? lost("is gone") : Status(there.error());
  if ((*there)->size() != chain_.bytes)
    return lost(fmt::format("has {} bytes, but {} were written", (*there)->size(), chain_.bytes));
  ASSIGN_OR_RETURN(const std::string json, entry_json(chain_.links.back().entry));
  const std::string written = chain_line(json, head()) + "\n";
  std::string line(written.size(), '\0');
  RETURN_IF_ERROR((*there)->read(chain_.bytes - static_cast<int64_t>(written.size()),
                                 std::as_writable_bytes(std::span(line))));
  return line == written ? Status() : lost("ends with another line than the one written last");
}

}  // namespace ostro::chain
