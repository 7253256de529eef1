// SPDX-License-Identifier: BSD-2-Clause
// Objects written by hand: what verify() refuses, what run() computes and where it faults.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "dtrace/dif/dif_int.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr ValueDesc kWord;

DifObject object_of(std::vector<std::uint32_t> text, std::vector<std::uint64_t> ints = {},
                    std::string strings = std::string(1, '\0')) {
  DifObject object;
  object.text = std::move(text);
  object.ints = std::move(ints);
  object.strings = std::move(strings);
  object.result = kWord;
  return object;
}
constexpr std::uint32_t ret(unsigned reg) { return dif_registers(DifOp::ret, 0, 0, reg); }
constexpr std::uint32_t setx(unsigned index, unsigned reg) {
  return dif_index(DifOp::setx, index, reg);
}

class DifRun : public ::testing::Test {
 protected:
  DifRun() : machine_(kernel_) {
    space_.globals = space_.locals = 2;
    space_.variables = {{"n", Scope::global, kVarUser, kWord},
                        {"t", Scope::global, kVarUser + 1, text_desc()},
                        {"n", Scope::local, kVarUser, kWord},
                        {"t", Scope::local, kVarUser + 1, text_desc()}};
    machine_.reserve(space_);
  }
  static ValueDesc text_desc() {
    ValueDesc desc;
    desc.size = 256;
    desc.by_ref = desc.is_string = true;
    return desc;
  }
  std::uint64_t result(DifObject object) {
    auto verified = verify(std::move(object), space_.variables);
    EXPECT_TRUE(verified) << verified.error();
    return verified ? run(*verified, machine_.state) : 0;
  }
  std::string refusal(DifObject object) {
    auto verified = verify(std::move(object), space_.variables);
    return verified ? "" : verified.error();
  }
  testing::FakeKernel kernel_;
  testing::FakeState machine_;
  ProgramSpace space_;
};

TEST_F(DifRun, ComputesEveryRegisterOperation) {
  struct Row {
    DifOp op;
    std::uint64_t left, right, result;
  };
  constexpr auto kNegative = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const Row rows[] = {
      {DifOp::or_, 5, 3, 7},
      {DifOp::xor_, 5, 3, 6},
      {DifOp::and_, 5, 3, 1},
      {DifOp::sll, 1, 65, 2},
      {DifOp::srl, kNegative(-1), 63, 1},
      {DifOp::sra, kNegative(-8), 1, kNegative(-4)},
      {DifOp::sub, 3, 5, kNegative(-2)},
      {DifOp::add, kNegative(-1), 2, 1},
      {DifOp::mul, kNegative(-3), 7, kNegative(-21)},
      {DifOp::sdiv, kNegative(-7), 2, kNegative(-3)},
      {DifOp::udiv, kNegative(-7), 2, (~std::uint64_t{0} - 6) / 2},
      {DifOp::srem, kNegative(-7), 2, kNegative(-1)},
      {DifOp::urem, 7, 4, 3},
      {DifOp::sdiv, std::uint64_t{1} << 63, kNegative(-1), std::uint64_t{1} << 63},
      {DifOp::srem, std::uint64_t{1} << 63, kNegative(-1), 0},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(result(object_of({setx(0, 1), setx(1, 2), dif_registers(row.op, 1, 2, 3), ret(3)},
                               {row.left, row.right})),
              row.result)
        << static_cast<unsigned>(row.op);
  }
  EXPECT_EQ(result(object_of({setx(0, 1), dif_registers(DifOp::not_, 1, 0, 2), ret(2)}, {0})),
            ~std::uint64_t{0});
}

TEST_F(DifRun, BranchesByTheConditionCodes) {
  struct Row {
    DifOp branch;
    bool less, equal, greater, minus_one_against_one;
  };
  constexpr Row kRows[] = {
      {DifOp::ba, true, true, true, true},    {DifOp::be, false, true, false, false},
      {DifOp::bne, true, false, true, true},  {DifOp::bg, false, false, true, false},
      {DifOp::bge, false, true, true, false}, {DifOp::bl, true, false, false, true},
      {DifOp::ble, true, true, false, true},  {DifOp::bgu, false, false, true, true},
      {DifOp::bgeu, false, true, true, true}, {DifOp::blu, true, false, false, false},
      {DifOp::bleu, true, true, false, false}};
  const auto taken = [&](DifOp branch, std::uint64_t left, std::uint64_t right) {
    return result(object_of({setx(0, 1), setx(1, 2), dif_registers(DifOp::cmp, 1, 2, 0),
                             dif_label(branch, 5), dif_registers(DifOp::mov, 0, 0, 1), setx(2, 3),
                             dif_registers(DifOp::cmp, 1, 0, 0), dif_label(DifOp::be, 9),
                             dif_label(DifOp::ba, 10), dif_registers(DifOp::mov, 0, 0, 3), ret(3)},
                            {left, right, 1})) == 1;
  };
  for (const Row& row : kRows) {
    const auto op = static_cast<unsigned>(row.branch);
    EXPECT_EQ(taken(row.branch, 2, 3), row.less) << op;
    EXPECT_EQ(taken(row.branch, 3, 3), row.equal) << op;
    EXPECT_EQ(taken(row.branch, 4, 3), row.greater) << op;
    EXPECT_EQ(taken(row.branch, ~std::uint64_t{0}, 1), row.minus_one_against_one) << op;
  }
}

TEST_F(DifRun, LoadsByWidthAndSign) {
  // REQ: DLANG-27
  kernel_.stats.mts_memalloced = 0xfedcba9876543210 | 0x80808080;
  const std::uint64_t value = kernel_.stats.mts_memalloced;
  const auto load = [&](DifOp op) {
    return result(
        object_of({setx(0, 1), dif_registers(op, 1, 0, 2), ret(2)}, {kernel_.stats_address}));
  };
  EXPECT_EQ(load(DifOp::ldub), value & 0xff);
  EXPECT_EQ(load(DifOp::lduh), value & 0xffff);
  EXPECT_EQ(load(DifOp::lduw), value & 0xffffffff);
  EXPECT_EQ(load(DifOp::ldx), value);
  EXPECT_EQ(load(DifOp::ldsb), static_cast<std::uint64_t>(static_cast<std::int8_t>(value)));
  EXPECT_EQ(load(DifOp::ldsh), static_cast<std::uint64_t>(static_cast<std::int16_t>(value)));
  EXPECT_EQ(load(DifOp::ldsw), static_cast<std::uint64_t>(static_cast<std::int32_t>(value)));
  // A pointer in memory is a host address; what D sees is the simulated one.
  EXPECT_EQ(result(object_of({setx(0, 1), dif_registers(DifOp::ldx, 1, 1, 2), ret(2)},
                             {kernel_.type_address + 16})),
            kernel_.name_address);
}

TEST_F(DifRun, FaultsWithCodeAddressAndOffset) {
  // REQ: DLANG-27
  const auto faults = [&](DifObject object, Fault fault, std::uint64_t address,
                          std::int32_t offset) {
    result(std::move(object));
    EXPECT_EQ(machine_.state.fault, fault);
    EXPECT_EQ(machine_.state.fault_address, address);
    EXPECT_EQ(machine_.state.fault_offset, offset);
  };
  faults(object_of({dif_registers(DifOp::ldx, 0, 0, 1), ret(1)}), Fault::badaddr, 0, 0);
  // The last readable byte, and one past it.
  const std::uint64_t end = kernel_.name_address + sizeof kernel_.name;
  faults(object_of({setx(0, 1), dif_registers(DifOp::ldub, 1, 0, 1), ret(1)}, {end - 1}),
         Fault::none, 0, 0);
  faults(object_of({setx(0, 1), dif_registers(DifOp::lduh, 1, 0, 1), ret(1)}, {end - 1}),
         Fault::badaddr, end - 1, 4);
  faults(object_of({setx(0, 1), dif_registers(DifOp::udiv, 1, 0, 1), ret(1)}, {5}), Fault::divzero,
         0, 4);
  faults(object_of({setx(0, 1), dif_registers(DifOp::stx, 0, 0, 1), ret(0)}, {kScratchBase + 1}),
         Fault::badalign, kScratchBase + 1, 4);
  faults(
      object_of({setx(0, 1), dif_registers(DifOp::stb, 0, 0, 1), ret(0)}, {kernel_.stats_address}),
      Fault::badaddr, kernel_.stats_address, 4);
  faults(object_of({setx(0, 1), dif_registers(DifOp::allocs, 1, 0, 2), ret(2)}, {1 << 20}),
         Fault::noscratch, 0, 4);
  // A retired range is not readable any more.
  kernel_.map.retire(&kernel_.stats);
  faults(
      object_of({setx(0, 1), dif_registers(DifOp::ldx, 1, 0, 1), ret(1)}, {kernel_.stats_address}),
      Fault::badaddr, kernel_.stats_address, 4);
}

TEST_F(DifRun, StoresInScratchOnly) {
  const std::uint64_t address = result(
      object_of({setx(0, 1), dif_registers(DifOp::allocs, 1, 0, 2), setx(1, 3),
                 dif_registers(DifOp::stw, 3, 0, 2), dif_registers(DifOp::lduw, 2, 0, 4), ret(4)},
                {16, 0x1234567890}));
  EXPECT_EQ(address, 0x34567890U);
  EXPECT_EQ(machine_.state.scratch_used, 16U);
  const std::uint64_t copied = result(
      object_of({setx(0, 1), setx(1, 2), dif_registers(DifOp::allocs, 1, 0, 3),
                 dif_registers(DifOp::copys, 2, 1, 3), dif_registers(DifOp::ldub, 3, 0, 4), ret(4)},
                {4, kernel_.name_address}));
  EXPECT_EQ(copied, static_cast<std::uint64_t>('t'));
}

TEST_F(DifRun, KeepsVariablesByKind) {
  result(object_of({setx(0, 1), dif_index(DifOp::stgs, kVarUser, 1), ret(1)}, {7}));
  EXPECT_EQ(machine_.state.globals[0], 7U);
  const std::string strings = std::string("\0text\0", 6);
  result(object_of({dif_index(DifOp::sets, 1, 1), dif_index(DifOp::stgs, kVarUser + 1, 1), ret(0)},
                   {}, strings));
  EXPECT_STREQ(reinterpret_cast<const char*>(machine_.state.global_bytes), "text");
  EXPECT_EQ(result(object_of({dif_index(DifOp::ldgs, kVarUser + 1, 1), ret(1)})), kVariableBase);
  result(object_of({dif_index(DifOp::stgs, kVarUser + 1, 0), ret(0)}));
  EXPECT_EQ(result(object_of({dif_index(DifOp::ldgs, kVarUser + 1, 1), ret(1)})), 0U);
  result(object_of({dif_index(DifOp::sets, 1, 1), dif_index(DifOp::stls, kVarUser + 1, 1), ret(0)},
                   {}, strings));
  EXPECT_EQ(result(object_of({dif_index(DifOp::ldls, kVarUser + 1, 1), ret(1)})), kLocalBase);
  EXPECT_EQ(result(object_of({dif_index(DifOp::ldgs, kVarPid, 1), ret(1)})), 4711U);
}

TEST_F(DifRun, KeepsObjectsByValue) {
  // REQ: DTYPES-19
  ValueDesc object;
  object.size = 12;
  object.by_ref = true;
  const std::uint32_t id = kVarUser + 2;
  space_.variables.push_back({"b", Scope::global, id, object});
  space_.variables.push_back({"b", Scope::local, id, object});
  space_.globals = space_.locals = 3;
  machine_.reserve(space_);
  const std::uint64_t global = kVariableBase + 256;
  // Their address, always; zero at first.
  EXPECT_EQ(result(object_of({dif_index(DifOp::ldgs, id, 1), ret(1)})), global);
  EXPECT_EQ(result(object_of(
                {dif_index(DifOp::ldls, id, 1), dif_registers(DifOp::ldx, 1, 0, 1), ret(1)})),
            0U);
  // A store copies the bytes at the register's value.
  result(object_of({setx(0, 1), dif_index(DifOp::ldgs, id, 2), dif_registers(DifOp::stw, 1, 0, 2),
                    dif_index(DifOp::stls, id, 2), ret(0)},
                   {0x01020304}));
  EXPECT_EQ(result(object_of(
                {dif_index(DifOp::ldls, id, 1), dif_registers(DifOp::lduw, 1, 0, 1), ret(1)})),
            0x01020304U);
  result(object_of({setx(0, 1), dif_index(DifOp::stgs, id, 1), ret(0)}, {16}));
  EXPECT_EQ(machine_.state.fault, Fault::badaddr);
  EXPECT_EQ(machine_.state.fault_address, 16U);
  // The last byte is the last: the bytes behind belong to nobody.
  result(object_of({setx(0, 1), dif_registers(DifOp::stx, 1, 0, 1), ret(0)}, {global + 16}));
  EXPECT_EQ(machine_.state.fault, Fault::badaddr);
  // Text ends at its NUL.
  const std::string strings = std::string("\0text\0", 6);
  result(object_of({dif_index(DifOp::sets, 1, 1), setx(0, 2), dif_index(DifOp::ldgs, id, 3),
                    dif_registers(DifOp::copys, 1, 2 | kCopyText, 3), ret(0)},
                   {12}, strings));
  EXPECT_EQ(machine_.state.fault, Fault::none);
  EXPECT_STREQ(reinterpret_cast<const char*>(machine_.state.global_bytes + 256), "text");
  EXPECT_NE(refusal(object_of({dif_registers(DifOp::copys, 1, 9 | kCopyText, 3), ret(0)}))
                .find("register"),
            std::string::npos);
}

TEST_F(DifRun, LimitsTheArgumentsOfASubroutine) {
  std::vector<std::uint32_t> text(9, dif_registers(DifOp::pushtr, 0, 0, 0));
  text.push_back(ret(0));
  result(object_of(text));
  EXPECT_EQ(machine_.state.fault, Fault::tupoflow);
  EXPECT_EQ(machine_.state.fault_offset, 32);
}

TEST_F(DifRun, VerifiesBeforeRunning) {
  // REQ: DLANG-25
  const auto add = dif_registers(DifOp::add, 1, 2, 3);
  EXPECT_EQ(refusal(object_of({})), "the object is empty");
  EXPECT_NE(refusal(object_of({add})).find("the last is not ret"), std::string::npos);
  EXPECT_NE(refusal(object_of({ret(1), ret(1)})).find("ret before the end"), std::string::npos);
  EXPECT_NE(refusal(object_of({dif_registers(DifOp::add, 8, 2, 3), ret(1)})).find("register 8"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_registers(DifOp::add, 1, 2, 0), ret(1)})).find("register 0"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_label(DifOp::ba, 0), ret(1)})).find("backward"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({add, dif_label(DifOp::ba, 1), ret(1)})).find("backward"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_label(DifOp::ba, 2), ret(1)})).find("leaves"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({setx(0, 1), ret(1)})).find("table index"), std::string::npos);
  EXPECT_NE(refusal(object_of({dif_index(DifOp::sets, 1, 1), ret(1)})).find("table index"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_index(DifOp::ldgs, kVarUser + 9, 1), ret(1)})).find("variable"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_index(DifOp::stgs, kVarPid, 1), ret(1)})).find("read-only"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_index(DifOp::ldls, kVarPid, 1), ret(1)})).find("variable"),
            std::string::npos);
  EXPECT_NE(refusal(object_of({dif_index(DifOp::ldgs, 0x17f, 1), ret(1)})).find("variable"),
            std::string::npos);
  EXPECT_NE(
      refusal(object_of({dif_index(DifOp::call, kSubrMsgsize, 1), ret(1)})).find("subroutine"),
      std::string::npos);
  EXPECT_NE(
      refusal(object_of({dif_index(DifOp::ldts, kVarUser, 1), ret(1)})).find("does not exist"),
      std::string::npos);
  for (const unsigned op : {0U, 71U, kOpLoadBuiltin, kOpStoreLocalString, 255U}) {
    EXPECT_NE(refusal(object_of({op << 24, ret(1)})).find("does not exist"), std::string::npos);
  }
  for (const DifOp op : {DifOp::ldub, DifOp::uldub}) {
    EXPECT_NE(refusal(object_of({dif_registers(op, 1, 1, 1), ret(1)})).find("reserved"),
              std::string::npos);
  }
  EXPECT_NE(refusal(object_of({ret(0)}, {}, "x")).find("string table"), std::string::npos);
  DifObject odd = object_of({ret(0)});
  odd.result.size = 3;
  EXPECT_NE(refusal(odd).find("size 3"), std::string::npos);
}

TEST_F(DifRun, Disassembles) {
  const DifObject object =
      object_of({setx(0, 1), dif_registers(DifOp::add, 1, 1, 2), dif_index(DifOp::ldgs, kVarPid, 3),
                 dif_label(DifOp::ba, 4), ret(2)},
                {0x10});
  EXPECT_EQ(disassemble(object),
            "OFF OPCODE      INSTRUCTION\n"
            "00: 25000001    setx DT_INTEGER[0], %r1\t\t! 0x10\n"
            "01: 07010102    add  %r1, %r1, %r2\n"
            "02: 29011603    ldgs DT_VAR(278), %r3\t\t! DT_VAR(278) = \"pid\"\n"
            "03: 11000004    ba   4\n"
            "04: 23000002    ret  %r2\n");
}

TEST(DifNames, FaultsHaveTheirTexts) {
  EXPECT_EQ(fault_text(Fault::badaddr), "invalid address");
  EXPECT_EQ(fault_text(Fault::noscratch), "out of scratch space");
  EXPECT_EQ(fault_text(Fault::library), "library-level fault");
  EXPECT_EQ(to_string(AggFunction::llquantize), "llquantize");
}

// REQ: DLANG-37
TEST_F(DifRun, GlobalsOfTwoCpusAreOneCopy) {
  testing::FakeState other(kernel_);
  other.reserve(space_);
  std::vector<std::byte> shared(2 * 256);
  machine_.state.shared_bytes = other.state.shared_bytes = shared.data();
  other.state.globals = machine_.state.globals;
  const auto stores = [&](const char* text) {
    auto object = object_of(
        {dif_index(DifOp::sets, 1, 1), dif_index(DifOp::stgs, kVarUser + 1, 1),
         dif_index(DifOp::ldgs, kVarUser, 1), dif_index(DifOp::stgs, kVarUser, 1), ret(1)},
        {}, std::string("\0", 1) + text + '\0');
    return *verify(std::move(object), space_.variables);
  };
  const auto load =
      *verify(object_of({dif_index(DifOp::ldgs, kVarUser + 1, 1), ret(1)}), space_.variables);
  const auto seen = [&](DifState& state) {
    std::string_view text;
    EXPECT_TRUE(string_at(state, run(load, state), &text));
    return std::string(text);
  };
  run(stores("first"), machine_.state);
  EXPECT_EQ(seen(other.state), "first");
  run(stores("longer text"), other.state);
  EXPECT_EQ(seen(machine_.state), "longer text");
  // Both at once: a mixture, never more than either. For ThreadSanitizer, too.
  const auto work = [&](DifState& state, const char* text) {
    const VerifiedDif store = stores(text);
    for (int i = 0; i < 500; ++i) {
      run(store, state);
      EXPECT_EQ(seen(state).size(), 4U);
    }
  };
  run(stores("aaaa"), machine_.state);
  std::thread thread([&] { work(other.state, "bbbb"); });
  work(machine_.state, "cccc");
  thread.join();
}

}  // namespace
}  // namespace dtmalloc::dtrace
