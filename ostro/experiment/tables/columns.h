// Column, Table: the tables of a record, and the class of each of their columns: how far a number can be
// trusted. Constant tables, for any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::lab {

// In the order in which one takes the place of another: a number that was made from several columns, and of
// constants of the query, which are declared, has the last class of them.
enum class NumberClass {
  kReplayed,  // recorded, and all steps that it stands on were done again with equal bits (replayed.h)
  kRecorded,  // in a hash chain, or follows from what is: another run of the plan gives it again
  kDeclared,  // a person said so: a licence, a label, a question
  kMeasured,  // a clock or a machine: another run gives another number
};
const char* class_name(NumberClass number_class);
// The class with a name; of any other text kDeclared.
NumberClass class_named(std::string_view name);

struct Column {
  std::string name, type;  // the type is SQLite's
  NumberClass number_class = NumberClass::kRecorded;
};

struct Table {
  std::string name;
  std::vector<Column> columns;

  // The weakest class of its columns.
  NumberClass weakest() const;
};

// The tables in the order in which they are made. Those with measured columns are not in every record.
std::span<const Table> record_tables();
const Table* find_table(std::string_view name);

}  // namespace ostro::lab
