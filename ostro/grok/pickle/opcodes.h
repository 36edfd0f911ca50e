// Opcode, opcode_name: the opcodes of pickles: those that the machine knows, and the names of all, for
// errors.
#pragma once

#include <cstdint>

namespace ostro::grok {

enum Opcode : uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kReduce = 'R',
  kBinUnicode = 'X',
  kBuild = 'b',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kShortBinUnicode = 0x8c,
  kBinBytes8 = 0x8e,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// "REDUCE", for every opcode of protocols 0 to 5; null for a byte that is none.
const char* opcode_name(uint8_t opcode);

}  // namespace ostro::grok
