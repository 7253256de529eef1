// SPDX-License-Identifier: BSD-2-Clause
// What a Session is made of.
// Counterpart:  dtrace_hdl_t
// Locking:      `mutex` around everything that changes tracing: go, passes, stop. A callout only
//               tries it, as a pass that is under way serves it too; so cancelling the callout with
//               the mutex held cannot deadlock. The framework locks for itself, after it.
#pragma once

#include <atomic>
#include <deque>
#include <dtmalloc/dtrace/session.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dtrace/consume/aggregation.hpp"
#include "dtrace/consume/document.hpp"
#include "dtrace/consume/format.hpp"
#include "dtrace/consume/options.hpp"
#include "dtrace/core/consumer.hpp"
#include "dtrace/dif/catalog.hpp"
#include "dtrace/lang/lang.hpp"

namespace dtmalloc::dtrace {

// The world as the compiler sees it: the framework's probes, and the structures that providers
// described.
class FrameworkCatalog : public Catalog {
 public:
  explicit FrameworkCatalog(Framework& framework);
  TypeTable& types() override { return types_; }
  std::vector<ProbeId> match(const ProbeDescription& description) override;
  CatalogProbe probe(ProbeId id) override;
  std::vector<std::string> function_names(std::string_view provider) override;
  std::vector<std::string> provider_names() override { return framework_.provider_names(); }
  std::vector<ArgumentRemark> argument_remarks(ProbeId id) override {
    return framework_.remarks(id);
  }
  std::map<std::string, FunctionHint> hints() override { return framework_.hints(); }
  std::optional<CatalogSymbol> symbol(std::string_view module, std::string_view name) override;
  TypeId symbol_type(const CatalogSymbol& symbol) override { return member_type(symbol.type); }
  bool has_module(std::string_view module) override;
  std::vector<std::string> symbol_names() override;

 private:
  TypeId member_type(const std::string& name);
  Framework& framework_;
  TypeTable types_;
};

inline constexpr std::uint64_t kWidestIndent = 4096;
std::string report_name(const ProgramSource& source);  // as messages name a program
// Three lines below a title; what -v says of a probe that is described so.
void append_attribute(std::string& text, const char* what, const Attribute& attribute);
void append_details(std::string& text, Framework& framework, const Framework::ProbeInfo& probe,
                    const ProbeDescription& described);

struct CompiledProgram {
  ProgramSource source;
  std::string text;  // after the preprocessor
  std::shared_ptr<const Program> program;
  std::string parse_dump, desugar_dump, type_dump;
  std::vector<Diagnostic> warnings;
  // By clause: what was enabled of it, a name in Impl::took; null: nothing.
  std::vector<const Clause*> enabled = {};
};

struct Session::Impl {
  Impl(Framework& framework, SessionSinks sinks);
  ~Impl();

  Framework& framework;
  SessionSinks sinks;
  Options options;
  FrameworkCatalog catalog;
  ProgramSpace space;
  Consumer consumer;
  std::vector<CompiledProgram> programs;
  SimThread tracer;  // the thread of the command itself: where BEGIN and END run
  std::size_t matched = 0;
  bool libraries_loaded = false;
  std::vector<std::pair<std::string, std::string>> libraries;  // paths and texts, as compiled

  // --- tracing
  std::recursive_mutex mutex;
  bool passing = false;  // a pass is under way: one that its output causes is not begun
  bool active = false;
  bool anonymous = false;  // nobody reads
  std::atomic<bool> stopped{false};
  std::atomic<int> exit_status{0};
  std::atomic<bool> had_errors{false};
  CalloutId callout = 0;
  bool scheduled = false;      // `callout` was made
  std::uint64_t interval = 0;  // of the callout
  bool aborted = false;        // processing stops: no END, no further output
  bool exited = false;         // exit() came before the end
  struct Turn {
    std::uint64_t time = 0;  // of the last one, and in which pass
    std::uint64_t pass = 0;
  };
  Turn switch_turn, aggregation_turn, status_turn;
  std::uint64_t passes = 0;        // begun so far
  std::uint64_t fired_before = 0;  // the last pass before which something had fired
  bool first_pass = true;
  AggStore aggregations;
  std::vector<std::uint64_t> aggregation_drops;  // reported so far, by CPU
  Consumer::Status reported;                     // its drops, so far
  TextSink reopened;                             // where actions print since freopen()
  bool heading_printed = false;
  std::size_t indent = 0;         // flowindent
  const Ecb* last_ecb = nullptr;  // of the record printed last

  // A record out of a buffer; one that waits for the next pass has its bytes in Waiting.
  struct Record {
    std::uint64_t timestamp = 0;
    int cpu = 0;
    const Ecb* ecb = nullptr;
    std::uint32_t next = 0;  // EPID of the record behind it in its buffer
    const std::byte* bytes = nullptr;
  };
  struct Waiting {
    Record record;
    std::vector<std::byte> bytes;
  };
  std::deque<Waiting> waiting;

  Result<void> set_option(std::string_view name, std::string_view value);
  CompileInput compile_input();  // the settings of any text: no text, no arguments
  Diagnostic tagged(Diagnostic diagnostic) const;
  Result<void> load_libraries();  // libraries.cpp; once
  Result<void> compile_library(const std::string& path, const std::string& text);
  bool quiet() const { return options.is_set("quiet"); }
  std::uint32_t strsize() const { return static_cast<std::uint32_t>(options.get("strsize", 256)); }
  void out(std::string_view text) const;
  // What actions print.
  void act_out(std::string_view text) const { reopened ? reopened(text) : out(text); }
  void message(std::string_view text) const;  // "dtrace: " text newline
  void remark(std::string_view text) const;   // what dtrace(1) does not say: "dtmalloc: "
  SymbolText symbol_text() const {
    return {framework.impl().symbols.get(), static_cast<int>(std::min<std::uint64_t>(
                                                options.get("stackindent", 14), kWidestIndent))};
  }
  TimeFormat time_format() const { return {framework.cpus().clock().is_real(), symbol_text()}; }

  std::string dif_listing(ProgramId program) const;  // dif_listing.cpp: dtrace -S
  void report_lowered(const char* what, std::size_t wanted, std::size_t given) const;
  void report_rate(const char* what, std::uint64_t wanted, std::uint64_t given) const;

  // --- idle.cpp: at the end, before the ECBs go
  void find_idle_clauses();
  bool lost_records = false;
  std::map<std::string, std::uint64_t> drop_totals;  // by tag
  std::vector<std::string> idle_clauses;

  // --- clauses.cpp: what is enabled of a program; no choice: all of it
  static std::shared_ptr<const Program> chosen(CompiledProgram& program,
                                               const ClauseChoice& choice);
  struct Took {
    std::uint32_t size = 0;
    std::uint64_t records = 0;
  };
  std::map<const Clause*, Took> took;  // the clauses may be gone
  void collect_figures();              // at the end, before the ECBs go

  // --- notes.cpp: at the end, before the ECBs go
  void tell_full_buffers();
  void collect_notes();
  std::vector<std::string> notes;

  // --- turns.cpp. Requires: mutex held
  void guarded_pass();  // unless tracing has ended
  void begin_passes();
  void schedule();
  void skip_passes(std::uint64_t first, std::uint64_t last);
  bool take_turn(Turn& turn, std::uint64_t rate, bool always);
  std::uint64_t pass_interval() const;
  std::uint64_t status_interval() const;
  std::uint64_t aggregation_rate() const;
  std::uint64_t switch_rate() const;
  bool reads_buffers() const;  // before the end

  // --- pass.cpp
  void pass(bool final);
  // False: tracing has ended.
  bool check_status(bool final);
  void fail_processing(std::string_view why);  // says so; abort() follows
  void abort();                                // after an error that ends processing
  void finish();                               // END, the last pass, the end of the output
  void take_aggregations();
  void take_records(bool final);
  void collect(std::vector<Record>& records, int cpu, std::span<const std::byte> bytes) const;
  // `cpu`: of whose buffer, if it is one's.
  void report_drop(const char* tag, std::uint64_t count, const std::string& text, int cpu = -1);

  // --- record.cpp
  void print_record(const Record& record);
  void print_prefix(std::string& text, const Record& record);
  void print_error(const Record& record);
  static std::string enabled_probe(const Ecb& ecb);  // as messages name it
  static std::string error_head(const Ecb& ecb);
  void do_action(std::string& text, const Record& record, const RecordedAction& action);
  AggDisplay display() const;

  // --- structured.cpp
  std::optional<Document> document;  // with oformat: instead of text
  bool print_at_exit = false;        // -O: aggregations belong into the document
  void begin_document();
  void structured_record(const Record& record);
  void structured_action(const Record& record, const RecordedAction& action);
  void structured_aggregations(const std::vector<std::uint32_t>& ids);
  void structured_drop(std::string_view tag, std::uint64_t count, const std::string& text, int cpu);
  void end_document();

  // --- control.cpp: the actions that act on the consumer itself
  Result<void> check_sinks() const;  // for the programs enabled
  void control_action(std::string& text, const Record& record, const RecordedAction& action);
  void set_option_action(const Record& record, const RecordedAction& recorded);
  void print_aggregations(std::string& text, const Action& action);
  void print_unprinted();
};

}  // namespace dtmalloc::dtrace
