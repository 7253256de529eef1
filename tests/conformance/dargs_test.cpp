// SPDX-License-Identifier: BSD-2-Clause
// args[] that a provider translates: from the type that the probe passes to the one that D programs
// see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/traced_machine.hpp"

namespace dtmalloc::dtrace {
namespace {

using ::testing::HasSubstr;

struct Item {
  std::uint32_t price;
  const char* name;
};

// shop:::sell(struct item *, int, int, struct item *, unsigned long, int, struct nobody *)
class Shop : public Provider {
 public:
  void provide(const ProbeDescription*) override {}
  void enable(ProbeId, void*) override {}
  void disable(ProbeId, void*) override {}
  void getargdesc(ProbeId, void*, ArgDescription& description) override {
    static const ArgDescription kArguments[] = {
        {0, "struct item *", "struct view *"}, {0, "int", "struct code"}, {0, "int", "short"},
        {0, "struct item *", "void *"},        {0, "unsigned long", ""},  {0, "int", "char *"},
        {0, "struct nobody *", "short"},       {0, "int", "int"},
    };
    const auto index = static_cast<std::size_t>(description.index);
    if (index >= std::size(kArguments)) return;
    description.native = kArguments[index].native;
    description.translated = kArguments[index].translated;
  }
};

constexpr const char* kTypes =
    "struct view {int doubled; string title; int other;}; struct code {int low; int high;}; ";
constexpr const char* kTranslators =
    "translator struct view < struct item *from > {doubled = from->price * 2; title = stringof "
    "from->name;}; translator struct code < int number > {low = number & 0xff; high = number >> "
    "8;}; ";

class TranslatedArguments : public ::testing::Test {
 protected:
  TranslatedArguments() {
    machine.session = nullptr;
    Framework& framework = *machine.framework;
    framework.add_type({"item", sizeof(Item), {{"price", "uint32_t", 0}, {"name", "char *", 8}}});
    const ProviderAttributes attributes{kStable, kStable, kStable, kStable, kStable};
    EXPECT_EQ(framework.register_provider("shop", attributes, DTRACE_PRIV_USER, &shop, &provider),
              0);
    sell = framework.probe_create(provider, "", "", "sell", 0, nullptr);
    machine.session = machine.open(machine.out, machine.err);
    EXPECT_TRUE(machine.session->set_option("quiet"));
    auto* name = static_cast<char*>(machine.malloc());
    std::string("pear").copy(name, 5);
    name[4] = '\0';
    item = static_cast<Item*>(machine.malloc());
    *item = {13, name};
  }
  ~TranslatedArguments() override {
    machine.session = nullptr;
    machine.framework->unregister_provider(provider);
  }
  void fire(std::uintptr_t code) {
    const auto address = reinterpret_cast<std::uintptr_t>(item);
    Framework::probe_fire(sell, address, code, 70000, address, 9);
  }
  std::string refusal(const std::string& program) {
    return testing::TracedMachine::enable(*machine.session, program);
  }

  testing::TracedMachine machine;
  Shop shop;
  ProviderId provider = 0;
  ProbeId sell = kNoProbe;
  Item* item = nullptr;
};

TEST_F(TranslatedArguments, AreReadThroughTheTranslator) {
  // REQ: DSTRUCT-28
  ASSERT_EQ(machine.start(std::string(kTypes) + kTranslators +
                          "shop:::sell /args[0]->doubled == 26 && args[1].low == 0x34/ "
                          "{printf(\"%d %s %d %d %d %d %d %d %d;\", args[0]->doubled, "
                          "args[0]->title, args[1].low, args[1].high, args[2], sizeof (args[2]), "
                          "args[3] == (void *)arg0, args[4], arg1); "
                          "@[args[0]->title] = sum(args[1].high);}"),
            "");
  fire(0x1234);
  fire(0x1235);
  fire(0x2234);
  machine.session->stop();
  EXPECT_EQ(machine.err, "");
  EXPECT_EQ(machine.out,
            "26 pear 52 18 4464 2 1 9 4660;26 pear 52 34 4464 2 1 9 8756;\n"
            "  pear                                                             52\n");
}

TEST_F(TranslatedArguments, WithoutATranslator) {
  // REQ: DSTRUCT-28
  EXPECT_THAT(refusal("shop:::sell {trace(args[0]->doubled);}"),
              HasSubstr("failed to resolve translated type for args[0]"));
  EXPECT_THAT(
      refusal(std::string(kTypes) + "shop:::sell {trace(args[0]->doubled);}"),
      HasSubstr("translator for args[0] from struct item * to struct view * is not defined"));
  EXPECT_THAT(refusal(std::string(kTypes) + "shop:::sell {trace(args[1].low);}"),
              HasSubstr("translator for args[1] from int to struct code is not defined"));
  EXPECT_THAT(refusal("shop:::sell {trace(args[5]);}"),
              HasSubstr("translator for args[5] from int to char * is not defined"));
  EXPECT_THAT(refusal("shop:::sell {trace(args[6]);}"),
              HasSubstr("failed to resolve native type for args[6]"));
  EXPECT_EQ(
      refusal("shop:::sell {trace(args[2]); trace(args[3]); trace(args[4]); trace(args[7]);}"), "");
}

TEST_F(TranslatedArguments, HaveMembersAndNoValue) {
  // REQ: DSTRUCT-28
  const struct {
    const char* actions;
    const char* text;
  } kRows[] = {
      {"trace(args[0]->nothing);", "nothing is not a member of struct view"},
      {"trace(args[0]->other);", "translator does not define conversion for member: other"},
      {"trace(args[0]);", "trace( ) may not be applied to a translated pointer"},
      {"trace(args[1]);", "trace( ) may not be applied to a translated pointer"},
      {"x = args[0];", "operator = operands cannot be of dynamic type"},
      {"x = args[1];", "operator = operands cannot be of dynamic type"},
      {"x = *args[0];", "operator * operands cannot be of dynamic type"},
      {"x = args[0].doubled;", "operator . operands cannot be of dynamic type"},
      {"x = args[1]->low;", "operator -> operands cannot be of dynamic type"},
      {"x = (long)args[0];", "invalid cast expression: \"translated pointer\" to \"long\""},
      {"printf(\"%d\", args[0]);", "\n\t  argument: translated pointer"},
      {"x[args[1]] = 1;", "translated data expression may not be used as array index: key #1"},
      {"args[0]->doubled = 1;", "operator = "},
  };
  for (const auto& row : kRows) {
    EXPECT_THAT(refusal(std::string(kTypes) + kTranslators + "shop:::sell {" + row.actions + "}"),
                HasSubstr(row.text))
        << row.actions;
  }
}

TEST_F(TranslatedArguments, AreListedAsTheyAreSeen) {
  // REQ: DSTRUCT-28
  ASSERT_EQ(refusal("shop:::sell {}"), "");
  machine.out.clear();
  machine.session->list({0}, true);
  EXPECT_THAT(machine.out,
              HasSubstr("\n\tArgument Types\n\t\targs[0]: struct view *\n\t\targs[1]: struct code\n"
                        "\t\targs[2]: short\n\t\targs[3]: void *\n\t\targs[4]: unsigned long\n"));
}

}  // namespace
}  // namespace dtmalloc::dtrace
