// SPDX-License-Identifier: BSD-2-Clause
// The table of refusals: program, tag, the text to the letter, the column that the caret is at.
#include <gtest/gtest.h>

#include "support/d_program.hpp"

namespace dtmalloc::dtrace {
namespace {

using testing::Compiled;

struct Row {
  const char* program;
  const char* tag;
  const char* message;
  std::uint32_t column;
};

// REQ: DLANG-28 DLANG-23: a command-line string names its region.
constexpr Row kCommandLine[] = {
    // descriptions
    {"dtmalloc::no_such_type:malloc {}", "D_PDESC_ZERO",
     "probe description dtmalloc::no_such_type:malloc does not match any probes", 1},
    {"foo", "D_PDESC_ZERO", "probe description :::foo does not match any probes", 1},
    {"BEGIN, END, nothing {}", "D_PDESC_ZERO",
     "probe description :::nothing does not match any probes", 13},
    {"a:b:c:d:e", "D_PDESC_INVAL",
     "invalid probe description \"a:b:c:d:e\": Overspecified probe description", 1},
    {"999", "D_PDESC_INVAL", "invalid probe identifier 999: Unknown probe identifier", 1},
    {"4294967296", "D_PDESC_INVAL", "identifier 4294967296 exceeds maximum probe id", 1},
    {"pid$7:::entry {}", "D_PDESC_INVAL",
     "invalid probe description \"pid$7:::entry\": Undefined macro variable in probe description",
     1},
    // syntax
    {"BEGIN /1/", "D_SYNTAX", "expected actions { } following probe description and predicate", 1},
    {"BEGIN { trace(1) trace(2); }", "D_SYNTAX", "in action list: syntax error near \"trace\"", 18},
    {"BEGIN { trace(1);", "D_SYNTAX", "in action list: syntax error near end of input", 18},
    {"BEGIN { trace(1)); }", "D_SYNTAX", "in action list: extra ) in input stream", 17},
    {"BEGIN { x = 1]; }", "D_SYNTAX", "in action list: extra ] in input stream", 14},
    {"BEGIN {} }", "D_SYNTAX", "extra } in input stream", 10},
    {"BEGIN /(1/ {}", "D_SYNTAX", "in predicate: closing ) expected in predicate before /", 10},
    {"BEGIN /\"a\"[1/ {}", "D_SYNTAX", "in predicate: closing ] expected in predicate before /",
     13},
    {"BEGIN { trace(1.5); }", "D_SYNTAX",
     "in action list: floating-point constants are not permitted", 15},
    {"BEGIN { /* /* */ }", "D_SYNTAX", "in action list: /* encountered inside a comment", 12},
    {"BEGIN { /* }", "D_SYNTAX", "in action list: end-of-file encountered before matching */", 9},
    {"BEGIN { for (;;) ; }", "D_SYNTAX", "in action list: syntax error near \"for\"", 9},
    {"", "D_EMPTY", "empty D program translation unit", 1},
    // constants
    {"BEGIN { trace(08); }", "D_INT_DIGIT", "in action list: constant 08 contains invalid digit 8",
     15},
    {"BEGIN { trace(18446744073709551616); }", "D_INT_OFLOW",
     "in action list: constant 18446744073709551616 results in integer overflow", 15},
    {"BEGIN { trace(9223372036854775808); }", "D_INT_OFLOW",
     "in action list: integer constant 0x8000000000000000 cannot be represented in any built-in "
     "integral type",
     15},
    {"BEGIN { trace(\"abc\n\"); }", "D_STR_NL",
     "in action list: newline encountered in string literal", 15},
    {"BEGIN { trace('a\n'); }", "D_CHR_NL",
     "in action list: newline encountered in character constant", 15},
    {"BEGIN { trace(''); }", "D_CHR_NULL", "in action list: empty character constant", 15},
    {"BEGIN { trace('123456789'); }", "D_CHR_OFLOW",
     "in action list: character constant is too long", 15},
    {"BEGIN { trace($3); }", "D_MACRO_UNDEF", "in action list: macro argument $3 is not defined",
     15},
    {"BEGIN { trace($nothing); }", "D_MACRO_UNDEF",
     "in action list: macro variable $nothing is not defined", 15},
    // identifiers
    {"BEGIN { trace(x); }", "D_IDENT_UNDEF",
     "in action list: failed to resolve x: Unknown variable name", 15},
    {"BEGIN /x/ {}", "D_IDENT_UNDEF", "in predicate: failed to resolve x: Unknown variable name",
     8},
    {"BEGIN { trace(args); }", "D_IDENT_BADREF",
     "in action list: array 'args' may not be referenced as scalar", 15},
    {"BEGIN { args = 1; }", "D_IDENT_BADREF",
     "in action list: array 'args' may not be referenced as scalar", 9},
    {"BEGIN { uregs = 1; }", "D_IDENT_BADREF",
     "in action list: array 'uregs' may not be referenced as scalar", 9},
    {"BEGIN { args++; }", "D_IDENT_BADREF",
     "in action list: array 'args' may not be referenced as scalar", 9},
    {"BEGIN { trace(strlen); }", "D_IDENT_BADREF",
     "in action list: function 'strlen' may not be referenced as scalar", 15},
    {"BEGIN { trace(this->x); }", "D_VAR_UNDEF",
     "in action list: this->x has not yet been declared or assigned", 15},
    {"BEGIN { nothing(); }", "D_FUNC_UNDEF", "in action list: undefined function name: nothing", 9},
    {"BEGIN { pid(); }", "D_FUNC_IDKIND",
     "in action list: scalar 'pid' may not be referenced as a function", 9},
    {"BEGIN { 5(); }", "D_FUNC_IDENT",
     "in action list: function designator is not of function type", 9},
    {"BEGIN { trace(pid[1]); }", "D_ARR_BADREF",
     "in action list: cannot access pid as an associative array", 15},
    {"BEGIN { this->x[1] = 1; }", "D_ARR_LOCAL",
     "in action list: local variables may not be used as associative arrays: x", 9},
    {"BEGIN { trace(sizeof (int[4294967295][4294967295][4294967295])); }", "D_DECL_ARRBIG",
     "in action list: array dimension too big", 38},
    {"BEGIN { trace(sizeof (int[4294967296])); }", "D_DECL_ARRBIG",
     "in action list: array dimension too big", 27},
    {"4.56", "D_SYNTAX", "syntax error near \".56\"", 2},
    {"4.56 { trace(1); }", "D_SYNTAX", "syntax error near \".56\"", 2},
    {"*a*b*c*d*e*f*g*h*i {}", "D_PDESC_INVAL",
     "invalid probe description \"*a*b*c*d*e*f*g*h*i\": Probe description has too many globbing "
     "characters",
     1},
    {"*a*b*c*d*e*f*g*h*:::BEG***IN {}", "D_PDESC_ZERO",
     "probe description *a*b*c*d*e*f*g*h*:::BEG***IN does not match any probes", 1},
    {"BEGIN { this->x = 1; this->x[1]; }", "D_ARR_LOCAL",
     "in action list: local variables may not be used as associative arrays: x", 22},
    // calls
    {"BEGIN { trace(strlen(\"a\", 1)); }", "D_PROTO_LEN",
     "in action list: strlen( ) prototype mismatch: 2 args passed, 1 expected", 15},
    {"BEGIN { trace(strjoin(\"a\")); }", "D_PROTO_LEN",
     "in action list: strjoin( ) prototype mismatch: 1 arg passed, 2 expected", 15},
    {"BEGIN { trace(substr(\"a\", 1, 2, 3)); }", "D_PROTO_LEN",
     "in action list: substr( ) prototype mismatch: 4 args passed, at least 2 expected", 15},
    {"BEGIN { trace(strlen(1)); }", "D_PROTO_ARG",
     "in action list: strlen( ) argument #1 is incompatible with prototype:\n\tprototype: const "
     "char *\n\t argument: int",
     22},
    {"BEGIN { exit(); }", "D_PROTO_LEN",
     "in action list: exit( ) prototype mismatch: 0 args passed, 1 expected", 9},
    {"BEGIN { x = trace(1); }", "D_OP_ACT", "in action list: operator = operands cannot be actions",
     9},
    {"BEGIN { 1 + exit(0); }", "D_OP_ACT", "in action list: operator + operands cannot be actions",
     9},
    {"BEGIN { pid ? trace(1) : trace(2); }", "D_OP_ACT",
     "in action list: action cannot be used in a conditional context", 9},
    {"BEGIN { trace(strlen(trace(1))); }", "D_CG_EXPR",
     "in action list: tracing function trace( ) may not be called from a D expression (D program "
     "context required)",
     22},
    {"BEGIN { trace(count()); }", "D_CG_EXPR",
     "in action list: aggregating function count( ) may not be called from a D expression (D "
     "program context required)",
     15},
    // operators
    {"BEGIN /\"a\"/ {}", "D_PRED_SCALAR", "in predicate: predicate result must be of scalar type",
     8},
    {"BEGIN { \"a\" | 1; }", "D_OP_INT",
     "in action list: operator | requires operands of integral type", 9},
    {"BEGIN { ~\"a\"; }", "D_OP_INT",
     "in action list: operator ~ requires an operand of integral type", 9},
    {"BEGIN { !\"a\"; }", "D_OP_SCALAR",
     "in action list: operator ! requires an operand of scalar type", 9},
    {"BEGIN { \"a\" && 1; }", "D_OP_SCALAR",
     "in action list: operator && requires operands of scalar type", 9},
    {"BEGIN { \"a\" ? 1 : 2; }", "D_OP_SCALAR",
     "in action list: operator ?: expression must be of scalar type", 9},
    {"BEGIN { -\"a\"; }", "D_OP_ARITH",
     "in action list: operator - requires an operand of arithmetic type", 9},
    {"BEGIN { \"a\" * 2; }", "D_OP_ARITH",
     "in action list: operator * requires operands of arithmetic type", 9},
    {"BEGIN { 1 == \"a\"; }", "D_OP_INCOMPAT",
     "in action list: operands have incompatible types: \"int\" == \"string\"", 9},
    {"BEGIN { x = 1; x = \"a\"; }", "D_OP_INCOMPAT",
     "in action list: operands have incompatible types: \"int\" = \"string\"", 16},
    {"BEGIN { t = \"a\"; t += 1; }", "D_OP_INCOMPAT",
     "in action list: operands have incompatible types: \"string\" += \"int\"", 18},
    {"BEGIN { (void *)arg0 + 1; }", "D_OP_INCOMPAT",
     "in action list: operands have incompatible types: \"void *\" + \"int\"", 9},
    {"BEGIN { pid ? 1 : \"a\"; }", "D_OP_INCOMPAT",
     "in action list: operator ?: operands must have compatible types", 9},
    {"BEGIN { pid = 1; }", "D_OP_WRITE",
     "in action list: operator = can only be applied to a writable variable", 9},
    {"BEGIN { pid++; }", "D_OP_WRITE",
     "in action list: operator ++ can only be applied to a writable variable", 9},
    {"BEGIN { 5 = pid; }", "D_OP_LVAL",
     "in action list: operator = requires modifiable lvalue as an operand", 9},
    {"BEGIN { --5; }", "D_OP_LVAL",
     "in action list: operator -- requires modifiable lvalue as an operand", 9},
    {"BEGIN { trace(1 / 0); }", "D_DIV_ZERO",
     "in action list: expression contains division by zero", 15},
    {"BEGIN { x = 1; x %= 0; }", "D_DIV_ZERO",
     "in action list: expression contains division by zero", 16},
    {"BEGIN { *pid; }", "D_DEREF_NONPTR", "in action list: cannot dereference non-pointer type", 9},
    {"BEGIN { *(void *)arg0; }", "D_DEREF_VOID",
     "in action list: cannot dereference pointer to void", 9},
    {"BEGIN { &pid; }", "D_ADDROF_VAR", "in action list: cannot take address of dynamic variable",
     9},
    {"BEGIN { &(pid + 1); }", "D_ADDROF_LVAL",
     "in action list: unacceptable operand for unary & operator", 9},
    {"BEGIN { pid->x; }", "D_OP_PTR", "in action list: operator -> must be applied to a pointer",
     9},
    {"BEGIN { ((int *)arg0)->x; }", "D_OP_SOU",
     "in action list: operator -> cannot be applied to pointer to type \"int\"; must be applied to "
     "a struct or union pointer",
     10},
    {"BEGIN { pid.x; }", "D_OP_SOU",
     "in action list: operator . cannot be applied to type \"pid_t\"; must be applied to a struct "
     "or union",
     9},
    {"BEGIN { curthread->td_tid; }", "D_OP_INCOMPLETE",
     "in action list: operator -> cannot be applied to a forward declaration: no struct thread "
     "definition is available",
     9},
    {"BEGIN { ((struct malloc_type *)arg0)->ks_name; }", "D_TYPE_MEMBER",
     "in action list: ks_name is not a member of struct malloc_type", 39},
    {"BEGIN { sizeof (void); }", "D_SIZEOF_TYPE",
     "in action list: cannot apply sizeof to an operand of unknown size", 9},
    {"BEGIN { offsetof (int, x); }", "D_OFFSETOF_TYPE",
     "in action list: offsetof operand must be a struct or union type", 9},
    {"BEGIN { stringof (*(struct malloc_type *)arg0); }", "D_STRINGOF_TYPE",
     "in action list: cannot apply stringof to a value of type struct malloc_type", 9},
    {"BEGIN { (struct malloc_type)1; }", "D_CAST_INVAL",
     "in action list: invalid cast expression: \"int\" to \"struct malloc_type\"", 9},
    {"BEGIN { (int)\"a\"; }", "D_CAST_INVAL",
     "in action list: invalid cast expression: \"string\" to \"int\"", 9},
    {"BEGIN { (unsigned string)1; }", "D_DECL_SIGNINT",
     "in action list: invalid type declaration: signed and unsigned may only be used with integer "
     "type",
     19},
    // args
    {"BEGIN { trace(args[0]); }", "D_ARGS_IDX",
     "in action list: index 0 is out of range for :::BEGIN args[ ]", 15},
    {"dtmalloc:::malloc { trace(args[5]); }", "D_ARGS_IDX",
     "in action list: index 5 is out of range for dtmalloc:::malloc args[ ]", 27},
    {":::malloc { trace(args[0]); }", "D_ARGS_MULTI",
     "in action list: args[ ] may not be referenced because probe description :::malloc matches an "
     "unstable set of probes",
     19},
    {"dtmalloc:::malloc { trace(args[pid]); }", "D_PROTO_ARG",
     "in action list: args[ ] argument #1 is incompatible with prototype:\n\tprototype: integer "
     "constant\n\t argument: pid_t",
     27},
    {"dtmalloc:::malloc { trace(args[1, 2]); }", "D_PROTO_LEN",
     "in action list: args[ ] prototype mismatch: 2 args passed, 1 expected", 27},
    // trace, printf, printa
    {"BEGIN { @a = count(); trace(@a); }", "D_TRACE_AGG",
     "in action list: trace( ) may not be applied to an aggregation", 29},
    {"BEGIN { trace((void)1); }", "D_TRACE_VOID",
     "in action list: trace( ) may not be applied to a void expression", 15},
    {"BEGIN { printf(pid); }", "D_PRINTF_ARG_FMT",
     "in action list: printf( ) argument #1 is incompatible with prototype:\n\tprototype: string "
     "constant\n\t argument: pid_t",
     16},
    {"BEGIN { printf(\"\"); }", "D_PRINTF_FMT_EMPTY",
     "in action list: printf( ) format string is empty", 16},
    {"BEGIN { printf(\"%d\"); }", "D_PRINTF_ARG_PROTO",
     "in action list: printf( ) prototype mismatch: conversion #1 (%d) is missing a corresponding "
     "value argument",
     16},
    {"BEGIN { printf(\"%d\", 1, 2); }", "D_PRINTF_ARG_EXTRA",
     "in action list: printf( ) prototype mismatch: only 1 arguments required by this format "
     "string",
     25},
    {"BEGIN { printf(\"%s\", 1); }", "D_PRINTF_ARG_TYPE",
     "in action list: printf( ) argument #2 is incompatible with conversion #1 "
     "prototype:\n\tconversion: %s\n\t prototype: char [] or string (or use stringof)\n\t  "
     "argument: int",
     22},
    {"BEGIN { printf(\"%*d\"); }", "D_PRINTF_DYN_PROTO",
     "in action list: printf( ) prototype mismatch: conversion #1 (%d) is missing a corresponding "
     "\"*\" argument",
     16},
    {"BEGIN { printf(\"%*d\", \"a\", 1); }", "D_PRINTF_DYN_TYPE",
     "in action list: printf( ) argument #2 is incompatible with conversion #1 "
     "prototype:\n\tconversion: % * d\n\t prototype: int\n\t  argument: string",
     23},
    {"BEGIN { printf(\"%@d\", 1); }", "D_PRINTF_AGG_CONV",
     "in action list: %@ conversion requires an aggregation and is not for use with printf( )", 16},
    {"BEGIN { printf(\"%z\", 1); }", "D_SYNTAX",
     "in action list: format conversion #1 is undefined: %z", 16},
    {"BEGIN { printf(\"%**d\", 1); }", "D_SYNTAX",
     "in action list: format conversion #1 has more than one '*' specified for the output width",
     16},
    {"BEGIN { printf(\"%.*.d\", 1); }", "D_SYNTAX",
     "in action list: format conversion #1 has more than one '.' specified", 16},
    {"BEGIN { printf(\"%1$d\", 1); }", "D_SYNTAX",
     "in action list: format conversion #1 uses unsupported positional format (%n$)", 16},
    {"BEGIN { printf(\"%-%\"); }", "D_SYNTAX",
     "in action list: format conversion #1 cannot be combined with other format flags: %%", 16},
    {"BEGIN { printf(\"%-\"); }", "D_SYNTAX",
     "in action list: format conversion #1 name expected before end of format string", 16},
    {"BEGIN { printa(); }", "D_PRINTA_PROTO",
     "in action list: printa( ) prototype mismatch: 0 args passed, 1 expected", 9},
    {"BEGIN { printa(1); }", "D_PRINTA_AGGARG",
     "in action list: printa( ) argument #1 is incompatible with prototype:\n\tprototype: "
     "aggregation\n\t argument: int",
     16},
    {"BEGIN { printa(@a); }", "D_PRINTA_AGGBAD", "in action list: undefined aggregation: @a", 16},
    {"BEGIN { @a[1] = count(); @b[1, 2] = count(); printa(@a, @b); }", "D_PRINTA_AGGKEY",
     "in action list: printa( ): @a and @b do not have matching key signatures: @a has 1 key, @b "
     "has 2 keys",
     57},
    {"BEGIN { @a[1] = count(); @b[\"x\"] = count(); printa(@a, @b); }", "D_PRINTA_AGGPROTO",
     "in action list: printa( ): @b[ ] key #1 is incompatible with @a:\n       @a key #1: int\n"
     "       @b key #1: string",
     56},
    {"BEGIN { @a[1] = count(); printa(\"%d %d %@d\", @a); }", "D_PRINTF_ARG_PROTO",
     "in action list: printa( ) prototype mismatch: conversion #2 (%d) is missing a corresponding "
     "value argument",
     33},
    // aggregations
    {"BEGIN { @a; }", "D_AGG_NULL", "in action list: expression has null effect: @a", 9},
    {"BEGIN { @a = 1; }", "D_AGG_FUNC",
     "in action list: @a must be assigned the result of an aggregating function", 9},
    {"BEGIN { @a = count();\n@a = sum(1); }", "D_AGG_REDEF",
     "in action list: aggregation redefined: @a\n\t current: @a = sum( )\n\tprevious: @a = count( "
     ") : line 1",
     1},
    {"BEGIN { @a[1][2] = count(); }", "D_AGG_MDIM",
     "in action list: improper attempt to reference @a as a multi-dimensional array", 9},
    {"BEGIN { @a = sum(\"x\"); }", "D_AGG_SCALAR",
     "in action list: sum( ) argument #1 must be of scalar type", 18},
    {"BEGIN { @a = count(1); }", "D_PROTO_LEN",
     "in action list: count( ) prototype mismatch: 1 arg passed, 0 expected", 14},
    {"BEGIN { @a = sum(); }", "D_PROTO_LEN",
     "in action list: sum( ) prototype mismatch: 0 args passed, 1 expected", 14},
    {"BEGIN { @a = quantize(1, 2, 3); }", "D_PROTO_LEN",
     "in action list: quantize( ) prototype mismatch: 3 args passed, at most 2 expected", 14},
    {"BEGIN { @a = quantize(1, \"x\"); }", "D_PROTO_ARG",
     "in action list: quantize( ) increment value (argument #1) must be of scalar type", 26},
    {"BEGIN { @a[1] = count(); @a[1, 2] = count(); }", "D_PROTO_LEN",
     "in action list: @a[ ] prototype mismatch: 2 keys passed, 1 expected", 26},
    {"BEGIN { @a[\"x\"] = count(); @a[1] = count(); }", "D_PROTO_ARG",
     "in action list: @a[ ] key #1 is incompatible with prototype:\n\tprototype: string\n\t      "
     "key: int",
     31},
    {"BEGIN { @a[(void)1] = count(); }", "D_KEY_TYPE",
     "in action list: void expression may not be used as aggregation index: key #1", 12},
    {"BEGIN { x = @a; }", "D_OP_DYN",
     "in action list: operator = operands cannot be of dynamic type", 9},
    {"BEGIN { @a + 1; }", "D_OP_DYN",
     "in action list: operator + operands cannot be of dynamic type", 9},
    {"BEGIN { @ = lquantize(1, pid, 9); }", "D_LQUANT_BASETYPE",
     "in action list: lquantize( ) argument #1 must be an integer constant", 26},
    {"BEGIN { @ = lquantize(1, 4294967296, 9); }", "D_LQUANT_BASEVAL",
     "in action list: lquantize( ) argument #1 must be a 32-bit quantity", 26},
    {"BEGIN { @ = lquantize(1, 0, pid); }", "D_LQUANT_LIMTYPE",
     "in action list: lquantize( ) argument #2 must be an integer constant", 29},
    {"BEGIN { @ = lquantize(1, 0, 4294967296); }", "D_LQUANT_LIMVAL",
     "in action list: lquantize( ) argument #2 must be a 32-bit quantity", 29},
    {"BEGIN { @ = lquantize(1, 5, 5); }", "D_LQUANT_MISMATCH",
     "in action list: lquantize( ) base (argument #1) must be less than limit (argument #2)", 13},
    {"BEGIN { @ = lquantize(1, 0, 9, 0); }", "D_LQUANT_STEPTYPE",
     "in action list: lquantize( ) argument #3 must be a non-zero positive integer constant", 32},
    {"BEGIN { @ = lquantize(1, 0, 9, 65536); }", "D_LQUANT_STEPVAL",
     "in action list: lquantize( ) argument #3 must be a 16-bit quantity", 32},
    {"BEGIN { @ = lquantize(1, 0, 9, 10); }", "D_LQUANT_STEPLARGE",
     "in action list: lquantize( ) step (argument #3) too large: must have at least one "
     "quantization level",
     13},
    {"BEGIN { @ = lquantize(1, 0, 65536, 1); }", "D_LQUANT_STEPSMALL",
     "in action list: lquantize( ) step (argument #3) too small: number of quantization levels "
     "must be a 16-bit quantity",
     13},
    {"BEGIN { @ = lquantize(1, 0, 9); @ = lquantize(1, 1, 9); }", "D_LQUANT_MATCHBASE",
     "in action list: lquantize( ) base (argument #1) doesn't match previous declaration: expected "
     "0, found 1",
     37},
    {"BEGIN { @ = lquantize(1, 0, 9); @ = lquantize(1, 0, 8); }", "D_LQUANT_MATCHLIM",
     "in action list: lquantize( ) limit (argument #2) doesn't match previous declaration: "
     "expected 9, found 8",
     37},
    {"BEGIN { @ = lquantize(1, 0, 9); @ = lquantize(1, 0, 9, 3); }", "D_LQUANT_MATCHSTEP",
     "in action list: lquantize( ) step (argument #3) doesn't match previous declaration: expected "
     "1, found 3",
     37},
    {"BEGIN { @ = llquantize(1, pid, 0, 6, 10); }", "D_LLQUANT_FACTORTYPE",
     "in action list: llquantize( ) argument #1 (factor) must be an integer constant", 27},
    {"BEGIN { @ = llquantize(1, 65536, 0, 6, 10); }", "D_LLQUANT_FACTORVAL",
     "in action list: llquantize( ) argument #1 (factor) must be an unsigned 16-bit quantity", 27},
    {"BEGIN { @ = llquantize(1, 10, -1, 6, 10); }", "D_LLQUANT_LOWVAL",
     "in action list: llquantize( ) argument #2 (low magnitude) must be an unsigned 16-bit "
     "quantity",
     31},
    {"BEGIN { @ = llquantize(1, 1, 0, 6, 10); }", "D_LLQUANT_FACTORSMALL",
     "in action list: llquantize( ) factor (argument #1) must be two or more", 13},
    {"BEGIN { @ = llquantize(1, 10, 6, 6, 10); }", "D_LLQUANT_MAGRANGE",
     "in action list: llquantize( ) high magnitude (argument #3) must be greater than low "
     "magnitude (argument #2)",
     13},
    {"BEGIN { @ = llquantize(1, 10, 0, 6, 5); }", "D_LLQUANT_FACTORNSTEPS",
     "in action list: llquantize( ) factor (argument #1) must be less than or equal to the number "
     "of linear steps per magnitude (argument #4)",
     13},
    {"BEGIN { @ = llquantize(1, 10, 0, 6, 15); }", "D_LLQUANT_FACTOREVEN",
     "in action list: llquantize( ) factor (argument #1) must evenly divide the number of steps "
     "per magnitude (argument #4), and the number of steps per magnitude must evenly divide a "
     "power of the factor",
     13},
    {"BEGIN { @ = llquantize(1, 10, 0, 18, 10); }", "D_LLQUANT_MAGTOOBIG",
     "in action list: llquantize( ) factor (10) raised to power of high magnitude (18) plus 1 "
     "overflows 64-bits",
     13},
    {"BEGIN { @ = llquantize(1, 10, 0, 6, 10); @ = llquantize(1, 10, 0, 5, 10); }",
     "D_LLQUANT_HIGHMATCH",
     "in action list: llquantize( ) high magnitude (argument #3) doesn't match previous "
     "declaration: expected 6, found 5",
     46},
    {"BEGIN { clear(); }", "D_CLEAR_PROTO",
     "in action list: clear( ) prototype mismatch: 0 args passed, 1 expected", 9},
    {"BEGIN { clear(1); }", "D_CLEAR_AGGARG",
     "in action list: clear( ) argument #1 is incompatible with prototype:\n\tprototype: "
     "aggregation\n\t argument: int",
     15},
    {"BEGIN { clear(@a); }", "D_CLEAR_AGGBAD", "in action list: undefined aggregation: @a", 15},
    {"BEGIN { normalize(@a); }", "D_NORMALIZE_PROTO",
     "in action list: normalize( ) prototype mismatch: 1 args passed, 2 expected", 9},
    {"BEGIN { denormalize(1); }", "D_NORMALIZE_AGGARG",
     "in action list: denormalize( ) argument #1 is incompatible with prototype:\n\tprototype: "
     "aggregation\n\t argument: int",
     21},
    {"BEGIN { normalize(@a, 1); }", "D_NORMALIZE_AGGBAD",
     "in action list: undefined aggregation: @a", 19},
    {"BEGIN { @a = count(); normalize(@a, \"x\"); }", "D_NORMALIZE_SCALAR",
     "in action list: normalize( ) argument #2 must be of scalar type", 37},
    {"BEGIN { trunc(); }", "D_TRUNC_PROTO",
     "in action list: trunc( ) prototype mismatch: 0 args passed, at least 1 expected", 9},
    {"BEGIN { trunc(1); }", "D_TRUNC_AGGARG",
     "in action list: trunc( ) argument #1 is incompatible with prototype:\n\tprototype: "
     "aggregation\n\t argument: int",
     15},
    {"BEGIN { trunc(@a); }", "D_TRUNC_AGGBAD", "in action list: undefined aggregation: @a", 15},
    {"BEGIN { @a = count(); trunc(@a, \"x\"); }", "D_TRUNC_SCALAR",
     "in action list: trunc( ) argument #2 must be of scalar type", 33},
    // control lines
    {"#error no luck\nBEGIN {}", "D_PRAGERR", "#error: no luck", 1},
    {"#nothing\nBEGIN {}", "D_PRAGCTL_INVAL", "invalid control directive: #nothing", 1},
    {"#pragma D nothing x\nBEGIN {}", "D_PRAGMA_INVAL", "invalid D pragma: nothing", 1},
    {"#pragma D option\nBEGIN {}", "D_PRAGMA_MALFORM", "malformed #pragma option <option>=<val>",
     1},
    {"#pragma D option quiet extra\nBEGIN {}", "D_PRAGMA_MALFORM",
     "superfluous arguments specified for #pragma option", 1},
    {"#line x\nBEGIN {}", "D_PRAGMA_MALFORM", "malformed #line <line> [ [\"file\"] state ]", 1},
    // registers
    {"BEGIN { pid+(pid+(pid+(pid+(pid+(pid+(pid+pid)))))); }", "D_NOREG",
     "in action list: Insufficient registers to generate code", 43},
};

TEST(DLanguage, RefusesWithTagTextAndPlace) {
  for (const Row& row : kCommandLine) {
    Compiled program(row.program);
    EXPECT_FALSE(program.ok) << row.program;
    EXPECT_EQ(program.tag(), row.tag) << row.program;
    EXPECT_EQ(program.message(), row.message) << row.program;
    EXPECT_EQ(program.error.where.column, row.column) << row.program;
    EXPECT_TRUE(program.error.where.file.empty());
    EXPECT_GE(program.error.where.line, 1U);
    EXPECT_GE(program.error.where.length, 1U);
  }
}

TEST(DLanguage, NamesTheLine_WhenAFileIsCompiled) {
  // REQ: DLANG-23 DLANG-08
  struct FileRow {
    const char* program;
    const char* tag;
    const char* message;
    std::uint32_t line;  // where the text really is
  };
  constexpr FileRow kRows[] = {
      {"BEGIN\n{\n\ttrace(x);\n}\n", "D_IDENT_UNDEF",
       "line 3: failed to resolve x: Unknown variable name", 3},
      {"BEGIN\n", "D_SYNTAX",
       "line 1: expected predicate and/or actions following probe description", 1},
      {"BEGIN {}\n\nnothing\n{}\n", "D_PDESC_ZERO",
       "line 3: probe description :::nothing does not match any probes", 3},
      {"#!/usr/sbin/dtrace -s\nBEGIN { trace(1 }\n", "D_SYNTAX", "line 2: syntax error near \"}\"",
       2},
      {"# 100 \"other.d\"\nBEGIN { pid = 1; }\n", "D_OP_WRITE",
       "line 100: operator = can only be applied to a writable variable", 2},
      {"#line 7\nBEGIN /x/ {}\n", "D_IDENT_UNDEF",
       "line 7: failed to resolve x: Unknown variable name", 2},
      {"/* one\n two */ BEGIN { ; }\nEND { exit(\"a\"); }\n", "D_PROTO_ARG",
       "line 3: exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t "
       "argument: string",
       3},
  };
  for (const FileRow& row : kRows) {
    const Compiled program(row.program, "script.d");
    EXPECT_EQ(program.tag(), row.tag) << row.program;
    EXPECT_EQ(program.message(), row.message) << row.program;
    EXPECT_EQ(program.error.where.line, row.line) << row.program;
    EXPECT_EQ(program.error.where.file, "script.d");
  }
}

// The text with each $ replaced.
std::string filled(const std::string& text, const std::string& with) {
  std::string out;
  for (const char c : text) out += c == '$' ? with : std::string(1, c);
  return out;
}

TEST(DLanguage, AnAssignmentToAnAggregationIsTheAggregation) {
  // REQ: DLANG-38
  const struct {
    const char* program;
    const char* tag;
    const char* message;  // behind "in action list: "
  } kRows[] = {
      {"BEGIN { x = $; }", "D_OP_DYN", "operator = operands cannot be of dynamic type"},
      {"BEGIN { x += $; }", "D_OP_DYN", "operator += operands cannot be of dynamic type"},
      {"BEGIN { $ += 1; }", "D_OP_DYN", "operator += operands cannot be of dynamic type"},
      {"BEGIN { x = 1 + $; }", "D_OP_DYN", "operator + operands cannot be of dynamic type"},
      {"BEGIN { x = $ < 1; }", "D_OP_DYN", "operator < operands cannot be of dynamic type"},
      {"BEGIN { x = 1 && $; }", "D_OP_DYN", "operator && operands cannot be of dynamic type"},
      {"BEGIN { 1, $; }", "D_OP_DYN", "operator , operands cannot be of dynamic type"},
      {"BEGIN { x = -$; }", "D_OP_DYN", "operator - operands cannot be of dynamic type"},
      {"BEGIN { x = *$; }", "D_OP_DYN", "operator * operands cannot be of dynamic type"},
      {"BEGIN { x = $++; }", "D_OP_DYN", "operator ++ operands cannot be of dynamic type"},
      {"BEGIN { x = $->y; }", "D_OP_DYN", "operator -> operands cannot be of dynamic type"},
      {"BEGIN { x = $.y; }", "D_OP_DYN", "operator . operands cannot be of dynamic type"},
      {"BEGIN { x = &$; }", "D_ADDROF_VAR", "cannot take address of dynamic variable"},
      {"BEGIN { x = sizeof $; }", "D_SIZEOF_TYPE",
       "cannot apply sizeof to an operand of unknown size"},
      {"BEGIN { x = (int)$; }", "D_CAST_INVAL",
       "invalid cast expression: \"aggregation\" to \"int\""},
      {"BEGIN { x = $ ? 1 : 2; }", "D_OP_DYN", "operator ?: operands cannot be of dynamic type"},
      {"BEGIN { x = 1 ? $ : 2; }", "D_OP_DYN", "operator ?: operands cannot be of dynamic type"},
      {"BEGIN { x = 1 ? 2 : $; }", "D_OP_DYN", "operator ?: operands cannot be of dynamic type"},
      {"BEGIN { trace($); }", "D_TRACE_AGG", "trace( ) may not be applied to an aggregation"},
      {"BEGIN { print($); }", "D_PRINT_AGG",
       "print( ) may not be applied to an aggregation -- did you mean printa()?"},
      {"BEGIN { printf(\"%d\", $); }", "D_PRINTF_ARG_TYPE",
       "printf( ) argument #2 is incompatible with conversion #1 prototype:\n\tconversion: %d\n\t "
       "prototype: char, short, int, long, or long long\n\t  argument: aggregation"},
      {"BEGIN { x[$] = 1; }", "D_KEY_TYPE",
       "aggregation expression may not be used as array index: key #1"},
      {"BEGIN { @k[1, $] = count(); }", "D_KEY_TYPE",
       "dynamic expression may not be used as aggregation index: key #2"},
      {"BEGIN { @k = sum($); }", "D_AGG_SCALAR", "sum( ) argument #1 must be of scalar type"},
      {"BEGIN { @k = $; }", "D_AGG_FUNC",
       "@k must be assigned the result of an aggregating function"},
      {"BEGIN { exit($); }", "D_PROTO_ARG",
       "exit( ) argument #1 is incompatible with prototype:\n\tprototype: int\n\t argument: "
       "aggregation"},
      {"BEGIN { clear($); }", "D_CLEAR_AGGBAD", "undefined aggregation: @a"},
      {"BEGIN { printa($); }", "D_PRINTA_AGGBAD", "undefined aggregation: @a"},
  };
  for (const auto& row : kRows) {
    for (const char* aggregation : {"@a", "@a[1, 2]", "(@a = count())", "(@a[1] = sum(2))"}) {
      const Compiled program(filled(row.program, aggregation));
      EXPECT_EQ(program.tag(), row.tag) << row.program << " of " << aggregation;
      EXPECT_EQ(program.message(), std::string("in action list: ") + row.message)
          << row.program << " of " << aggregation;
    }
  }
  for (const char* aggregation : {"@a", "(@a = count())"}) {
    const Compiled program(filled("BEGIN /$/ { trace(1); }", aggregation));
    EXPECT_EQ(program.tag(), "D_PRED_SCALAR");
    EXPECT_EQ(program.message(), "in predicate: predicate result must be of scalar type");
    EXPECT_EQ(Compiled(filled("inline int x = $; BEGIN {}", aggregation)).message(),
              "inline x definition uses incompatible types: \"int\" = \"aggregation\"");
    EXPECT_EQ(Compiled(filled("BEGIN { if ($) trace(1); }", aggregation)).tag(), "D_OP_DYN");
    EXPECT_EQ(Compiled(filled("BEGIN { @a = count(); printa($); clear($); }", aggregation)).tag(),
              "");
  }
  // What cannot be assigned is said first.
  EXPECT_EQ(Compiled("BEGIN { x = (@a = 5); }").tag(), "D_AGG_FUNC");
  EXPECT_EQ(Compiled("BEGIN { (@a = count()) = 1; }").tag(), "D_OP_DYN");
  EXPECT_EQ(Compiled("BEGIN { x = (@a = count())[1]; }").message(),
            "in action list: operator [ operands cannot be of dynamic type");
  EXPECT_EQ(Compiled("int x[(@a = count())]; BEGIN {}").tag(), "D_DECL_ARRSUB");
  // A statement of its own, in parentheses or not.
  EXPECT_EQ(Compiled("BEGIN { (@a = count()); printa(@a); }").tag(), "");
}

TEST(DLanguage, OffersNearNames) {
  EXPECT_EQ(Compiled("BEGIN { trace(probefnc); }").error.near_names.at(0), "probefunc");
  EXPECT_EQ(Compiled("BEGIN { strlne(\"a\"); }").error.near_names.at(0), "strlen");
  EXPECT_EQ(Compiled("dtmalloc::tmp:malloc {}").error.near_names.at(0), "temp");
  EXPECT_EQ(Compiled("BEGIN { ((struct malloc_type *)arg0)->ks_shortdec; }").error.near_names.at(0),
            "ks_shortdesc");
  EXPECT_EQ(Compiled("BEGIN { @traffic = count(); printa(@trafic); }").error.near_names.at(0),
            "traffic");
}

TEST(DLanguage, ChecksOnlyTheLastArgument) {
  // REQ: DLANG-09
  Compiled program("BEGIN { trace($1); }");
  program.input.arguments = {"dtrace", "1", "two"};
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_MACRO_UNUSED");
  EXPECT_EQ(program.message(), "extraneous argument 'two' ($2 is not referenced)");
  program.input.argref = true;
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.argref = false;
  program.input.text = "BEGIN { trace($$2); }";
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.text = "BEGIN {}\n";
  program.input.file = "x.d";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.message(), "line 2: extraneous argument 'two' ($2 is not referenced)");
  EXPECT_EQ(program.error.where.line, 1U);
  program.input.file.clear();
  // Syntax errors come before, unmatched descriptions after.
  program.input.text = "nothing { trace(1) ";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_SYNTAX");
  program.input.text = "nothing { }";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_MACRO_UNUSED");
}

TEST(DLanguage, RefusesOptionsWithTheirReason) {
  // REQ: DLANG-08
  Compiled program("BEGIN {}");
  program.input.set_option = [](std::string_view name, std::string_view value) -> std::string {
    if (name == "quiet" && value.data() == nullptr) return "";
    return name == "bufsize" ? "Invalid value for specified option" : "Invalid option name";
  };
  program.input.text = "#pragma D option quiet\nBEGIN {}";
  EXPECT_TRUE(program.compile()) << program.message();
  program.input.text = "#pragma D option bufsize=x\nBEGIN {}";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.tag(), "D_PRAGMA_OPTSET");
  EXPECT_EQ(program.message(),
            "failed to set option 'bufsize' to 'x': Invalid value for specified option");
  program.input.text = "#pragma D option nothing\nBEGIN {}";
  EXPECT_FALSE(program.compile());
  EXPECT_EQ(program.message(), "failed to set option 'nothing': Invalid option name");
}

}  // namespace
}  // namespace dtmalloc::dtrace
