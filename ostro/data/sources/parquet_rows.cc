// Reads rows of .parquet files with Apache Arrow. The batch size is chosen so that about 4 MiB are unpacked
// at a time.
#include "ostro/data/sources/parquet_rows.h"

#include <arrow/config.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <optional>

#include "ostro/data/sources/arrow_json.h"

namespace ostro::data {
namespace {

constexpr int64_t kReadBytes = 4 << 20;  // unpacked
constexpr int64_t kReadRows = 1024;
constexpr int64_t kWholeChunk = 128 << 20;  // a larger column of a row group is read piece by piece
constexpr int64_t kStreamBuffer = 4 << 20;

// Adapts our file to Arrow's interface. Keeps the original error, which Arrow would turn into text.
class ArrowFile final : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowFile(std::unique_ptr<io::RandomAccessFile> file) : file_(std::move(file)) {}

  const std::optional<Error>& error() const { return error_; }

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return file_->size(); }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position_, bytes, out));
    position_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }
  using arrow::io::RandomAccessFile::ReadAt;
  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    const int64_t count = std::clamp<int64_t>(file_->size() - position, 0, bytes);
    const Status status = file_->read(position, {static_cast<std::byte*>(out), static_cast<size_t>(count)});
    if (status.ok()) return count;
    error_ = status.error();
    return arrow::Status::IOError(status.error().message());
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override {
    const int64_t count = std::clamp<int64_t>(file_->size() - position, 0, bytes);
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateBuffer(count));
    ARROW_RETURN_NOT_OK(ReadAt(position, count, buffer->mutable_data()));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  std::unique_ptr<io::RandomAccessFile> file_;
  int64_t position_ = 0;
  bool closed_ = false;
  std::optional<Error> error_;
};

const char* wanted_type(RowField::Type type) {
  switch (type) {
    case RowField::Type::kText: return "string or large_string";
    case RowField::Type::kInts: return "a list of integers";
    case RowField::Type::kNumbers: return "a list of numbers";
    case RowField::Type::kJson: return "strings, numbers, lists and structs";
  }
  return "";
}

bool fits(const arrow::DataType& type, RowField::Type wanted) {
  if (wanted == RowField::Type::kText) return is_arrow_text(type);
  if (wanted == RowField::Type::kJson) return !without_json(type);
  const bool list = type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
                    type.id() == arrow::Type::FIXED_SIZE_LIST;
  if (!list) return false;
  const arrow::Type::type item = type.field(0)->type()->id();
  const bool number = item == arrow::Type::FLOAT || item == arrow::Type::DOUBLE;
  return arrow::is_integer(item) || (wanted == RowField::Type::kNumbers && number);
}

// Calls a Parquet function. Parquet throws; `failure` turns the message into an error.
template <typename Work, typename Failure>
auto guard_parquet(const Work& work, const Failure& failure) -> decltype(work()) {
  try {
    return work();
  } catch (const parquet::ParquetException& e) {
    return failure(e.what());
  }
}

class ParquetRows final : public RowReader {
 public:
  ParquetRows(std::string path, const RowOptions& options) : path_(std::move(path)), options_(options) {}

  // Reads the footer alone first: it gives the columns to read, the row groups from `skip` on, and the size
  // of a row, from which the batch size follows. Rows of the first group before `skip` are then read and
  // dropped.
  Status open(io::FileSystem& fs, int64_t skip) {
    ASSIGN_OR_RETURN(auto opened, fs.open(path_));
    bytes_ = opened->size();
    file_ = std::make_shared<ArrowFile>(std::move(opened));
    return guarded([&]() -> Status {
      parquet::ReaderProperties properties(arrow::system_memory_pool());
      properties.set_page_checksum_verification(true);
      auto probe = parquet::ParquetFileReader::Open(file_, properties);
      const std::shared_ptr<parquet::FileMetaData> metadata = probe->metadata();
      std::vector<int> columns;
      for (int i = 0; i < metadata->num_columns(); ++i)
        if (find(metadata->schema()->GetColumnRoot(i)->name()) != nullptr) columns.push_back(i);
      int64_t rows = 0, unpacked = 0, largest = 0, before = 0;
      std::vector<int> groups;
      for (int g = 0; g < metadata->num_row_groups(); ++g) {
        const auto group = metadata->RowGroup(g);
        rows += group->num_rows();
        if (rows > skip) groups.push_back(g);
        if (rows <= skip) before = rows;
        for (const int column : columns) {
          unpacked += group->ColumnChunk(column)->total_uncompressed_size();
          largest = std::max(largest, group->ColumnChunk(column)->total_compressed_size());
        }
      }
      if (skip > rows)
        return corrupt(fmt::format("{}: has {} rows, but row {} was read before", path_, rows, skip));
      if (largest > kWholeChunk) {
        properties.enable_buffered_stream();
        properties.set_buffer_size(kStreamBuffer);
        probe = parquet::ParquetFileReader::Open(file_, properties, metadata);
      }
      parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
      arrow_properties.set_pre_buffer(false);
      arrow_properties.set_batch_size(std::clamp<int64_t>(
          kReadBytes / std::max<int64_t>(1, unpacked / std::max<int64_t>(1, rows)), 1, kReadRows));
      RETURN_IF_ERROR(take(
          parquet::arrow::FileReader::Make(arrow::system_memory_pool(), std::move(probe), arrow_properties),
          reader_));
      std::shared_ptr<arrow::Schema> schema;
      RETURN_IF_ERROR(as_status(reader_->GetSchema(&schema)));
      RETURN_IF_ERROR(check(*schema));
      RETURN_IF_ERROR(take(reader_->GetRecordBatchReader(groups, columns), batches_));
      number_ = before;
      while (number_ < skip) {
        ASSIGN_OR_RETURN(const bool more, load());
        if (!more) return ended_early();
        at_ = std::min(batch_->num_rows(), skip - number_);
        number_ += at_;
      }
      rows_ = rows;
      return {};
    });
  }

  Result<bool> next(Row& row) override {
    bool more = false;
    RETURN_IF_ERROR(guarded([&]() -> Status {
      while (batch_ == nullptr || at_ == batch_->num_rows()) {
        ASSIGN_OR_RETURN(const bool loaded, load());
        if (!loaded) return number_ == rows_ ? Status() : ended_early();
      }
      row = Row{.number = ++number_, .begin = 0, .end = 0, .is_text = is_text(), .bytes = {}, .problem = {}};
      fill(row);
      ++at_;
      more = true;
      return {};
    }));
    return more;
  }

  RowPosition position() const override { return {number_, 0}; }
  int64_t stored_bytes() const override { return bytes_of_rows(bytes_, number_, rows_); }
  std::string file_sha256() override { return ""; }  // pages of other columns are not read

 private:
  bool is_text() const {
    return options_.fields.size() == 1 && options_.fields[0].type == RowField::Type::kText;
  }

  const RowField* find(const std::string& name) const {
    for (const RowField& field : options_.fields)
      if (field.name == name) return &field;
    return nullptr;
  }

  Status check(const arrow::Schema& schema) const {
    for (const RowField& field : options_.fields) {
      const auto found = schema.GetFieldByName(field.name);
      if (found == nullptr && field.required)
        return invalid_argument(fmt::format("{}: has no column \"{}\" ({}); its columns are {}", path_,
                                            field.name, wanted_type(field.type),
                                            fmt::join(schema.field_names(), ", ")));
      if (found != nullptr && !fits(*found->type(), field.type))
        return invalid_argument(fmt::format("{}: column \"{}\" has type {}; expected {}", path_, field.name,
                                            found->type()->ToString(), wanted_type(field.type)));
    }
    return {};
  }

  // The next batch; false at the end.
  Result<bool> load() {
    batch_.reset();
    at_ = 0;
    RETURN_IF_ERROR(as_status(batches_->ReadNext(&batch_)));
    return batch_ != nullptr;
  }

  void fill(Row& row) {
    if (is_text()) {
      const arrow::Array& column = *batch_->column(0);
      if (column.IsNull(at_)) {
        row.problem = fmt::format("column \"{}\" is null", options_.fields[0].name);
        return;
      }
      const std::string_view text = arrow_text(column, at_);
      if (static_cast<int64_t>(text.size()) > options_.max_bytes)
        row.problem = row_too_long(static_cast<int64_t>(text.size()), options_.max_bytes);
      else
        row.bytes = text;
      return;
    }
    row.bytes = "{";
    for (int i = 0; i < batch_->num_columns() && row.problem.empty(); ++i) {
      if (i > 0) row.bytes += ',';
      append_json_string(batch_->column_name(i), row.bytes);
      row.bytes += ':';
      if (!append_json(*batch_->column(i), at_, row.bytes))
        row.problem =
            fmt::format("column \"{}\" holds a number that JSON does not have", batch_->column_name(i));
    }
    row.bytes += '}';
    if (row.problem.empty() && static_cast<int64_t>(row.bytes.size()) > options_.max_bytes)
      row.problem = row_too_long(static_cast<int64_t>(row.bytes.size()), options_.max_bytes);
    if (!row.problem.empty()) row.bytes.clear();
  }

  Status ended_early() const {
    return corrupt(fmt::format("{}: ends at row {}, but its header promises {}", path_, number_, rows_));
  }

  Status failure(const std::string& what) const {
    if (file_->error()) return *file_->error();
    return corrupt(fmt::format("{}: after row {}: {}", path_, number_, what));
  }
  Status as_status(const arrow::Status& status) const {
    return status.ok() ? Status() : failure(status.ToString());
  }
  template <typename T>
  Status take(arrow::Result<T> result, T& out) const {
    RETURN_IF_ERROR(as_status(result.status()));
    out = std::move(result).ValueUnsafe();
    return {};
  }
  template <typename F>
  Status guarded(const F& work) const {
    return guard_parquet(work, [&](const char* what) { return failure(what); });
  }

  const std::string path_;
  const RowOptions options_;
  std::shared_ptr<ArrowFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;      // in the batch
  int64_t number_ = 0;  // of the row last returned
  int64_t rows_ = 0;    // of the file
  int64_t bytes_ = 0;   // of it
};

}  // namespace

std::string parquet_reader() { return "Apache Arrow " + arrow::GetBuildInfo().version_string; }

Result<std::unique_ptr<RowReader>> open_parquet_rows(io::FileSystem& fs, const std::string& path,
                                                     const RowOptions& options, int64_t skip_rows) {
  auto rows = std::make_unique<ParquetRows>(path, options);
  RETURN_IF_ERROR(rows->open(fs, skip_rows));
  return std::unique_ptr<RowReader>(std::move(rows));
}

Result<std::vector<int64_t>> parquet_row_groups(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(auto opened, fs.open(path));
  const auto file = std::make_shared<ArrowFile>(std::move(opened));
  using Groups = Result<std::vector<int64_t>>;
  return guard_parquet(
      [&]() -> Groups {
        const auto metadata = parquet::ReadMetaData(file);
        std::vector<int64_t> rows;
        for (int g = 0; g < metadata->num_row_groups(); ++g)
          rows.push_back(metadata->RowGroup(g)->num_rows());
        return rows;
      },
      [&](const char* what) -> Groups {
        if (file->error()) return *file->error();
        return corrupt(fmt::format("{}: {}", path, what));
      });
}

}  // namespace ostro::data
