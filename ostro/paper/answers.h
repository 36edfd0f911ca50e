// answers: what a paper reads: values.json of a report, with what each answer was computed from. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::paper {

inline constexpr int kMostDigits = 9;  // behind the point of a rounded value

// A double with each number of digits behind the point, 0 to kMostDigits, rounded from its exact value; empty
// for other values.
std::vector<std::string> rounded_texts(const lab::Value& value);

// SHA-256 of a table of the record: of its rows in their order, each value as a letter and its bytes: "n"
// NULL, "i" and "r" an integer and a double as 8 bytes, lowest first, "t" a text with its length (8 bytes)
// before it. Errors: those of queries.
Result<std::string> table_hash(const lab::Database& record, const std::string& table);

// Of a value: its class, its query with its constants, the tables that it reads with their hashes, and what
// was done again of the steps that it stands on, in lines for people.
Result<std::string> value_words(const lab::ReportData& data, const lab::Quoted& value);

// values.json for a paper. `typed` are the places of numbers typed by hand ("paper.typ:3: 30").
Result<std::string> answers_json(const lab::ReportData& data, const lab::Plan& plan,
                                 const lab::LabState& state, const std::vector<std::string>& typed);

}  // namespace ostro::paper
