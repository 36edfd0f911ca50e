#include "ostro/data/sources/parquet_rows.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/json/from_string.h>
#include <doctest/doctest.h>
#include <parquet/arrow/writer.h>

#include <nlohmann/json.hpp>

#include "ostro/data/sources/arrow_json.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

using Json = nlohmann::ordered_json;

std::shared_ptr<arrow::Array> array_of(const std::shared_ptr<arrow::DataType>& type,
                                       const std::string& json) {
  auto made = arrow::json::ArrayFromJSONString(type, json);
  REQUIRE_MESSAGE(made.ok(), made.status().ToString());
  return *made;
}

void write_table(io::FileSystem& fs, const std::string& path, const std::vector<std::string>& names,
                 const std::vector<std::shared_ptr<arrow::Array>>& columns, int64_t group_rows = 3) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (size_t i = 0; i < names.size(); ++i) fields.push_back(arrow::field(names[i], columns[i]->type()));
  const auto table = arrow::Table::Make(arrow::schema(fields), columns);
  const auto sink = *arrow::io::BufferOutputStream::Create();
  auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  const auto properties =
      parquet::WriterProperties::Builder().enable_page_checksum()->disable_statistics()->build();
  const auto status = parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, group_rows,
                                                 properties, keep_types);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  write(fs, path, (*sink->Finish())->ToString());
}

std::vector<Row> rows_of(io::FileSystem& fs, const std::string& path, const RowOptions& options,
                         int64_t skip = 0) {
  auto reader = open_rows(fs, path, FileFormat::kParquet, options, {.rows = skip});
  REQUIRE_MESSAGE(reader.ok(), reader.error().message());
  std::vector<Row> rows;
  Row row;
  for (;;) {
    const auto more = (*reader)->next(row);
    REQUIRE_MESSAGE(more.ok(), more.error().message());
    if (!*more) return rows;
    CHECK((*reader)->position().rows == row.number);
    rows.push_back(row);
  }
}

std::string open_error(io::FileSystem& fs, const RowOptions& options, const std::string& path = "t.parquet") {
  auto reader = open_rows(fs, path, FileFormat::kParquet, options);
  return reader.ok() ? "" : reader.error().message();
}

}  // namespace

TEST_CASE("parquet: a column of strings, begun at any row") {
  io::MemoryFileSystem fs;
  std::string json = "[";
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) {
    texts.push_back(words(i, i % 7) + (i == 4 ? "\"\n" : ""));
    json += (i > 0 ? "," : "") + Json(texts.back()).dump();
  }
  json += "]";
  for (const auto& type :
       {arrow::utf8(), arrow::large_utf8(), arrow::dictionary(arrow::int32(), arrow::utf8())}) {
    CAPTURE(type->ToString());
    const auto plain = array_of(type->id() == arrow::Type::DICTIONARY ? arrow::utf8() : type, json);
    std::shared_ptr<arrow::Array> column = plain;
    if (type->id() == arrow::Type::DICTIONARY) {
      arrow::StringDictionary32Builder builder;
      for (const std::string& text : texts) REQUIRE(builder.Append(text).ok());
      column = *builder.Finish();
    }
    write_table(fs, "t.parquet", {"id", "text"},
                {array_of(
                     arrow::int64(), "[" +
                                         [] {
                                           std::string ids;
                                           for (int i = 0; i < 20; ++i)
                                             ids += (i > 0 ? "," : "") + std::to_string(i);
                                           return ids;
                                         }() +
                                         "]"),
                 column});
    for (int64_t skip = 0; skip <= 20; ++skip) {
      const std::vector<Row> rows = rows_of(fs, "t.parquet", {.fields = {{"text"}}}, skip);
      REQUIRE(rows.size() == static_cast<size_t>(20 - skip));
      for (size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i].number == skip + static_cast<int64_t>(i) + 1);
        CHECK(rows[i].is_text);
        CHECK(rows[i].bytes == texts[static_cast<size_t>(skip) + i]);
      }
    }
  }
  CHECK(open_rows(fs, "t.parquet", FileFormat::kParquet, {.fields = {{"text"}}}, {.rows = 21})
            .error()
            .message() == "t.parquet: has 20 rows, but row 21 was read before");
  // The groups before are not read.
  io::CountingFileSystem counting(fs);
  rows_of(counting, "t.parquet", {.fields = {{"text"}}}, 0);
  const int64_t all = counting.counts().bytes_read;
  rows_of(counting, "t.parquet", {.fields = {{"text"}}}, 18);
  CHECK(counting.counts().bytes_read - all < all);
}

TEST_CASE("parquet: how far reading is in the file goes by its rows, from any of them on") {
  io::MemoryFileSystem fs;
  write_table(fs, "t.parquet", {"text"}, {array_of(arrow::utf8(), R"(["a", "b", "c", "d", "e", "f", "g"])")});
  const int64_t size = fs.stat("t.parquet")->size;
  for (int64_t skip = 0; skip <= 7; ++skip) {
    auto reader = open_rows(fs, "t.parquet", FileFormat::kParquet, {.fields = {{"text"}}}, {.rows = skip});
    REQUIRE(reader.ok());
    CHECK((*reader)->stored_bytes() == bytes_of_rows(size, skip, 7));
    Row row;
    for (int64_t rows = skip + 1; *(*reader)->next(row); ++rows)
      CHECK((*reader)->stored_bytes() == bytes_of_rows(size, rows, 7));
    CHECK((*reader)->stored_bytes() == size);
  }
  CHECK(bytes_of_rows(700, 3, 7) == 300);
}

TEST_CASE("parquet: lists and structs as JSON") {
  io::MemoryFileSystem fs;
  const auto turn =
      arrow::struct_({arrow::field("role", arrow::utf8()), arrow::field("content", arrow::utf8())});
  const std::string messages =
      R"([[{"role":"user","content":"a \"b\"\n"},{"role":"assistant","content":null}],[],null])";
  write_table(fs, "t.parquet", {"messages", "ids", "weights", "flag"},
              {array_of(arrow::list(turn), messages),
               array_of(arrow::large_list(arrow::uint16()), "[[1,65535],[],[3]]"),
               array_of(arrow::list(arrow::float32()), "[[0.1,1],[2.5e-9],[]]"),
               array_of(arrow::boolean(), "[true,false,null]")});
  const RowOptions options{.fields = {{"messages", RowField::Type::kJson},
                                      {"ids", RowField::Type::kInts},
                                      {"weights", RowField::Type::kNumbers},
                                      {"flag", RowField::Type::kJson},
                                      {"absent", RowField::Type::kJson, false}}};
  const std::vector<Row> rows = rows_of(fs, "t.parquet", options);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].bytes ==
        R"({"messages":[{"role":"user","content":"a \"b\"\u000a"},{"role":"assistant","content":null}],)"
        R"("ids":[1,65535],"weights":[0.1,1.0],"flag":true})");
  CHECK(Json::parse(rows[1].bytes) ==
        Json::parse(R"({"messages":[],"ids":[],"weights":[2.5e-9],"flag":false})"));
  CHECK(Json::parse(rows[2].bytes) == Json::parse(R"({"messages":null,"ids":[3],"weights":[],"flag":null})"));
  CHECK_FALSE(rows[0].is_text);
}

TEST_CASE("parquet: what a row cannot give is that row's problem, what a file cannot is an error") {
  io::MemoryFileSystem fs;
  write_table(fs, "t.parquet", {"text", "body", "when", "weights"},
              {array_of(arrow::utf8(), R"(["a", null, "ccc", "dddddddddd"])"),
               array_of(arrow::int32(), "[1, 2, 3, 4]"),
               array_of(arrow::timestamp(arrow::TimeUnit::MICRO), "[0, 0, 0, 0]"),
               array_of(arrow::list(arrow::float64()), "[[1], [NaN], [Inf], []]")});
  const auto rows = rows_of(fs, "t.parquet", {.fields = {{"text"}}, .max_bytes = 9});
  CHECK(rows.at(0).problem.empty());
  CHECK(rows.at(1).problem == "column \"text\" is null");
  CHECK(rows.at(2).bytes == "ccc");
  CHECK(rows.at(3).problem == "is 10 bytes long, and at most 9 are read as one document; split it");
  const auto numbers = rows_of(fs, "t.parquet", {.fields = {{"weights", RowField::Type::kNumbers}}});
  CHECK(numbers.at(0).bytes == "{\"weights\":[1.0]}");
  CHECK(numbers.at(1).problem == "column \"weights\" holds a number that JSON does not have");
  CHECK(numbers.at(2).bytes.empty());
  CHECK(open_error(fs, {.fields = {{"texts"}}}) ==
        "t.parquet: has no column \"texts\" (string or large_string); its columns are text, body, when, "
        "weights");
  CHECK(open_error(fs, {.fields = {{"body"}}}) ==
        "t.parquet: column \"body\" has type int32; expected string or large_string");
  CHECK(
      open_error(fs, {.fields = {{"weights", RowField::Type::kInts}}}).find("expected a list of integers") !=
      std::string::npos);
  CHECK(open_error(fs, {.fields = {{"when", RowField::Type::kJson}}}) ==
        "t.parquet: column \"when\" has type timestamp[us]; expected strings, numbers, lists and structs");
}

TEST_CASE("parquet: a file cut or damaged anywhere is refused by name, or read as it was") {
  io::MemoryFileSystem fs;
  write_table(fs, "good", {"text"}, {array_of(arrow::utf8(), R"(["one", "two", "three", "four"])")}, 2);
  const std::string good = *fs.content("good");
  const std::vector<std::string> texts = {"one", "two", "three", "four"};
  // All rows, or the error.
  const auto read = [&](const std::string& content) -> Status {
    write(fs, "t.parquet", content);
    auto reader = open_rows(fs, "t.parquet", FileFormat::kParquet, {.fields = {{"text"}}});
    if (!reader.ok()) return reader.error();
    Row row;
    for (size_t i = 0;; ++i) {
      const auto more = (*reader)->next(row);
      if (!more.ok()) return more.error();
      if (!*more) return i == texts.size() ? Status() : Status(corrupt("t.parquet: rows are missing"));
      if (i >= texts.size() || row.bytes != texts[i]) return corrupt("t.parquet: other text");
    }
  };
  check_ok(read(good));
  for (size_t size = 0; size < good.size(); ++size) {
    const Status status = read(good.substr(0, size));
    CHECK_FALSE(status.ok());
    CHECK(status.error().message().starts_with("t.parquet: "));
  }
  const size_t pages = good.find("three");
  REQUIRE(pages != std::string::npos);
  std::string flipped = good;
  flipped[pages] ^= 1;
  const Status status = read(flipped);
  CHECK(status.error().message().find("CRC checksum verification failed") != std::string::npos);
}
