// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a DIF object: what verify() accepts runs to its end and reads and writes only what
// it may.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/d_program.hpp"

namespace {

using namespace dtmalloc;
using namespace dtmalloc::dtrace;

VariableList variables() {
  ValueDesc text;
  text.size = 32;
  text.by_ref = text.is_string = true;
  ValueDesc bytes;
  bytes.size = 40;
  bytes.by_ref = true;
  return {{"n", Scope::global, kVarUser, {}},
          {"t", Scope::global, kVarUser + 1, text},
          {"b", Scope::global, kVarUser + 2, bytes},
          {"a", Scope::global, kVarUser + 3, {}, true, {{}, text}},
          {"n", Scope::local, kVarUser, {}},
          {"t", Scope::local, kVarUser + 1, text},
          {"b", Scope::local, kVarUser + 2, bytes},
          {"n", Scope::thread, kVarUser, {}},
          {"t", Scope::thread, kVarUser + 1, text},
          {"a", Scope::thread, kVarUser + 2, text, true, {text}},
          {"s", Scope::thread, kVarUser + 3, bytes}};
}

}  // namespace

// Bytes: number of integers (low nibble) and of string bytes (times 4, high nibble), integers,
// strings, instruction words. Integers with small values stand for addresses worth trying.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  testing::FakeKernel kernel;
  testing::FakeState machine(kernel, 32);
  ProgramSpace space;
  space.variables = variables();
  space.globals = 4;
  space.locals = 3;
  machine.reserve(space);

  const std::uint64_t known[] = {0,
                                 kScratchBase,
                                 kStringTableBase,
                                 kVariableBase + 32,
                                 kLocalBase + 32,
                                 kDynamicBase + 48,
                                 kernel.type_address,
                                 kernel.stats_address,
                                 kernel.name_address};
  const std::size_t integer_count = *data & 15;
  const std::size_t string_size = std::size_t{*data} >> 4 << 2;
  std::size_t at = 1;
  DifObject object;
  for (std::size_t i = 0; i < integer_count && at + 8 <= size; ++i, at += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, data + at, 8);
    object.ints.push_back(value < std::size(known) ? known[value] : value);
  }
  object.strings.assign(1, '\0');
  for (std::size_t i = 0; i < string_size && at < size; ++i, ++at) {
    object.strings += static_cast<char>(data[at]);
  }
  object.strings += '\0';
  for (; at + 4 <= size; at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, data + at, 4);
    object.text.push_back(word);
  }
  disassemble(object);
  const Result<VerifiedDif, std::string> verified = verify(object, variables());
  if (!verified) {
    if (verified.error().empty()) std::abort();
    return 0;
  }
  for (int pass = 0; pass < 2; ++pass) {
    run(*verified, machine.state);
    const auto offset = static_cast<std::size_t>(machine.state.fault_offset);
    if (machine.state.fault != Fault::none && offset / 4 >= object.text.size()) std::abort();
    if (machine.state.scratch_used > machine.state.scratch_size) std::abort();
  }
  return 0;
}
