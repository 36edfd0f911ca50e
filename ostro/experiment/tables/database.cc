#include "ostro/experiment/tables/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ostro/config/node.h"
#include "ostro/sql/sums.h"

namespace ostro::lab {
namespace {

constexpr size_t kMostRows = 100'000;
constexpr int kMostBytes = 1 << 24;  // of one value
constexpr int kHandlerSteps = 1'000'000, kMostHandlerCalls = 100;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

Error sql_error(sqlite3* db) { return invalid_argument(sqlite3_errmsg(db)); }

// What a statement wants, seen while it is prepared.
struct Reading {
  bool columns = false, rows = false, counts = false;  // reads columns, or rows without any; calls count
  NumberClass number_class = NumberClass::kRecorded;   // the weakest of what is read
  std::string denied;
  std::set<std::string> tables;
  int calls = 0;

  // Of rows without columns their number alone can matter. A constant that stands in each is no recorded one.
  NumberClass answer(const std::vector<sql::QueryConstant>& constants) const {
    const bool is_read = columns || (rows && counts);
    return is_read && !sql::compute(constants) ? number_class
                                               : std::max(number_class, NumberClass::kDeclared);
  }
};

// Functions whose value depends on their arguments alone.
bool is_pure(std::string_view name) {
  for (const char* pure :
       {"abs",       "avg",    "coalesce", "count",   "glob",   "hex",     "iif",  "ifnull",
        "instr",     "length", "like",     "lower",   "ltrim",  "max",     "min",  "nullif",
        "printf",    "format", "quote",    "replace", "round",  "rtrim",   "sign", "substr",
        "substring", "sum",    "total",    "trim",    "typeof", "unicode", "upper"})
    if (name == pure) return true;
  return false;
}

int authorize(void* data, int action, const char* first, const char* second, const char*, const char*) {
  auto& reading = *static_cast<Reading*>(data);
  const auto deny = [&](const std::string& what) {
    if (reading.denied.empty()) reading.denied = what;
    return SQLITE_DENY;
  };
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: {
      std::string name = second;
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      reading.counts |= name == "count";
      return is_pure(name) ? SQLITE_OK
                           : deny(fmt::format("the function {} is none of those of a report", name));
    }
    case SQLITE_READ: {
      const Table* table = find_table(first);
      // Rows of a common table expression are counted under its name; what it reads comes here by itself.
      const bool is_counted = *second == '\0' && !std::string_view(first).starts_with("sqlite_");
      if (table == nullptr)
        return is_counted ? SQLITE_OK : deny(fmt::format("{} is no table of the record", first));
      reading.tables.insert(table->name);
      const auto column = std::find_if(table->columns.begin(), table->columns.end(),
                                       [&](const Column& c) { return c.name == second; });
      // An empty name: of these rows no column is read.
      (*second != '\0' ? reading.columns : reading.rows) = true;
      reading.number_class = std::max(
          reading.number_class, column != table->columns.end() ? column->number_class : table->weakest());
      return SQLITE_OK;
    }
    default: return deny("only one SELECT over the tables of the record can be asked");
  }
}

int stop_when_long(void* data) { return ++static_cast<Reading*>(data)->calls > kMostHandlerCalls ? 1 : 0; }

Value column_value(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_NULL: return {};
    default: {
      const void* bytes = sqlite3_column_blob(statement, column);
      const int size = sqlite3_column_bytes(statement, column);
      return size == 0 ? std::string()
                       : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
    }
  }
}

// Prepares a statement under the authorizer, which stays set.
Result<Statement> prepare(sqlite3* db, const std::string& sql, Reading& reading) {
  sqlite3_set_authorizer(db, authorize, &reading);
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int done = sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()) + 1, &raw, &tail);
  Statement statement(raw);
  if (done != SQLITE_OK) return reading.denied.empty() ? sql_error(db) : invalid_argument(reading.denied);
  if (statement == nullptr || sqlite3_column_count(raw) == 0 || sqlite3_stmt_isexplain(raw) != 0)
    return invalid_argument("is no SELECT");
  if (std::string_view(tail).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    return invalid_argument("is more than one statement");
  return statement;
}

}  // namespace

void Database::Close::operator()(sqlite3* db) const { sqlite3_close(db); }

std::string sql_literal(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string value_text(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value))
    return std::isfinite(*d) ? config::format_double(*d) : *d > 0 ? "inf" : "-inf";
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  return "";
}

Result<Database> Database::in_memory() {
  Database out;
  sqlite3* raw = nullptr;
  if (sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK)
    return io_error("SQLite cannot open a database in memory");
  out.db_.reset(raw);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kMostBytes);
  // A name in quotes that no column has is an error and no text, which would be a constant in disguise.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  return out;
}

Result<Database> Database::create(bool measured) {
  ASSIGN_OR_RETURN(Database out, in_memory());
  sqlite3* const raw = out.db_.get();
  sql::add_exact_sums(raw);
  std::string sql = "PRAGMA page_size = 4096; PRAGMA encoding = 'UTF-8';";
  for (const Table& table : record_tables()) {
    if (!measured && table.weakest() == NumberClass::kMeasured) continue;
    std::string columns;
    for (const Column& c : table.columns)
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", c.name, c.type);
    sql += fmt::format("CREATE TABLE {} ({});", table.name, columns);
  }
  sql += "BEGIN";
  if (sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(raw);
  return out;
}

Result<Database> Database::open(const std::string& bytes) {
  ASSIGN_OR_RETURN(Database out, in_memory());
  sqlite3* const raw = out.db_.get();
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(std::max<size_t>(bytes.size(), 1)));
  if (copy == nullptr) return io_error("SQLite cannot read the database: out of memory");
  std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(raw, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK ||
      sqlite3_exec(raw, "SELECT count(*) FROM sqlite_master", nullptr, nullptr, nullptr) != SQLITE_OK)
    return sql_error(raw);
  return out;
}

Status Database::insert(const std::string& table, const std::vector<Value>& values) {
  sqlite3_set_authorizer(db_.get(), nullptr, nullptr);
  std::string places;
  for (size_t i = 0; i < values.size(); ++i) places += i == 0 ? "?" : ",?";
  const std::string sql = fmt::format("INSERT INTO {} VALUES ({})", table, places);
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) return sql_error(db_.get());
  const Statement statement(raw);
  for (size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (const auto* n = std::get_if<int64_t>(&values[i])) sqlite3_bind_int64(raw, at, *n);
    if (const auto* d = std::get_if<double>(&values[i])) sqlite3_bind_double(raw, at, *d);
    if (const auto* s = std::get_if<std::string>(&values[i]))
      sqlite3_bind_text(raw, at, s->c_str(), static_cast<int>(s->size()), SQLITE_TRANSIENT);
  }
  return sqlite3_step(raw) == SQLITE_DONE ? Status() : sql_error(db_.get());
}

Result<Rows> Database::select(const std::string& sql) const {
  sqlite3* db = db_.get();
  Reading reading;
  const Result<Statement> prepared = prepare(db, sql, reading);
  sqlite3_set_authorizer(db, nullptr, nullptr);
  if (!prepared.ok()) return prepared.error();
  sqlite3_stmt* statement = prepared->get();
  Rows out;
  out.constants = sql::constants_of(sql);
  out.number_class = reading.answer(out.constants);
  out.tables = reading.tables;
  const int columns = sqlite3_column_count(statement);
  for (int i = 0; i < columns; ++i) out.columns.emplace_back(sqlite3_column_name(statement, i));
  sqlite3_progress_handler(db, kHandlerSteps, stop_when_long, &reading);
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(statement)) == SQLITE_ROW && out.rows.size() < kMostRows) {
    out.rows.emplace_back();
    for (int i = 0; i < columns; ++i) out.rows.back().push_back(column_value(statement, i));
  }
  sqlite3_progress_handler(db, 0, nullptr, nullptr);
  if (step == SQLITE_ROW) return invalid_argument(fmt::format("gives more than {} rows", kMostRows));
  if (step == SQLITE_INTERRUPT)
    return invalid_argument("takes too long: more than 100 million steps of SQLite's machine");
  if (step != SQLITE_DONE) return sql_error(db);
  return out;
}

Result<Database::Reads> Database::reads(const std::string& sql) const {
  Reading reading;
  const Result<Statement> prepared = prepare(db_.get(), sql, reading);
  sqlite3_set_authorizer(db_.get(), nullptr, nullptr);
  if (!prepared.ok()) return prepared.error();
  return Reads{reading.tables, reading.answer(sql::constants_of(sql)), sqlite3_column_count(prepared->get())};
}

Status Database::each_row(const std::string& table,
                          const std::function<void(const std::vector<Value>&)>& take) const {
  Reading reading;
  const Result<Statement> prepared =
      prepare(db_.get(), fmt::format("SELECT * FROM {} ORDER BY rowid", table), reading);
  sqlite3_set_authorizer(db_.get(), nullptr, nullptr);
  if (!prepared.ok()) return prepared.error();
  sqlite3_stmt* statement = prepared->get();
  std::vector<Value> row(static_cast<size_t>(sqlite3_column_count(statement)));
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = column_value(statement, static_cast<int>(i));
    take(row);
  }
  return step == SQLITE_DONE ? Status() : sql_error(db_.get());
}

Result<std::string> Database::bytes() const {
  if (sqlite3_get_autocommit(db_.get()) == 0 &&
      sqlite3_exec(db_.get(), "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK)
    return sql_error(db_.get());
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db_.get(), "main", &size, 0);
  if (bytes == nullptr) return io_error("SQLite cannot write the database: out of memory");
  std::string out(static_cast<const char*>(static_cast<const void*>(bytes)), static_cast<size_t>(size));
  sqlite3_free(bytes);
  return out;
}

}  // namespace ostro::lab
