// SPDX-License-Identifier: BSD-2-Clause
// What D sees of the simulated kernel beside dtmalloc's arguments: function boundaries, symbols,
// stacks, built-in variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <dtmalloc/dtrace/session.hpp>
#include <dtmalloc/kernel.hpp>
#include <dtmalloc/vm/uma.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtmalloc::dtrace {
namespace {

class DsymTest : public ::testing::Test {
 protected:
  explicit DsymTest(int release = 16) {
    KernelConfig config;
    config.release = release;
    config.cpus = 2;
    config.fixed_cpus = true;
    config.mem = 1ull << 30;
    kernel = std::make_unique<Kernel>(config);
    kernel->cpus().bind(0);
    type = &kernel->define_type("M_FOO", "foo bar");
    framework = std::make_unique<Framework>(kernel->cpus(), kernel->addresses());
    framework->load_standard_providers();
    load_fbt(*framework, *kernel);
    load_dtmalloc(*framework, *kernel);
  }
  ~DsymTest() override {
    session = nullptr;
    framework = nullptr;
    kernel->cpus().unbind();
  }
  void open() {
    out.clear();
    err.clear();
    session = nullptr;
    session = std::make_unique<Session>(
        *framework, SessionSinks{[this](std::string_view text) { out += text; },
                                 [this](std::string_view text) { err += text; }});
  }
  // What refuses the program, or an empty string.
  std::string start(const std::string& program) {
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    if (!compiled) return message_of(source, compiled.error());
    auto enabled = session->enable(*compiled);
    if (!enabled) return enabled.error().message;
    auto started = session->go();
    return started ? "" : started.error().message;
  }
  // The output of a quiet program around what `work` does, without the newline at its end.
  std::string run(
      const std::string& program, const std::function<void()>& work = [] {}) {
    open();
    EXPECT_TRUE(session->set_option("quiet"));
    EXPECT_EQ(start(program), "");
    work();
    session->stop();
    return out.ends_with("\n") ? out.substr(0, out.size() - 1) : out;
  }
  // Tag and text of the compile's error.
  std::string refusal(const std::string& program) {
    open();
    ProgramSource source;
    source.text = program;
    auto compiled = session->compile(source);
    return compiled ? "" : compiled.error().tag + " " + compiled.error().message;
  }
  SimThread& thread() { return kernel->cpus().current_thread(); }
  void pair(std::size_t size) { kernel->free(kernel->malloc(size, type, M_WAITOK), type); }

  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Framework> framework;
  std::unique_ptr<Session> session;
  malloc_type* type = nullptr;
  std::string out, err, wanted;
};

// REQ: DSYM-01
TEST_F(DsymTest, ArgumentsOfMalloc) {
  EXPECT_EQ(run("fbt:kernel:malloc:entry {printf(\"%d %s %d \", args[0], "
                "stringof(args[1]->ks_shortdesc), args[2]);}"
                "fbt:kernel:malloc:return {printf(\"%d %d\", args[0] == arg0, args[1] != NULL);}",
                [this] { pair(100); }),
            "100 foo bar 2 1 1");
  EXPECT_EQ(run("fbt::free:entry {printf(\"%d %s \", args[0] == NULL, stringof "
                "args[1]->ks_shortdesc);}"
                "fbt::free:return {printf(\"%x\", arg0);}",
                [this] { kernel->free(nullptr, type); }),
            "1 foo bar 13f");
  EXPECT_NE(refusal("fbt::malloc:entry {trace(args[3]);}")
                .find("D_ARGS_IDX in action list: index 3 is out of range"),
            std::string::npos);
  EXPECT_NE(refusal("fbt::malloc_domain:entry {}").find("D_PDESC_ZERO"), std::string::npos);
  // The value that malloc returns is the address that dtmalloc's user sees.
  EXPECT_EQ(run("fbt::malloc:return {this->p = arg1; printf(\"%p\", args[1]);}",
                [this] {
                  void* p = kernel->malloc(100, type, M_WAITOK);
                  char text[32];
                  std::snprintf(text, sizeof text, "%lx",
                                static_cast<unsigned long>(kernel->addresses().to_simulated(p)));
                  wanted = text;
                  kernel->free(p, type);
                }),
            wanted);
}

// REQ: DSYM-02, DSYM-03
TEST_F(DsymTest, OrderOfTheKernel) {
  const std::string program =
      "fbt:::entry {printf(\"(%s \", probefunc);} fbt:::return {printf(\"%s) \", probefunc);}"
      "dtmalloc::foo_bar: {printf(\"%s \", probename);}";
  pair(16);  // the CPU has buckets
  pair(128);
  pair(2000);
  EXPECT_EQ(run(program, [this] { pair(10); }),
            "(malloc (uma_zalloc_arg uma_zalloc_arg) malloc malloc) "
            "(free (uma_zfree_arg uma_zfree_arg) free free) ");
  void* p = nullptr;
  EXPECT_EQ(run(program,
                [&] {
                  p = kernel->malloc(10, type, M_WAITOK);
                  p = kernel->realloc(p, 2000, type, M_WAITOK);
                }),
            "(malloc (uma_zalloc_arg uma_zalloc_arg) malloc malloc) "
            "(realloc (malloc (uma_zalloc_arg uma_zalloc_arg) malloc malloc) "
            "(free (uma_zfree_arg uma_zfree_arg) free free) realloc) ");
  EXPECT_EQ(run(program,
                [&] {
                  kernel->free(p, type);
                  p = kernel->malloc(100000, type, M_WAITOK);
                  kernel->free(p, type);
                }),
            "(free (uma_zfree_arg uma_zfree_arg) free free) "
            "(malloc (malloc_large (kmem_malloc_domainset kmem_malloc_domainset) malloc "
            "malloc_large) malloc) (free (kmem_free kmem_free) free free) ");
  EXPECT_EQ(run(program,
                [&] {
                  p = kernel->contigmalloc(5000, type, M_WAITOK);
                  kernel->contigfree(p, 5000, type);
                }),
            "(contigmalloc (kmem_alloc_contig (kmem_alloc_contig_domainset "
            "kmem_alloc_contig_domainset) kmem_alloc_contig) malloc contigmalloc) "
            "(contigfree (free (kmem_free kmem_free) free free) contigfree) ");
  EXPECT_EQ(run(program,
                [&] {
                  p = kernel->malloc_aligned(100, 64, type, M_WAITOK);
                  kernel->zfree(p, type);
                }),
            "(malloc_aligned (malloc_domainset_aligned (malloc_domainset (uma_zalloc_domain "
            "(uma_zalloc_arg uma_zalloc_arg) uma_zalloc_domain) malloc malloc_domainset) "
            "malloc_domainset_aligned) malloc_aligned) "
            "(zfree (uma_zfree_arg uma_zfree_arg) free zfree) ");
}

// REQ: DSYM-03
TEST_F(DsymTest, FunctionsOfUmaAndTypes) {
  EXPECT_EQ(run("fbt::uma_z*:entry,fbt::malloc_*init:entry {printf(\"%s \", probefunc);}"
                "fbt::uma_zcreate:entry {printf(\"%d %d \", args[1], (int)arg7);}"
                "fbt::uma_zone_set_max:return {printf(\"max %d \", args[1]);}",
                [this] {
                  uma_zone* zone = uma_zcreate(kernel->vm(), "z", 200, nullptr, nullptr, nullptr,
                                               nullptr, UMA_ALIGN_PTR, UMA_ZONE_NOFREE);
                  uma_zone_set_max(zone, 500);
                  uma_zdestroy(zone);
                  kernel->malloc_uninit(type);
                  kernel->malloc_init(type);
                }),
            "uma_zcreate 200 32 uma_zone_set_max uma_zone_set_maxcache max 500 uma_zdestroy "
            "malloc_uninit malloc_init ");
}

// REQ: DSYM-04
TEST_F(DsymTest, GuardStandsWhileSomethingIsEnabled) {
  const auto guarded = [this] {
    return (kernel->cpus().cpu(0).guard.load() & kGuardTwin) != 0 &&
           (kernel->cpus().cpu(1).guard.load() & kGuardTwin) != 0;
  };
  const auto clear = [this] {
    return ((kernel->cpus().cpu(0).guard.load() | kernel->cpus().cpu(1).guard.load()) &
            kGuardTwin) == 0;
  };
  open();
  EXPECT_TRUE(clear());
  ASSERT_EQ(start("fbt::malloc:entry,fbt::free:return {}"), "");
  EXPECT_TRUE(guarded());
  session->stop();
  session = nullptr;
  EXPECT_TRUE(clear());
  // A consumer of dtmalloc alone leaves it so.
  open();
  ASSERT_EQ(start("dtmalloc::: {}"), "");
  EXPECT_TRUE(clear());
}

class Dsym12Test : public DsymTest {
 protected:
  Dsym12Test() : DsymTest(12) {}
};
// REQ: DSYM-05
TEST_F(Dsym12Test, FunctionsOfARelease) {
  EXPECT_EQ(refusal("fbt::malloc_domainset:entry {}"), "");
  EXPECT_NE(refusal("fbt::malloc_aligned:entry {}").find("D_PDESC_ZERO"), std::string::npos);
}

// REQ: DSYM-06, DSYM-43
TEST_F(DsymTest, LaterArguments) {
  const auto work = [this] {
    kernel->contigfree(kernel->contigmalloc(5000, type, M_WAITOK, 0x1000, 0x7fffffff, 8192, 65536),
                       5000, type);
  };
  EXPECT_EQ(run("fbt::contigmalloc:entry {printf(\"%x %x %x %x %d\", arg3, args[4], arg5, args[6], "
                "arg9);}",
                work),
            "1000 7fffffff 2000 10000 0");
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {trace(arg5); trace(arg9);}", work), "00");
}

// REQ: DSYM-07
TEST_F(DsymTest, PanicLeavesWithoutReturn) {
  open();
  ASSERT_TRUE(session->set_option("quiet"));
  ASSERT_EQ(start("fbt::mallocarray: {printf(\"%s \", probename);}"), "");
  EXPECT_THROW(kernel->mallocarray(SIZE_MAX, 2, type, M_WAITOK), KernelPanic);
  session->stop();
  EXPECT_EQ(out, "entry \n");
}

// REQ: DSYM-08
TEST_F(DsymTest, ArgsOfSeveralFunctions) {
  EXPECT_EQ(refusal("fbt:::entry {trace(args[0]);}").substr(0, 12), "D_ARGS_MULTI");
  EXPECT_EQ(refusal("fbt:::entry {trace(arg0);}"), "");
}

// REQ: DSYM-10
TEST_F(DsymTest, ProviderThatIsNotThere) {
  open();
  const std::string message = start("lockstat:::adaptive-acquire {}");
  EXPECT_NE(message.find("probe description lockstat:::adaptive-acquire does not match any probes"),
            std::string::npos);
  EXPECT_NE(
      message.find("expected one of this machine's providers: dtmalloc, dtrace, fbt, profile"),
      std::string::npos);
}

// REQ: DSYM-66
TEST_F(DsymTest, NameThatIsNotThere) {
  open();
  const auto advice = [&](const std::string& program) {
    const std::string message = start(program);
    return message.substr(message.rfind("\n", message.size() - 2) + 1);
  };
  EXPECT_EQ(advice("dtmalloc::temp:alloc {}"), "    did you mean malloc?\n");
  EXPECT_EQ(advice("dtmalloc:::maloc {}"), "    did you mean malloc?\n");
  EXPECT_EQ(advice("fbt::malloc:exit_point {}"),
            "    expected a name of these probes: entry, return\n");
  EXPECT_EQ(advice("dtmalloc::tmp:maloc {}"), "    did you mean temp?\n");
  EXPECT_EQ(advice("quite-another {}").find("did you mean"), std::string::npos);
  const std::string interval = "    expected an interval of 200us or more behind ";
  EXPECT_EQ(advice("tick-10us {}").find(interval + "tick-: "), 0u);
  EXPECT_EQ(advice("profile:::profile-1parsec {}").find(interval + "profile-: "), 0u);
}

// REQ: DSYM-20
TEST_F(DsymTest, Symbols) {
  EXPECT_EQ(run("BEGIN {trace(`mp_ncpus);}"), "2");
  EXPECT_EQ(run("BEGIN {trace(kernel`mp_maxid);}"), "1");
  EXPECT_EQ(run("BEGIN {trace(stringof(`M_FOO[0].ks_shortdesc));}"), "foo bar");
  EXPECT_EQ(run("BEGIN {trace(stringof(kernel`M_TEMP->ks_shortdesc));}"), "temp");
  EXPECT_EQ(run("BEGIN {trace(stringof(`kmemstatistics->ks_shortdesc));}"), "foo bar");
  EXPECT_EQ(
      run("BEGIN {printf(\"%d %s\", `kmemzones[2].kz_size, stringof `kmemzones[2].kz_name);}"),
      "64 malloc-64");
  EXPECT_EQ(run("BEGIN {trace(`kmemcount);}"), "6");
  EXPECT_EQ(run("BEGIN {trace(`kmemsize[7]);}"), "3");
  EXPECT_EQ(run("BEGIN {trace(sizeof (`M_FOO));}"), "112");
  EXPECT_EQ(refusal("BEGIN {trace(`nothing_here);}"),
            "D_IDENT_UNDEF in action list: failed to resolve `nothing_here: Unknown symbol name");
  EXPECT_EQ(refusal("BEGIN {trace(foo`M_TEMP);}"),
            "D_IDENT_UNDEF in action list: failed to resolve foo`M_TEMP: Unknown module name");
  open();
  EXPECT_NE(start("BEGIN {trace(`M_TEMQ);}").find("did you mean `M_TEMP?"), std::string::npos);
}

// REQ: DSYM-21, DSYM-22
TEST_F(DsymTest, AddressesOfSymbols) {
  EXPECT_EQ(run("fbt::malloc:entry /arg1 == (uint64_t)&`M_FOO/ {printf(\"%d\", args[1] == "
                "&`M_FOO[0]);}"
                "dtmalloc:::malloc /args[0] == `M_FOO/ {printf(\" %a\", arg0);}",
                [this] {
                  pair(1);
                  kernel->free(kernel->malloc(1, kernel->type("temp"), M_WAITOK),
                               kernel->type("temp"));
                }),
            "1 kernel`M_FOO");
  EXPECT_EQ(refusal("BEGIN {`mp_ncpus = 3;}").substr(0, 10), "D_OP_WRITE");
  EXPECT_EQ(refusal("BEGIN {`mp_ncpus++;}").substr(0, 10), "D_OP_WRITE");
}

// REQ: DSYM-23
TEST_F(DsymTest, FunctionsAsSymbols) {
  EXPECT_EQ(run("BEGIN {printf(\"%a %d\", &`malloc, &`malloc == &kernel`malloc);}"),
            "kernel`malloc 1");
  EXPECT_EQ(run("BEGIN {func(&`uma_zalloc_arg);}").substr(2, 21), "kernel`uma_zalloc_arg");
  EXPECT_EQ(run("BEGIN {sym((uintptr_t)&`free); mod(&`free);}").substr(2, 11), "kernel`free");
  EXPECT_EQ(run("BEGIN {@[func(&`free)] = count();}").find("kernel`free"), 3u);
  EXPECT_EQ(run("fbt::uma_zalloc_arg:entry /caller - (uintptr_t)&`malloc < sizeof (`malloc)/ "
                "{printf(\"%d\", caller - (uintptr_t)&`malloc);}",
                [this] { pair(1); }),
            "104");
  EXPECT_EQ(run("BEGIN {trace(sizeof (`malloc)); trace(\" \"); trace(sizeof (&`malloc));}"),
            "416 8");
  // A call site's function is one as well.
  thread().call_sites = {"foo_attach+0x1c", "if_foo`foo_init+0x9"};
  pair(1);
  EXPECT_EQ(run("fbt::malloc:entry {stack();}", [this] { pair(1); }).empty(), false);
  thread().call_sites.clear();
  EXPECT_EQ(run("BEGIN {printf(\"%a %a\", &`foo_attach, &if_foo`foo_init);}"),
            "kernel`foo_attach if_foo`foo_init");
}

// REQ: DSYM-23. Its value is what lies there: code, of which this machine has none.
TEST_F(DsymTest, CodeOfFunctions) {
  EXPECT_EQ(run("BEGIN {trace((uint64_t)`malloc);}"), "");
  EXPECT_NE(err.find("invalid address (0xffffffff80300000)"), std::string::npos) << err;
  EXPECT_EQ(refusal("BEGIN {trace(`malloc + 1);}"),
            "D_OP_INCOMPAT in action list: operands have incompatible types: \"function pointer\" "
            "+ \"int\"");
  EXPECT_EQ(refusal("BEGIN {trace(arg0 == `malloc);}"),
            "D_OP_INCOMPAT in action list: operands have incompatible types: \"int64_t\" == "
            "\"function pointer\"");
  EXPECT_EQ(refusal("BEGIN {trace(*`malloc);}"),
            "D_DEREF_FUNC in action list: cannot dereference pointer to function");
  EXPECT_EQ(refusal("BEGIN {`malloc = 0;}").substr(0, 10), "D_OP_WRITE");
  EXPECT_EQ(refusal("BEGIN {trace(&`mallok);}"),
            "D_IDENT_UNDEF in action list: failed to resolve `mallok: Unknown symbol name");
  open();
  EXPECT_NE(start("BEGIN {trace(&`mallok);}").find("did you mean `malloc?"), std::string::npos);
}
// REQ: DSYM-05, DSYM-23
TEST_F(Dsym12Test, FunctionsAsSymbols) {
  EXPECT_EQ(refusal("BEGIN {trace(&`malloc_domainset);}"), "");
  EXPECT_EQ(refusal("BEGIN {trace(&`malloc_aligned);}").substr(0, 13), "D_IDENT_UNDEF");
}

// REQ: DSYM-30
TEST_F(DsymTest, Stack) {
  thread().call_sites = {"kthread_main", "foo_attach+0x1c", "foo_alloc"};
  EXPECT_EQ(run("fbt::malloc:entry {stack();}", [this] { pair(1); }),
            "\n              kernel`foo_alloc\n              kernel`foo_attach+0x1c\n"
            "              kernel`kthread_main\n");
  EXPECT_EQ(run("fbt::malloc:return {stack(1);}", [this] { pair(1); }),
            "\n              kernel`foo_alloc\n");
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {stack(2);}", [this] { pair(1); }),
            "\n              kernel`malloc+0x68\n              kernel`foo_alloc\n");
  EXPECT_EQ(run("dtmalloc::foo_bar:free {stack(2);}", [this] { pair(1); }),
            "\n              kernel`free+0x56\n              kernel`foo_alloc\n");
  // The cold path has the same frames.
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {stack(2);} fbt::free:entry {}", [this] { pair(1); }),
            "\n              kernel`malloc+0x68\n              kernel`foo_alloc\n");
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {stack(3);}",
                [this] { kernel->free(kernel->malloc(70000, type, M_WAITOK), type); }),
            "\n              kernel`malloc_large+0x3c\n              kernel`malloc+0x68\n"
            "              kernel`foo_alloc\n");
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {stack(3);}",
                [this] { kernel->free(kernel->mallocarray(1, 7, type, M_WAITOK), type); }),
            "\n              kernel`malloc+0x68\n              kernel`mallocarray+0x2d\n"
            "              kernel`foo_alloc\n");
  EXPECT_EQ(run("fbt::uma_zalloc_arg:entry {stack(2);}", [this] { pair(1); }),
            "\n              kernel`malloc+0x68\n              kernel`foo_alloc\n");
  EXPECT_EQ(
      run("#pragma D option stackindent=2\nfbt::malloc:entry {stack(1);}", [this] { pair(1); }),
      "\n  kernel`foo_alloc\n");
  thread().call_sites = {"if_foo`foo_init+0x9"};
  EXPECT_EQ(run("fbt::malloc:entry {stack();}", [this] { pair(1); }),
            "\n              if_foo`foo_init+0x9\n");
  thread().call_sites.clear();
}

// REQ: DSYM-30. A stack is as deep as its call sites.
TEST_F(DsymTest, DeepStacks) {
  for (int i = 0; i < 150; ++i) thread().call_sites.push_back("f" + std::to_string(i));
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n') - 1;
  };
  EXPECT_EQ(lines(run("fbt::malloc:entry {stack();}", [this] { pair(1); })), 20);
  EXPECT_EQ(lines(run("#pragma D option stackframes=100\nfbt::malloc:entry {stack();}",
                      [this] { pair(1); })),
            100);
  EXPECT_EQ(lines(run("fbt::malloc:entry {stack(1000);}", [this] { pair(1); })), 150);
  EXPECT_EQ(run("fbt::malloc:entry {trace(stackdepth);}", [this] { pair(1); }), "150");
  thread().call_sites.clear();
}

// REQ: DSYM-31, DSYM-32, DSYM-38
TEST_F(DsymTest, ArgumentsOfStacks) {
  struct Row {
    const char* call;
    const char* error;
  };
  constexpr Row kRows[] = {
      {"stack(1, 2)",
       "D_STACK_PROTO in action list: stack( ) prototype mismatch: too many arguments"},
      {"stack(0)",
       "D_STACK_SIZE in action list: stack( ) size must be a non-zero positive integral constant "
       "expression"},
      {"stack(-1)",
       "D_STACK_SIZE in action list: stack( ) size must be a non-zero positive integral constant "
       "expression"},
      {"stack(pid)",
       "D_STACK_SIZE in action list: stack( ) size must be a non-zero positive integral constant "
       "expression"},
      {"ustack(0)",
       "D_USTACK_FRAMES in action list: ustack( ) argument #1 must be a non-zero positive integer "
       "constant"},
      {"jstack(\"x\")",
       "D_USTACK_FRAMES in action list: ustack( ) argument #1 must be a non-zero positive integer "
       "constant"},
      {"ustack(1, -5)",
       "D_USTACK_STRSIZE in action list: ustack( ) argument #2 must be a positive integer "
       "constant"},
      {"ustack(1, 2, 3)",
       "D_USTACK_PROTO in action list: ustack( ) prototype mismatch: too many arguments"},
      {"sym()", "D_PROTO_LEN in action list: sym( ) prototype mismatch: 0 args passed, 1 expected"},
      {"x = stack()",
       "D_CG_EXPR in action list: tracing function stack( ) may not be called from a D expression "
       "(D program context required)"},
      {"trace(stack())",
       "D_CG_EXPR in action list: tracing function stack( ) may not be called from a D expression "
       "(D program context required)"},
  };
  for (const Row& row : kRows) {
    const std::string got = refusal(std::string("BEGIN {") + row.call + ";}");
    if (std::string(row.call).starts_with("x =")) {
      EXPECT_NE(got, "");
      continue;
    }
    EXPECT_EQ(got, row.error);
  }
  EXPECT_EQ(run("fbt::malloc:entry {ustack(); jstack(); ustack(5, 100); printf(\"-\");}",
                [this] { pair(1); }),
            "\n\n\n-");
  EXPECT_EQ(run("BEGIN {ustack();} tick-1ms {stack(3); exit(0);}",
                [this] { kernel->cpus().clock().advance(5000000); }),
            "\n\n              kernel`sched_idletd+0x4a\n");
}

// REQ: DSYM-33, DSYM-39
TEST_F(DsymTest, StacksAsKeys) {
  EXPECT_EQ(run("fbt::malloc:entry {@[stack(8)] = count();} fbt::free:entry {@b[ustack(), "
                "probefunc] = count();}",
                [this] {
                  for (const char* site : {"first+0x10", "second", "first+0x10"}) {
                    thread().call_sites = {site};
                    pair(1);
                  }
                  thread().call_sites.clear();
                }),
            "\n"
            "\n              kernel`second\n                1\n"
            "\n              kernel`first+0x10\n                2\n"
            "\n  free                                                              3");
  // Ties sort by address.
  EXPECT_EQ(run("fbt::malloc:entry {@[stack()] = count();}",
                [this] {
                  for (const char* site : {"second", "first+0x10"}) {
                    thread().call_sites = {site};
                    pair(1);
                  }
                  thread().call_sites.clear();
                }),
            "\n"
            "\n              kernel`first+0x10\n                1\n"
            "\n              kernel`second\n                1");
}

// REQ: DSYM-34
TEST_F(DsymTest, SymbolActions) {
  const std::string blanks(50, ' ');
  const auto padded = [](std::string text) {
    text.resize(std::max<std::size_t>(text.size(), 50), ' ');
    return "  " + text;
  };
  thread().call_sites = {"if_foo`foo_init+0x9"};
  const auto work = [this] { pair(1); };
  EXPECT_EQ(run("fbt::malloc:entry {sym(caller); func(caller); mod(caller);}", work),
            padded("if_foo`foo_init") + padded("if_foo`foo_init") + padded("if_foo"));
  EXPECT_EQ(
      run("fbt::malloc:entry {usym(0x1234); ufunc(0x1234); umod(0x1234); uaddr(0x1234);}", work),
      padded("0x1234") + padded("0x1234") + padded("0x1234") + padded("0x1234"));
  EXPECT_EQ(run("fbt::malloc:entry {sym(5); mod(arg1); func(args[1]);}", work),
            padded("0x5") + padded("kernel") + padded("kernel`M_FOO"));
  thread().call_sites.clear();
}

// REQ: DSYM-35
TEST_F(DsymTest, SymbolsAsKeys) {
  EXPECT_EQ(run("fbt::malloc:entry {@[func(caller)] = count(); @m[mod(caller)] = count(); "
                "@u[uaddr(caller)] = count();}",
                [this] {
                  for (const char* site : {"f+0x10", "f+0x20", "g", "m.ko`f"}) {
                    thread().call_sites = {site};
                    pair(1);
                  }
                  thread().call_sites.clear();
                })
                    .substr(0, 400)
                    .find("  kernel`f" + std::string(42, ' ') + "                2\n") !=
                std::string::npos,
            true);
  EXPECT_NE(out.find("  kernel" + std::string(44, ' ') + "                3\n"), std::string::npos);
  EXPECT_NE(out.find("  m.ko" + std::string(46, ' ') + "                1\n"), std::string::npos);
}

// REQ: DSYM-36
TEST_F(DsymTest, AddressConversions) {
  thread().call_sites = {"foo_alloc+0x20"};
  const auto work = [this] { pair(1); };
  EXPECT_EQ(
      run("fbt::malloc:entry {printf(\"%a|%30a|%-26a|%a\", caller, caller, caller, 5);}", work),
      "kernel`foo_alloc+0x20|         kernel`foo_alloc+0x20|kernel`foo_alloc+0x20     |0x5");
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%A\", uaddr(0x1234));}", work), "0x1234");
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%k\", stack());}", work), "\nkernel`foo_alloc+0x20\n");
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%25k\", stack());}", work),
            "\n    kernel`foo_alloc+0x20\n");
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%-4k\", stack());}", work),
            "\n    kernel`foo_alloc+0x20\n");
  EXPECT_EQ(run("fbt::malloc:entry {@[stack()] = count();} END {printa(\"%k %@d|\", @);}", work),
            "\nkernel`foo_alloc+0x20\n 1|");
  EXPECT_NE(refusal("BEGIN {printf(\"%k\", 1);}").find("prototype: stack\n\t  argument: int"),
            std::string::npos);
  EXPECT_NE(refusal("BEGIN {printf(\"%A\", 1);}").find("prototype: _usymaddr\n\t  argument: int"),
            std::string::npos);
  EXPECT_NE(refusal("BEGIN {printf(\"%d\", stack());}").find("argument: stack"), std::string::npos);
  thread().call_sites.clear();
}

// REQ: DSYM-37
TEST_F(DsymTest, CallerAndDepth) {
  thread().call_sites = {"outer", "inner+0x8"};
  const auto work = [this] { pair(1); };
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%a %d\", caller, stackdepth);}", work),
            "kernel`inner+0x8 2");
  EXPECT_EQ(run("dtmalloc::foo_bar:malloc {printf(\"%a %d\", caller, stackdepth);}", work),
            "kernel`malloc+0x68 3");
  EXPECT_EQ(run("BEGIN {printf(\"%d\", caller);}"), "0");
  thread().call_sites.clear();
}

// REQ: DSYM-40
TEST_F(DsymTest, BuiltinsOfASimulatedThread) {
  const auto work = [this] { pair(1); };
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%d %d %d %d <%s> <%s>\", errno, jid, (int)ucaller, "
                "ustackdepth, zonename, jailname);}",
                work),
            "0 0 0 0 <> <0>");
  EXPECT_EQ(run("BEGIN {trace(execargs);}"), "dtrace");
  thread().pid = 712;
  thread().execname = "nginx";
  EXPECT_EQ(run("fbt::malloc:entry {trace(execargs);}", work), "nginx");
  thread().pid = 0;
  thread().execname = "kernel";
  EXPECT_EQ(run("fbt::malloc:entry {trace(execargs);}", work), "");
  EXPECT_NE(err.find("invalid address (0x0) in action #1"), std::string::npos);
}

// REQ: DSYM-44
TEST_F(DsymTest, CurrentThread) {
  const auto work = [this] { pair(1); };
  thread().pid = 712;
  thread().execname = "a name of more than 19 characters";
  thread().uid = 80;
  EXPECT_EQ(run("fbt::malloc:entry {printf(\"%d %d %s %s %d %d %s\", curthread->td_tid, "
                "curthread->td_proc->p_pid, stringof(curthread->td_name), "
                "curthread->td_proc->p_comm, curthread->td_ucred->cr_uid, "
                "curthread->td_ucred->cr_prison->pr_id, "
                "curthread->td_proc->p_ucred->cr_prison->pr_name);}",
                work),
            "100000 712 a name of more than a name of more than 80 0 0");
  thread().pid = 0;
  thread().uid = 0;
  thread().execname = "kernel";
  EXPECT_EQ(run("BEGIN {trace(stringof(curthread->td_name));}"), "dtrace");
  // Another thread's address shows nothing.
  run("BEGIN {x = curthread; trace(x->td_tid + ((struct thread *)((uint64_t)x + 4096))->td_tid);}");
  EXPECT_NE(err.find("invalid address"), std::string::npos);
}

// REQ: DSYM-41, DSYM-42
TEST_F(DsymTest, RegistersAndIpl) {
  run("BEGIN {trace(ipl);}");
  EXPECT_NE(err.find("illegal operation in action #1"), std::string::npos);
  EXPECT_EQ(run("BEGIN {trace(uregs[0]); trace(uregs[cpu + 5]);}"), "00");
  run("BEGIN {trace(uregs[1000]);}");
  EXPECT_NE(err.find("illegal operation in action #1"), std::string::npos);
  EXPECT_EQ(refusal("BEGIN {trace(uregs[-1]);}"),
            "D_REGS_IDX in action list: index -1 is out of range for array uregs");
  EXPECT_EQ(refusal("BEGIN {trace(uregs[1, 2]);}"),
            "D_PROTO_LEN in action list: uregs[ ] prototype mismatch: 2 args passed, 1 expected");
  EXPECT_EQ(refusal("BEGIN {trace(uregs[\"x\"]);}").substr(0, 11), "D_PROTO_ARG");
}

// REQ: DSYM-50, DSYM-52
TEST_F(DsymTest, PredefinedProfileProbes) {
  open();
  std::vector<std::string> names;
  for (const Framework::ProbeInfo& probe : framework->probes()) {
    if (probe.description.provider != "profile") continue;
    names.push_back(probe.description.name);
    EXPECT_EQ(probe.description.module + probe.description.function, "");
    EXPECT_EQ(probe.attributes.provider.name, Stability::evolving);
    EXPECT_EQ(probe.attributes.name.data, Stability::evolving);
    EXPECT_EQ(probe.attributes.name.dependency, DependencyClass::common);
    EXPECT_EQ(probe.attributes.module.dependency, DependencyClass::unknown);
    EXPECT_EQ(probe.attributes.function.dependency, DependencyClass::isa);
    EXPECT_EQ(probe.attributes.args.data, Stability::private_);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"profile-97", "profile-199", "profile-499",
                                             "profile-997", "profile-1999", "profile-4001",
                                             "profile-4999", "tick-1", "tick-10", "tick-100",
                                             "tick-500", "tick-1000", "tick-5000"}));
  EXPECT_EQ(refusal("profile:::tick-1* {}"), "");
  EXPECT_EQ(refusal("tick-37ms {}"), "");
  EXPECT_EQ(refusal("tick-37m* {}"), "");  // now it exists
  EXPECT_EQ(refusal("tick-39m* {}").substr(0, 12), "D_PDESC_ZERO");
}

// REQ: DSYM-51
TEST_F(DsymTest, ArgumentsOfProfile) {
  thread().call_sites = {"outer", "inner+0x8"};
  const auto work = [this] { kernel->cpus().clock().advance(1500000); };
  EXPECT_EQ(run("profile-1ms /cpu == 0/ {printf(\"%a %d %d\", arg0, arg1, arg2);}", work),
            "kernel`inner+0x8 0 0");
  EXPECT_EQ(run("profile-1ms /cpu == 1/ {printf(\"%a %d %d\", arg0, arg1, arg2);}", work),
            "kernel`sched_idletd+0x4a 0 0");
  EXPECT_EQ(run("tick-1ms {printf(\"%d %a %d %d\", cpu, arg0, arg1, arg2);}", work),
            "0 kernel`inner+0x8 0 0");
  thread().call_sites.clear();
}

// REQ: DSYM-53
TEST_F(DsymTest, SuffixesOfProfile) {
  for (const char* name :
       {"tick-200000ns", "tick-200000NS", "tick-300us", "tick-300usec", "tick-2ms", "tick-2msec",
        "tick-2s", "tick-2Sec", "tick-2m", "tick-2min", "tick-2h", "tick-2hour", "tick-2d",
        "tick-2day", "tick-20hz", "profile-20HZ", "tick-20"}) {
    EXPECT_EQ(refusal(std::string(name) + " {}"), "") << name;
  }
  for (const char* name : {"tick-0", "tick-0s", "tick-199us", "tick-5001", "tick-5001hz", "tick-1x",
                           "tick", "profile", "tick-"}) {
    EXPECT_EQ(refusal(std::string("profile:::") + name + " {}").substr(0, 12), "D_PDESC_ZERO")
        << name;
  }
  EXPECT_EQ(refusal("profile:m::tick-7 {}").substr(0, 12), "D_PDESC_ZERO");
}

// REQ: DSYM-61
TEST_F(DsymTest, NamesAreCut) {
  const std::string longest(191, 'x');
  kernel->define_type("M_LONG", longest + "yz");
  open();
  const auto ids = framework->match({"dtmalloc", "", longest, "malloc", kNoProbe});
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(framework->probe(ids[0]).description.function, longest);
}

// REQ: DSYM-62, DSYM-63
TEST_F(DsymTest, Globs) {
  EXPECT_EQ(refusal("dtmalloc::*f*o*o*_*b*a*r*x*y*:malloc {}").substr(0, 13), "D_PDESC_INVAL");
  EXPECT_EQ(refusal("dtmalloc::*f*o*o*_*b*a*r*:malloc {}"), "");
  struct Row {
    const char* pattern;
    bool matches;
  };
  constexpr Row kRows[] = {
      {"foo_bar", true},   {"foo?bar", true},     {"foo*", true},          {"*", true},
      {"FOO_BAR", false},  {"[a-f]oo_bar", true}, {"[!a-f]oo_bar", false}, {"[!g-z]oo_*", true},
      {"foo\\_bar", true}, {"fo\\?_bar", false},  {"foo", false},
  };
  open();
  for (const Row& row : kRows) {
    EXPECT_EQ(framework->match({"dtmalloc", "", row.pattern, "free", kNoProbe}).size(),
              row.matches ? (std::string(row.pattern) == "*" ? 6u : 1u) : 0u)
        << row.pattern;
  }
}

// REQ: DSYM-64
TEST_F(DsymTest, TwentyThousandProbes) {
  std::vector<malloc_type*> types;
  for (int i = 0; i < 10000; ++i) {
    const std::string name = std::to_string(i);
    types.push_back(&kernel->define_type("M_" + name, "type " + name));
  }
  const std::clock_t begin = std::clock();
  open();
  ASSERT_EQ(start("dtmalloc::: {@[probename] = count();}"), "");
  for (malloc_type* each : types) kernel->free(kernel->malloc(1, each, M_WAITOK), each);
  session->stop();
  session = nullptr;
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_NE(out.find("free                                                          10000"),
            std::string::npos);
  EXPECT_LT(seconds, 1.0);
}

// REQ: DSYM-65
TEST_F(DsymTest, FaultNames) {
  EXPECT_EQ(run("BEGIN {trace(DTRACEFLT_UNKNOWN + DTRACEFLT_BADADDR + DTRACEFLT_BADALIGN + "
                "DTRACEFLT_ILLOP + DTRACEFLT_DIVZERO + DTRACEFLT_NOSCRATCH + DTRACEFLT_KPRIV + "
                "DTRACEFLT_UPRIV + DTRACEFLT_TUPOFLOW + DTRACEFLT_BADSTACK); trace(sizeof "
                "(DTRACEFLT_ILLOP));}"),
            "454");
}

}  // namespace
}  // namespace dtmalloc::dtrace
