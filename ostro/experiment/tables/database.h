// Database: a record in memory, as an SQLite database: written table by table, asked by SELECTs that can do
// nothing else. Only database.cc uses SQLite. One thread uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/experiment/tables/columns.h"
#include "ostro/sql/constants.h"

struct sqlite3;

namespace ostro::lab {

using Value = std::variant<std::monostate, int64_t, double, std::string>;  // the first is NULL

// A value as text: the shortest that reads back as the same number; "" for NULL.
std::string value_text(const Value& value);
// A text as an SQL literal.
std::string sql_literal(const std::string& text);

struct Rows {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  // The last of the columns that were read; at best declared where a constant of the query can be a part of
  // the answer. Only ask_record() (replayed.h) says kReplayed.
  NumberClass number_class = NumberClass::kDeclared;
  std::set<std::string> tables = {};               // that were read
  std::vector<sql::QueryConstant> constants = {};  // of the query
};

class Database {
 public:
  // An empty database with the tables of a record; those with measured columns only if `measured`.
  static Result<Database> create(bool measured);

  // The record in the bytes of a file, of which nothing is believed: its rows are only compared. Errors: the
  // bytes are no database.
  static Result<Database> open(const std::string& bytes);

  // Appends a row, with a value for each column.
  Status insert(const std::string& table, const std::vector<Value>& values);

  // The rows of a SELECT. It can read the record's tables and call functions whose value depends on their
  // arguments alone; sum, avg and total are exact (sql::ExactSum), so no order of rows changes a digit.
  // Errors: kInvalidArgument for a statement that is wrong, no SELECT, more than one, or wants more; for more
  // than 100,000 rows or 100 million steps of SQLite's machine.
  Result<Rows> select(const std::string& sql) const;
  // The record's tables that a SELECT reads, and its class. Errors: as select().
  struct Reads {
    std::set<std::string> tables;
    NumberClass number_class = NumberClass::kDeclared;
    int columns = 0;  // that it gives
  };
  Result<Reads> reads(const std::string& sql) const;

  // Gives all rows of a table of the record, in their order, one after the other, however many there are.
  Status each_row(const std::string& table, const std::function<void(const std::vector<Value>&)>& take) const;

  // The bytes of the database's file. The same rows in the same order give the same bytes with one version of
  // SQLite.
  Result<std::string> bytes() const;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  // An empty one, with the limits that all have.
  static Result<Database> in_memory();
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace ostro::lab
