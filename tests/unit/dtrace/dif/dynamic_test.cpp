// SPDX-License-Identifier: BSD-2-Clause
// Objects written by hand that use thread variables and arrays: what verify() refuses, what a tuple
// names.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "dtrace/dif/dif_int.hpp"
#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr std::uint32_t ret(unsigned reg) { return dif_registers(DifOp::ret, 0, 0, reg); }
constexpr std::uint32_t setx(unsigned index, unsigned reg) {
  return dif_index(DifOp::setx, index, reg);
}
constexpr std::uint32_t sets(unsigned index, unsigned reg) {
  return dif_index(DifOp::sets, index, reg);
}
constexpr std::uint32_t push(unsigned reg) { return dif_registers(DifOp::pushtv, 0, 0, reg); }
constexpr std::uint32_t kFlush = dif_registers(DifOp::flushts, 0, 0, 0);

// Variables 0x500: a word, 0x501: an array of words, 0x502: an array of texts; of both scopes.
class DifDynamic : public ::testing::Test {
 protected:
  DifDynamic() : machine_(kernel_) {
    ValueDesc text;
    text.size = 256;
    text.by_ref = text.is_string = true;
    for (const Scope scope : {Scope::global, Scope::thread}) {
      variables_.push_back({"x", scope, kVarUser, {}});
      variables_.push_back({"a", scope, kVarUser + 1, {}, true, {{}}});
      variables_.push_back({"t", scope, kVarUser + 2, text, true, {{}}});
    }
    ProgramSpace space;
    space.globals = 3;
    machine_.reserve(space);
  }
  static DifObject object(std::vector<std::uint32_t> text, std::vector<std::uint64_t> ints,
                          const std::string& strings) {
    DifObject object;
    object.text = std::move(text);
    object.ints = std::move(ints);
    object.strings = std::string(1, '\0') + strings + '\0';
    return object;
  }
  std::uint64_t result(std::vector<std::uint32_t> text, std::vector<std::uint64_t> ints = {},
                       const std::string& strings = {}) {
    auto verified = verify(object(std::move(text), std::move(ints), strings), variables_);
    EXPECT_TRUE(verified) << verified.error();
    if (!verified) return 0;
    chunk_ = verified->chunk_size();
    program_.emplace(std::move(*verified));
    return run(*program_, machine_.state);
  }
  std::string refusal(std::vector<std::uint32_t> text) {
    auto verified = verify(object(std::move(text), {1}, "abc"), variables_);
    return verified ? "" : verified.error();
  }
  testing::FakeKernel kernel_;
  testing::FakeState machine_;
  VariableList variables_;
  std::size_t chunk_ = 0;
  std::optional<VerifiedDif> program_;  // the one that ran last: its strings can still be read
};

// REQ: DVARS-23
TEST_F(DifDynamic, VerifiesIdsScopesAndKinds) {
  const auto load = [&](DifOp op, unsigned id) { return refusal({dif_index(op, id, 1), ret(1)}); };
  for (const DifOp op : {DifOp::ldts, DifOp::ldgaa, DifOp::ldtaa}) {
    EXPECT_EQ(load(op, kVarUser + 3), "instruction 0: variable 0x503 does not exist");
    EXPECT_EQ(load(op, kVarTimestamp), "instruction 0: variable 0x101 does not exist");
    EXPECT_EQ(refusal({dif_index(op, kVarUser, 0), ret(1)}),
              "instruction 0: register 0 is written");
    EXPECT_EQ(refusal({dif_index(op, kVarUser, 9), ret(1)}),
              "instruction 0: register 9 does not exist");
  }
  EXPECT_EQ(load(DifOp::ldts, kVarUser), "");
  EXPECT_EQ(load(DifOp::ldgaa, kVarUser + 1), "");
  EXPECT_EQ(load(DifOp::ldts, kVarUser + 1), "instruction 0: variable 0x501 is an array");
  EXPECT_EQ(load(DifOp::ldgs, kVarUser + 1), "instruction 0: variable 0x501 is an array");
  EXPECT_EQ(load(DifOp::ldgaa, kVarUser), "instruction 0: variable 0x500 is no array");
  EXPECT_EQ(load(DifOp::ldtaa, kVarUser), "instruction 0: variable 0x500 is no array");
  EXPECT_EQ(refusal({dif_index(DifOp::stgaa, kVarUser, 1), ret(0)}),
            "instruction 0: variable 0x500 is no array");
  EXPECT_EQ(refusal({dif_index(DifOp::stts, kVarUser, 0), ret(0)}), "") << "0 is stored";
  EXPECT_EQ(refusal({dif_registers(DifOp::pushtr, 2, 0, 1), ret(0)}),
            "instruction 0: a kind of key that does not exist");
  EXPECT_EQ(refusal({dif_registers(DifOp::pushtr, 1, 8, 1), ret(0)}),
            "instruction 0: register 8 does not exist");
  EXPECT_EQ(refusal({dif_registers(DifOp::ldta, 0, 0, 1), ret(0)}),
            "instruction 0: this array is not modelled");
}

// REQ: DVARS-23
TEST_F(DifDynamic, ANinthKeyIsAFault) {
  std::vector<std::uint32_t> text = {kFlush};
  for (int i = 0; i < 8; ++i) text.push_back(push(0));
  std::vector<std::uint32_t> fits = text;
  fits.insert(fits.end(), {setx(0, 1), dif_index(DifOp::stgaa, kVarUser + 1, 1),
                           dif_index(DifOp::ldgaa, kVarUser + 1, 2), ret(2)});
  EXPECT_EQ(result(fits, {7}), 7u);
  EXPECT_EQ(machine_.state.fault, Fault::none);
  text.insert(text.end(), {push(0), ret(0)});
  result(text);
  EXPECT_EQ(machine_.state.fault, Fault::tupoflow);
  EXPECT_EQ(machine_.state.fault_offset, 36);
}

// REQ: DVARS-06
TEST_F(DifDynamic, ATupleIsItsKinds_ItsSizesAndItsBytes) {
  const auto store = [&](std::vector<std::uint32_t> keys, std::uint64_t value) {
    keys.insert(keys.begin(), kFlush);
    keys.insert(keys.end(), {setx(0, 1), dif_index(DifOp::stgaa, kVarUser + 1, 1), ret(0)});
    result(keys, {value, 4, 64}, "abc");
  };
  const auto load = [&](std::vector<std::uint32_t> keys) {
    keys.insert(keys.begin(), kFlush);
    keys.insert(keys.end(), {dif_index(DifOp::ldgaa, kVarUser + 1, 1), ret(1)});
    return result(keys, {0, 4, 64}, "abc");
  };
  const auto text_key = [](unsigned at, unsigned most) {
    return std::vector<std::uint32_t>{sets(at, 2), setx(most, 3),
                                      dif_registers(DifOp::pushtr, 1, 3, 2)};
  };
  store(text_key(1, 2), 11);
  EXPECT_EQ(load(text_key(1, 2)), 11u);
  EXPECT_EQ(load(text_key(2, 2)), 0u);
  EXPECT_EQ(load({sets(1, 2), push(2)}), 0u) << "its address is another key";
  EXPECT_EQ(load({sets(1, 2), setx(1, 3), dif_registers(DifOp::pushtr, 0, 3, 2)}), 11u)
      << "the same four bytes";
  EXPECT_EQ(load({push(0)}), 0u);
  store({push(0)}, 12);
  store({push(0), push(0)}, 13);
  EXPECT_EQ(load({push(0)}), 12u);
  EXPECT_EQ(load({push(0), push(0), dif_registers(DifOp::popts, 0, 0, 0)}), 12u);
  EXPECT_EQ(load({}), 0u) << "no key at all";
}

// REQ: DVARS-18, DVARS-06
TEST_F(DifDynamic, KeysThatCannotBeReadFault_ThoseThatDoNotFitAreDropped) {
  const auto bytes = [&](std::uint64_t address, std::uint64_t size, DifKeyKind kind) {
    return result({kFlush, setx(0, 1), setx(1, 2), dif_registers(DifOp::pushtr, kind, 2, 1),
                   dif_index(DifOp::stgaa, kVarUser + 1, 2), ret(0)},
                  {address, size});
  };
  bytes(0x10, 8, kKeyBytes);
  EXPECT_EQ(machine_.state.fault, Fault::badaddr);
  EXPECT_EQ(machine_.state.fault_address, 0x10u);
  EXPECT_EQ(machine_.state.fault_offset, 16) << "where the variable is looked for";
  bytes(0x10, 8, kKeyString);
  EXPECT_EQ(machine_.state.fault_offset, 12) << "where a text is measured";
  bytes(0, 8, kKeyString);
  EXPECT_EQ(machine_.state.fault, Fault::badaddr);
  bytes(kernel_.type_address, ~std::uint64_t{0}, kKeyBytes);
  EXPECT_EQ(machine_.state.fault, Fault::badaddr);
  bytes(kernel_.type_address, 64, kKeyBytes);
  EXPECT_EQ(machine_.state.fault, Fault::none);
  EXPECT_EQ(chunk_, 48u + 16 + 64 + 8);
  // 3 KB of scratch: readable, but no chunk of this space has room for it.
  result({setx(0, 1), dif_registers(DifOp::allocs, 1, 0, 2), kFlush,
          dif_registers(DifOp::pushtr, 0, 1, 2), dif_index(DifOp::stgaa, kVarUser + 1, 1),
          dif_index(DifOp::ldgaa, kVarUser + 1, 3), ret(3)},
         {3000});
  EXPECT_EQ(machine_.state.fault, Fault::none);
}

// REQ: DVARS-11
TEST_F(DifDynamic, ValuesByReferenceHaveAddressesOfTheirOwn) {
  const std::uint64_t address =
      result({sets(1, 1), kFlush, push(0), dif_index(DifOp::sttaa, kVarUser + 2, 1),
              dif_index(DifOp::ldtaa, kVarUser + 2, 2), ret(2)},
             {}, "abc");
  EXPECT_GE(address, kDynamicBase);
  std::string_view text;
  ASSERT_TRUE(string_at(machine_.state, address, &text));
  EXPECT_EQ(text, "abc");
  // A byte is stored through it, and none before or behind it.
  const auto poke = [&](std::uint64_t at) {
    result({setx(0, 1), setx(1, 2), dif_registers(DifOp::stb, 2, 0, 1), ret(0)}, {at, 'X'});
    return machine_.state.fault;
  };
  EXPECT_EQ(poke(address + 1), Fault::none);
  EXPECT_EQ(poke(address - 1), Fault::badaddr);
  EXPECT_EQ(poke(address + 256), Fault::badaddr);
  ASSERT_TRUE(string_at(machine_.state, address, &text));
  EXPECT_EQ(text, "aXc");
  // Of a thread: another thread has none.
  machine_.builtins[kVarThread] = 5;
  EXPECT_EQ(result({kFlush, push(0), dif_index(DifOp::ldtaa, kVarUser + 2, 2), ret(2)}), 0u);
}

TEST_F(DifDynamic, ShowsAsTheKernelsToolDoes) {
  const std::string shown = disassemble(object(
      {sets(1, 1), setx(0, 2), kFlush, dif_registers(DifOp::pushtr, 1, 2, 1), push(1),
       dif_index(DifOp::ldgaa, kVarUser + 1, 3), dif_index(DifOp::stts, kVarUser, 3), ret(3)},
      {256}, "abc"));
  EXPECT_NE(shown.find("flushts\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("pushtr DT_TYPE(1), %r2, %r1\t! DT_TYPE(1) = string\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("pushtv DT_TYPE(0), %r1\t\t! DT_TYPE(0) = D type\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("ldgaa DT_VAR(1281), %r3\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("stts %r3, DT_VAR(1280)\n"), std::string::npos) << shown;
}

}  // namespace
}  // namespace dtmalloc::dtrace
