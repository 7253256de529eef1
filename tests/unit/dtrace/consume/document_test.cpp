// SPDX-License-Identifier: BSD-2-Clause
// Documents in libxo's styles.
#include "dtrace/consume/document.hpp"

#include <gtest/gtest.h>

namespace dtmalloc::dtrace {
namespace {

std::string written(Document::Style style, bool pretty) {
  Document document(style, pretty);
  document.open_container("dtrace");
  document.open_list("probes");
  for (int i = 0; i < 2; ++i) {
    document.open_instance("probes");
    document.number("cpu", std::int64_t{i});
    document.text("module", "");
    document.open_list("output");
    document.open_instance("output");
    document.text("value", "<a> & \"b\"\n");
    document.close();
    document.open_instance("output");
    document.open_list("keys");
    document.element(std::int64_t{-1});
    document.element("k");
    document.close();
    document.close();
    document.close();
    document.close();
  }
  document.finish();
  return document.take();
}

// REQ: DFUNCS-50
TEST(Document, Json) {
  EXPECT_EQ(
      written(Document::Style::json, false),
      "{\"dtrace\": {\"probes\": [{\"cpu\":0,\"module\":\"\", \"output\": [{\"value\":\"<a> & "
      "\\\"b\\\"\\n\"}, {\"keys\": [-1,\"k\"]}]}, {\"cpu\":1,\"module\":\"\", \"output\": "
      "[{\"value\":\"<a> & \\\"b\\\"\\n\"}, {\"keys\": [-1,\"k\"]}]}]}}\n");
  Document nothing(Document::Style::json, false);
  nothing.open_container("dtrace");
  nothing.open_list("probes");
  nothing.finish();
  EXPECT_EQ(nothing.take(), "{\"dtrace\": {\"probes\": []}}\n");
}

// REQ: DFUNCS-50
TEST(Document, PrettyJson) {
  Document document(Document::Style::json, true);
  document.open_container("dtrace");
  document.open_list("probes");
  document.open_instance("probes");
  document.number("cpu", std::int64_t{0});
  document.text("name", "BEGIN");
  document.finish();
  EXPECT_EQ(document.take(),
            "{\n"
            "  \"dtrace\": {\n"
            "    \"probes\": [\n"
            "      {\n"
            "        \"cpu\": 0,\n"
            "        \"name\": \"BEGIN\"\n"
            "      }\n"
            "    ]\n"
            "  }\n"
            "}\n");
}

// REQ: DFUNCS-50
TEST(Document, Xml) {
  const std::string record =
      "<module/><output><value>&lt;a&gt; &amp; \"b\"\n</value></output>"
      "<output><keys>-1</keys><keys>k</keys></output></probes>";
  EXPECT_EQ(written(Document::Style::xml, false),
            "<?xml version=\"1.0\"?>\n<dtrace><probes><cpu>0</cpu>" + record +
                "<probes><cpu>1</cpu>" + record + "</dtrace>\n");
}

// REQ: DFUNCS-50
TEST(Document, Html) {
  const std::string data =
      "<div class=\"data\" data-tag=\"module\"></div><div class=\"data\" "
      "data-tag=\"value\">&lt;a&gt; &amp; \"b\"\n</div><div class=\"data\" "
      "data-tag=\"keys\">-1</div><div class=\"data\" data-tag=\"keys\">k</div></div>";
  EXPECT_EQ(written(Document::Style::html, false),
            "<div class=\"line\"><div class=\"data\" data-tag=\"cpu\">0</div>" + data +
                "<div class=\"line\"><div class=\"data\" data-tag=\"cpu\">1</div>" + data + "\n");
}

// REQ: DFUNCS-50
TEST(Document, TextThatIsNoUtf8) {
  const auto value = [](Document::Style style, std::string_view text) {
    Document document(style, false);
    document.text("v", text);
    return document.take();
  };
  EXPECT_EQ(value(Document::Style::json, "\xc3\xa9\xff\xed\xa0\x80\x01"),
            "\"v\":\"\u00e9?\?\?\?\\u0001\"");
  EXPECT_EQ(value(Document::Style::html, "\x01\xe2\x82"),
            "<div class=\"data\" data-tag=\"v\">?\?\?</div>");
}

}  // namespace
}  // namespace dtmalloc::dtrace
