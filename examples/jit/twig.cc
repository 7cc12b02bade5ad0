// SPDX-License-Identifier: MIT
/*
 * twig FILE: compiles a program by copying stencils, publishes it, and calls its start(). Grammar:
 *	program   = { "(" "fn" NAME "(" { NAME } ")" { statement } ")" }
 *	statement = "(" "let" NAME value ")" | "(" "set" NAME value ")" | "(" "return" value ")"
 *	          | "(" "if" value statement { statement } ")" | "(" "do" { statement } ")"
 *	          | "(" "while" value { statement } ")" | value
 *	value     = INTEGER | NAME | "(" OPERATOR value value ")" | "(" NAME { value } ")"
 *	OPERATOR  = "+" | "-" | "*" | "/" | "%" | "=" | "!=" | "<" | "<=" | ">" | ">="
 * Values are integers of 64 bits, which wrap around. A function's name is its number. What the
 * program does not define is C++ below: print, throw, and try, which returns what a function does,
 * or throws. The newest value is in a register, those that are needed later are in slots.
 */
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fathom/jit.h>
#include <fstream>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

enum hole_name { HOLE_CONTINUE, HOLE_TARGET, HOLE_CALLEE, HOLE_SLOT, HOLE_VALUE, HOLE_HOST, HOLES };

struct hole {
	hole_name name;
	int offset, bytes, is_relative, more; // relative: counted from the hole on
};

struct stencil {
	std::vector<uint8_t> code;
	std::vector<hole> holes;
	std::vector<fathom_jit_event> events;
};

#include "stencils.h"

struct operation {
	int stencil;
	unsigned line;
	uint64_t holes[HOLES]; // TARGET: the number of an operation, CALLEE: that of a function
	std::string name;      // of what it calls, or of a function whose number it is
	size_t n_arguments, offset; // offset: of its copy, from the beginning of the function
};

struct function {
	std::string name;
	size_t n_parameters, size;
	std::vector<operation> operations;
	uint8_t *code, *entry; // they differ where there is a shim
};

static std::string file;
static std::vector<function> functions;

[[noreturn]] static void fail(unsigned line, const std::string &what)
{
	throw std::runtime_error(file + ":" + std::to_string(line) + ": " + what);
}

// Text to operations ---------------------------------------------------------------------------

static const char *at;
static unsigned line = 1, on;              // the lines where the token ends and begins
static std::string token = " ";            // empty at the end of the text
static std::vector<operation> operations;  // of the function that is read
static std::vector<std::string> variables; // by slot; values that are needed later have no name
static size_t most_slots = 1;              // of a call of any function

// Returns the token that was the next, which is a name or a number if @is_word.
static std::string next(bool is_word = false)
{
	const std::string last = token;
	if (last.empty() || (is_word && (last == "(" || last == ")")))
		fail(on, "expected a name or a value, not '" + last + "'");
	for (; isspace((unsigned char)*at) || *at == ';'; at += *at != 0) {
		at += *at == ';' ? strcspn(at, "\n") : 0;
		line += *at == '\n';
	}
	on = line;
	token.assign(at, *at ? std::max<size_t>(strcspn(at, " \t\r\n();"), 1) : 0);
	at += token.size();
	return last;
}

static bool accept(const char *text)
{
	return token == text && !next().empty();
}

static void expect(const char *text)
{
	if (!accept(text))
		fail(on, std::string("expected ") + text + ", not '" + token + "'");
}

// Returns the operation's number.
static size_t emit(int stencil, unsigned line, hole_name hole = HOLE_CONTINUE, uint64_t value = 0,
		   const std::string &name = "")
{
	operations.push_back({ stencil, line, {}, name, 0, 0 });
	operations.back().holes[hole] = value;
	return operations.size() - 1;
}

// Keeps the newest value in a new slot; returns which.
static size_t keep(unsigned line, const std::string &name = "")
{
	variables.push_back(name);
	most_slots = std::max(most_slots, variables.size());
	emit(TWIG_STORE, line, HOLE_SLOT, 8 * (variables.size() - 1));
	return variables.size() - 1;
}

// Returns which is the last of the @names that is @name; their number: none.
static size_t find(const std::vector<std::string> &names, const std::string &name)
{
	size_t i = names.size();
	while (i && names[i - 1] != name)
		i--;
	return i ? i - 1 : names.size();
}

static void parse_value();
static void parse_statement();

// Behind "(": an operator and its values, or a function and its arguments, its first slots.
static void parse_list(const std::string &head, unsigned line)
{
	// As in stencils.c, from "add" on.
	static const std::vector<std::string> operators = { "+",  "-", "*",  "/", "%", "=",
							    "!=", "<", "<=", ">", ">=" };
	const size_t before = variables.size(), n = find(operators, head);
	if (n < operators.size()) {
		size_t left = find(variables, token);
		left < before ? (void)next() : parse_value();
		left = left < before ? left : keep(line);
		parse_value();
		emit(TWIG_ADD + (int)n, line, HOLE_SLOT, 8 * left);
		expect(")");
	} else {
		for (; !accept(")"); keep(line))
			parse_value();
		emit(TWIG_CALL, line, HOLE_SLOT, 8 * before, head);
		operations.back().n_arguments = variables.size() - before;
	}
	variables.resize(before);
}

static void parse_value()
{
	const unsigned line = on;
	char *end;
	if (accept("("))
		return parse_list(next(true), line);
	const std::string word = next(true);
	errno = 0;
	const long number = strtol(word.c_str(), &end, 10);
	if (errno)
		fail(line, "'" + word + "' is too large");
	if (find(variables, word) < variables.size())
		emit(TWIG_LOAD, line, HOLE_SLOT, 8 * find(variables, word));
	else
		emit(TWIG_NUMBER, line, HOLE_VALUE, (uint64_t)number, *end ? word : "");
}

// Up to a ")". Variables of a block go with it. Returns the line of its end.
static unsigned parse_block()
{
	const size_t n = variables.size();
	while (token != ")")
		parse_statement();
	const unsigned end = on;
	variables.resize(n);
	next();
	return end;
}

static void parse_statement()
{
	const unsigned line = on;
	if (!accept("("))
		return parse_value();
	const std::string head = next(true);
	const size_t start = operations.size();
	if (head == "if" || head == "while") {
		parse_value();
		const size_t test = emit(TWIG_UNLESS, line);
		const unsigned end = head == "if" ? (parse_statement(), on) : parse_block();
		const size_t over = emit(TWIG_JUMP, end, HOLE_TARGET, start);
		operations[test].holes[HOLE_TARGET] = operations.size();
		if (head == "while")
			return;
		(void)parse_block(); // what is done else
		operations[over].holes[HOLE_TARGET] = operations.size();
		return;
	}
	if (head == "do")
		return (void)parse_block();
	if (head != "let" && head != "set" && head != "return")
		return parse_list(head, line);
	const std::string name = head == "return" ? "" : next(true);
	parse_value();
	if (head == "return")
		emit(TWIG_LEAVE, line);
	else if (head == "let")
		keep(line, name);
	else if (find(variables, name) < variables.size())
		emit(TWIG_STORE, line, HOLE_SLOT, 8 * find(variables, name));
	else
		fail(line, "no variable is called '" + name + "'");
	expect(")");
}

static void parse_function()
{
	const unsigned line = on;
	expect("(");
	expect("fn");
	const std::string name = next(true);
	variables.clear();
	for (expect("("); !accept(")");)
		variables.push_back(next(true));
	const size_t n_parameters = variables.size();
	// Each call takes a slot, so that calls within each other come to an end.
	variables.resize(std::max<size_t>(n_parameters, 1));
	emit(TWIG_ENTER, line);
	const unsigned end = parse_block();
	emit(TWIG_NUMBER, end);
	emit(TWIG_LEAVE, end);
	functions.push_back({ name, n_parameters, 0, operations, nullptr, nullptr });
	operations.clear();
}

// Operations to code ---------------------------------------------------------------------------

enum { GAP = 128 /* perf puts call frame information behind each function */, PAGE = 4096 };
static long slots[1 << 15], *last_frame = slots + sizeof slots / sizeof *slots;
static uint8_t *memory; // functions, then on pages of their own their shims
static size_t code_size, shims_size;

// What enter, divide and remainder call when they cannot go on.
static long give_up(long *frame)
{
	throw std::runtime_error(frame > last_frame ? "too many calls" : "division by zero");
}

// Finds what @o names: a function of the program or, if it is called, one of C++.
static void resolve(operation &o)
{
	o.holes[HOLE_HOST] = (uintptr_t)give_up;
	if (o.stencil == TWIG_ENTER)
		o.holes[HOLE_VALUE] = (uintptr_t)last_frame;
	for (size_t i = 0; i < functions.size(); i++)
		if (functions[i].name == o.name) {
			o.holes[o.stencil == TWIG_CALL ? HOLE_CALLEE : HOLE_VALUE] = i;
			if (o.stencil == TWIG_CALL && o.n_arguments != functions[i].n_parameters)
				fail(o.line, "'" + o.name + "' has another number of parameters");
			return;
		}
	if (o.name.empty())
		return;
	o.holes[HOLE_HOST] = (uintptr_t)dlsym(RTLD_DEFAULT, ("twig_" + o.name).c_str());
	if (!o.holes[HOLE_HOST] || o.stencil != TWIG_CALL)
		fail(o.line, "nothing is called '" + o.name + "'");
	o.stencil = TWIG_HOST;
}

// Finds a place for each function and each shim.
static void lay_out()
{
	code_size = shims_size = 0;
	for (function &f : functions) {
		f.entry = f.code = memory + code_size;
		f.size = 0;
		for (operation &o : f.operations) {
			o.offset = f.size;
			f.size += stencils[o.stencil].code.size();
		}
		code_size += (f.size + GAP) / 16 * 16;
	}
	code_size = (code_size + PAGE - 1) / PAGE * PAGE;
	for (size_t i = 0; has_shim && i < functions.size(); i++, shims_size += GAP)
		functions[i].entry = memory + code_size + shims_size;
}

// Copies stencil @i to @to and fills its holes.
static void copy(int i, uint8_t *to, uint64_t holes[HOLES])
{
	holes[HOLE_CONTINUE] = (uintptr_t)(to + stencils[i].code.size());
	memcpy(to, stencils[i].code.data(), stencils[i].code.size());
	for (const hole &h : stencils[i].holes) {
		const uint64_t from = h.is_relative ? (uintptr_t)(to + h.offset) : 0;
		const uint64_t value = holes[h.name] + (uint64_t)h.more - from;
		memcpy(to + h.offset, &value, (size_t)h.bytes);
	}
}

static void compile()
{
	last_frame -= most_slots;
	for (function &f : functions)
		for (operation &o : f.operations)
			resolve(o);
	lay_out();
	memory = (uint8_t *)mmap(nullptr, code_size + shims_size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || last_frame < slots)
		throw std::runtime_error("no memory for so much code or so many variables");
	lay_out();
	for (const function &f : functions) {
		for (operation o : f.operations) {
			uint64_t *const h = o.holes;
			h[HOLE_TARGET] = (uintptr_t)f.code + f.operations[h[HOLE_TARGET]].offset;
			h[HOLE_CALLEE] = (uintptr_t)functions[h[HOLE_CALLEE]].entry;
			copy(o.stencil, f.code + o.offset, h);
		}
		uint64_t shim[HOLES] = { 0, 0, (uintptr_t)f.code };
		if (has_shim)
			copy(TWIG_SHIM, f.entry, shim);
	}
	if (mprotect(memory, code_size + shims_size, PROT_READ | PROT_EXEC))
		throw std::runtime_error("memory cannot become executable");
}

// Code to debuggers, unwinders and profilers: the page to copy ---------------------------------

static fathom_jit_arena *arena_of(const void *code, size_t size, const fathom_jit_unwind *rule)
{
	const fathom_jit_arena_options options = { .size = sizeof options, .unwind = rule };
	fathom_jit_arena *arena;
	fathom_errinfo info;
	if (fathom_jit_arena_create(code, size, &options, &arena, &info))
		throw std::runtime_error(info.what);
	return arena;
}

// A function without @rule has that of its arena.
static void add(fathom_jit_arena *arena, const std::string &name, const uint8_t *code, size_t size,
		const fathom_jit_unwind *rule, const std::vector<fathom_jit_line> &lines)
{
	fathom_jit_function f = { .size = sizeof f, .code = code, .code_size = size };
	fathom_errinfo info;
	f.name = name.c_str();
	f.unwind = rule;
	f.file = file.c_str();
	f.lines = lines.data();
	f.n_lines = lines.size();
	if (fathom_jit_add(arena, &f, &info))
		throw std::runtime_error(info.what);
}

// With shims one rule holds for all code but theirs; else a function has those of its stencils.
static void publish()
{
	fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_RESERVED };
	fathom_jit_arena *arena = arena_of(memory, code_size, has_shim ? &rule : nullptr);
	auto shims = has_shim ? arena_of(memory + code_size, shims_size, nullptr) : nullptr;
	rule.kind = FATHOM_JIT_EVENTS;
	for (const function &f : functions) {
		std::vector<fathom_jit_line> lines;
		std::vector<fathom_jit_event> events;
		for (const operation &o : f.operations) {
			lines.push_back({ (uint32_t)o.offset, o.line, 0, 0, nullptr });
			for (fathom_jit_event e : stencils[o.stencil].events) {
				e.offset += (uint32_t)o.offset;
				events.push_back(e);
			}
		}
		const stencil &s = stencils[TWIG_SHIM];
		rule.events = has_shim ? s.events.data() : events.data();
		rule.n_events = has_shim ? s.events.size() : events.size();
		add(arena, f.name, f.code, f.size, has_shim ? nullptr : &rule, lines);
		if (has_shim)
			add(shims, f.name + ".shim", f.entry, s.code.size(), &rule, { lines[0] });
	}
}

// What C++ has for twig ------------------------------------------------------------------------

extern "C" auto twig_entry(size_t number, size_t n_arguments)
{
	if (number >= functions.size() || functions[number].n_parameters != n_arguments)
		throw std::runtime_error("no function with so many parameters is called");
	return (long (*)(long *frame, long a))functions[number].entry;
}

extern "C" long twig_print(long *arguments)
{
	return printf("%ld\n", arguments[0]);
}

extern "C" long twig_throw(long *arguments)
{
	throw arguments[0];
}

extern "C" long twig_try(long *arguments)
{
	try {
		return twig_entry((size_t)arguments[0], 1)(arguments + 1, 0);
	} catch (long value) {
		return value;
	}
}

int main(int, char **argv)
{
	std::ifstream text(file = argv[1] ? argv[1] : "");
	const std::string program(std::istreambuf_iterator<char>(text), {});
	at = program.c_str();
	try {
		for (next(); !token.empty();)
			parse_function();
		operation start = { TWIG_CALL, line, {}, "start", 0, 0 };
		resolve(start);
		compile();
		publish();
		return (int)twig_entry(start.holes[HOLE_CALLEE], 0)(slots, 0);
	} catch (long value) {
		fprintf(stderr, "twig: nobody has caught %ld\n", value);
	} catch (const std::exception &e) {
		fprintf(stderr, "twig: %s\n", e.what());
	}
	return 1;
}
