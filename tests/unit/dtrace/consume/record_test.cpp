// SPDX-License-Identifier: BSD-2-Clause
// flowindent on probes that enter and return.
#include <gtest/gtest.h>

#include <cstdio>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/sys/address_map.hpp>
#include <string>

#include "../core/fake_provider.hpp"

namespace dtmalloc::dtrace {
namespace {

class FlowTest : public ::testing::Test {
 protected:
  FlowTest() {
    cpus.bind(0);
    framework.load_standard_providers();
    add("app", {"f:entry", "f:return", "g:op-entry", "g:op-return", "g:step"});
    add("syscall", {"read:entry", "read:return"});
  }
  ~FlowTest() override { cpus.unbind(); }
  void add(const char* name, const std::vector<std::string>& probes) {
    ProviderId id = 0;
    ASSERT_EQ(framework.register_provider(name, kFakeAttributes, 0, &provider, &id), 0);
    for (const std::string& probe : probes) {
      const std::size_t colon = probe.find(':');
      ids[name + (":" + probe)] = framework.probe_create(id, "", probe.substr(0, colon),
                                                         probe.substr(colon + 1), 0, nullptr);
    }
  }
  void fire(const std::string& probe) {
    const CriticalSection section;
    Framework::probe_fire(ids.at(probe), 0, 0, 0, 0, 0);
  }
  // The records of `program` over what `work` fires, without heading and final newline.
  std::string flow(const std::string& program, const std::vector<std::string>& fired) {
    std::string out;
    Session session(framework, {[&](std::string_view text) { out += text; }, {}});
    EXPECT_TRUE(session.set_option("flowindent"));
    ProgramSource source;
    source.text = program;
    const auto compiled = session.compile(source);
    EXPECT_TRUE(compiled) << program;
    EXPECT_TRUE(session.enable(*compiled));
    EXPECT_TRUE(session.go());
    for (const std::string& probe : fired) fire(probe);
    session.stop();
    const std::string heading = line("CPU", "FUNCTION").substr(0, 45) + "\n";
    EXPECT_EQ(out.substr(0, heading.size()), heading);
    return out.substr(heading.size(), out.size() - heading.size() - 1);
  }
  static std::string line(const char* cpu, const char* text) {
    char result[64];
    std::snprintf(result, sizeof(result), "%3s %-41s ", cpu, text);
    return result;
  }
  static std::string lines(const std::vector<const char*>& texts) {
    std::string result;
    for (const char* text : texts) result += line("0", text) + "\n";
    return result;
  }

  FakeProvider provider;
  CpuSet cpus{SmpConfig{.count = 1}};
  AddressMap addresses;
  Framework framework{cpus, addresses};
  std::map<std::string, ProbeId> ids;
};

// REQ: DTRACE-81
TEST_F(FlowTest, IndentsBetweenEntryAndReturn) {
  EXPECT_EQ(flow("app::: {}", {"app:f:entry", "app:g:op-entry", "app:g:step", "app:g:op-return",
                               "app:f:return", "app:g:step"}),
            lines({" -> f", "   -> g", "    | g:step", "   <- g", " <- f", "| g:step"}));
}

// REQ: DTRACE-81
TEST_F(FlowTest, SystemCallsHaveDoubleArrows) {
  EXPECT_EQ(flow("syscall::: {}", {"syscall:read:entry", "syscall:read:return"}),
            lines({" => read", " <= read"}));
}

// REQ: DTRACE-81
TEST_F(FlowTest, SeveralClausesOfAnEntryIndentOnce) {
  EXPECT_EQ(flow("app::f: {} app::f:entry {}", {"app:f:entry", "app:f:return"}),
            lines({" -> f", "  | f:entry", " <- f"}));
}

}  // namespace
}  // namespace dtmalloc::dtrace
