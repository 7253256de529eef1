// SPDX-License-Identifier: BSD-2-Clause
// Addresses as symbols: stack(), sym() and friends, %a, %A and %k.
// Counterpart:  dt_consume.c (dt_print_stack, dt_print_sym, dt_print_mod), dt_subr.c
//               (dtrace_addr2str)
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dtrace/dif/dif.hpp"

namespace dtmalloc::dtrace {

class KernelSymbols;

struct SymbolText {
  const KernelSymbols* symbols = nullptr;  // null: addresses stay numbers
  int indent = 14;                         // of frames

  // "kernel`malloc+0x68", "kernel`M_TEMP", "0x1234".
  std::string address(std::uint64_t pc) const;
  // What sym(), mod() ... print, without blanks around it.
  std::string symbol(ValueForm form, std::span<const std::byte> bytes) const;
  // A newline, then a line for each frame; `width`: of a frame's text (negative: to the left).
  void stack(std::string& out, ValueForm form, std::span<const std::byte> bytes, int indentation,
             int width = 0) const;
  // A recorded value that is no plain one.
  void print(std::string& out, ValueForm form, std::span<const std::byte> bytes) const;
  // An address in a key, as all addresses of its symbol (module) compare.
  std::uint64_t canonical(ValueForm form, std::uint64_t pc) const;
};

}  // namespace dtmalloc::dtrace
