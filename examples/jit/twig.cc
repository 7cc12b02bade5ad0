// SPDX-License-Identifier: MIT
/*
 * twig FILE: compiles a program by copying stencils (stencils.c, tables.py, build), publishes it, and calls its start().
 *
 *	program   = { "(" "fn" NAME "(" { NAME } ")" { statement } ")" }
 *	statement = "(" "let" NAME value ")" | "(" "set" NAME value ")" | "(" "return" value ")" | "(" "do" { statement } ")"
 *	          | "(" "if" value statement { statement } ")" | "(" "while" value { statement } ")" | value
 *	value     = INTEGER | NAME | "(" OPERATOR value value ")" | "(" NAME { value } ")"
 *	OPERATOR  = "+" | "-" | "*" | "/" | "%" | "=" | "!=" | "<" | "<=" | ">" | ">="
 *
 * Values are integers of 64 bits, which wrap around. The name of a function is its number. A function that the program
 * does not have is one of C++, twig_NAME: print(VALUE), throw(VALUE), and try(FUNCTION, VALUE), which returns what
 * the function returns or throws. The newest value is in a register, those that are needed later are in slots of the frame.
 */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fathom/jit.h>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

enum hole_name { HOLE_CONTINUE, HOLE_TARGET, HOLE_CALLEE, HOLE_SLOT, HOLE_VALUE, HOLE_HOST, HOLES };
// An address of 64 bits, one of 32 bits, and 32 bits that are counted from the hole on.
enum hole_kind { ADDRESS, ABSOLUTE, RELATIVE };

struct hole {
	uint32_t offset;
	hole_kind kind;
	hole_name name;
	int more;
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
	size_t n_arguments;
	size_t offset; // of its copy, from the beginning of the function
};

struct function {
	std::string name;
	size_t n_parameters = 0, n_slots = 1, size = 0; // A slot at least, so that calls within each other come to an end.
	std::vector<operation> operations;
	uint8_t *code = nullptr, *entry = nullptr; // they differ where there is a shim
};

static std::string file;
static std::vector<function> functions;

[[noreturn]] static void fail(unsigned line, const std::string &what)
{
	throw std::runtime_error(file + ":" + std::to_string(line) + ": " + what);
}

// Text to operations -------------------------------------------------------------------------------

static const char *at;
static unsigned line = 1, on;              // the lines where the token ends and begins
static std::string token;                  // empty at the end of the text
static std::vector<std::string> variables; // that can be seen, by slot; nameless ones are values that are needed later

static std::string next()
{
	const std::string last = token;
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

static operation &emit(int stencil, unsigned line, hole_name hole = HOLE_CONTINUE, uint64_t value = 0)
{
	functions.back().operations.push_back({ stencil, line, {}, "", 0, 0 });
	functions.back().operations.back().holes[hole] = value;
	return functions.back().operations.back();
}

// Keeps the newest value in a new slot; returns which.
static size_t keep(unsigned line, const std::string &name = "")
{
	variables.push_back(name);
	functions.back().n_slots = std::max(functions.back().n_slots, variables.size());
	emit(TWIG_STORE, line, HOLE_SLOT, 8 * (variables.size() - 1));
	return variables.size() - 1;
}

// Returns the slot of the variable, or that behind all.
static size_t find(const std::string &name)
{
	size_t slot = variables.size();
	for (size_t i = 0; i < variables.size(); i++)
		slot = variables[i] == name ? i : slot;
	return slot;
}

static void parse_value();

static void parse_operator(int stencil, unsigned line)
{
	const size_t before = variables.size();
	size_t left = find(token);
	if (left < before) {
		next();
	} else {
		parse_value();
		left = keep(line);
	}
	parse_value();
	emit(stencil, line, HOLE_SLOT, 8 * left);
	variables.resize(before);
	expect(")");
}

// Behind "(": an operator and its values, or a function and its arguments, the first slots of its frame.
static void parse_list(const std::string &head, unsigned line)
{
	static const std::map<std::string, int> operators = {
		{ "+", TWIG_ADD },   { "-", TWIG_SUBTRACT }, { "*", TWIG_MULTIPLY }, { "/", TWIG_DIVIDE },     { "%", TWIG_REMAINDER },
		{ "=", TWIG_EQUAL }, { "!=", TWIG_UNEQUAL }, { "<", TWIG_LESS },     { "<=", TWIG_LESS_EQUAL }, { ">", TWIG_GREATER },
		{ ">=", TWIG_GREATER_EQUAL }
	};
	const size_t before = variables.size();
	if (operators.count(head))
		return parse_operator(operators.at(head), line);
	for (; !accept(")"); keep(line))
		parse_value();
	operation &o = emit(TWIG_CALL, line, HOLE_SLOT, 8 * before);
	o.name = head;
	o.n_arguments = variables.size() - before;
	variables.resize(before);
}

static void parse_value()
{
	const unsigned line = on;
	const std::string word = next();
	char *end;
	errno = 0;
	const long number = strtol(word.c_str(), &end, 10);
	if (word == "(")
		return parse_list(next(), line);
	if (word.empty() || word == ")" || errno)
		fail(line, "expected a value, not '" + word + "'");
	if (find(word) < variables.size())
		emit(TWIG_LOAD, line, HOLE_SLOT, 8 * find(word));
	else
		emit(TWIG_NUMBER, line, HOLE_VALUE, (uint64_t)number).name = *end ? word : "";
}

static void parse_statement();

// Up to a ")", which ends a list. Variables of a block go with it. Returns the line of its end.
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

static void parse_if(unsigned line)
{
	std::vector<operation> &o = functions.back().operations;
	parse_value();
	emit(TWIG_UNLESS, line);
	const size_t test = o.size() - 1;
	parse_statement();
	emit(TWIG_JUMP, on);
	const size_t over = o.size() - 1;
	o[test].holes[HOLE_TARGET] = o.size();
	(void)parse_block();
	o[over].holes[HOLE_TARGET] = o.size();
}

static void parse_while(unsigned line)
{
	std::vector<operation> &o = functions.back().operations;
	const size_t start = o.size();
	parse_value();
	emit(TWIG_UNLESS, line);
	const size_t test = o.size() - 1;
	emit(TWIG_JUMP, parse_block(), HOLE_TARGET, start);
	o[test].holes[HOLE_TARGET] = o.size();
}

static void parse_statement()
{
	const unsigned line = on;
	if (token != "(")
		return parse_value();
	next();
	const std::string head = next();
	if (head == "let" || head == "set") {
		const std::string name = next();
		parse_value();
		if (head == "let")
			keep(line, name);
		else if (find(name) < variables.size())
			emit(TWIG_STORE, line, HOLE_SLOT, 8 * find(name));
		else
			fail(line, "no variable is called '" + name + "'");
		return expect(")");
	}
	if (head == "if")
		return parse_if(line);
	if (head == "while")
		return parse_while(line);
	if (head == "do")
		return (void)parse_block();
	if (head != "return")
		return parse_list(head, line);
	parse_value();
	emit(TWIG_LEAVE, line);
	expect(")");
}

static void parse_function()
{
	const unsigned line = on;
	expect("(");
	expect("fn");
	functions.emplace_back();
	functions.back().name = next();
	variables.clear();
	for (expect("("); !accept(")");)
		variables.push_back(next());
	functions.back().n_parameters = variables.size();
	variables.resize(std::max<size_t>(variables.size(), 1));
	functions.back().n_slots = variables.size();
	emit(TWIG_ENTER, line);
	const unsigned end = parse_block();
	emit(TWIG_NUMBER, end);
	emit(TWIG_LEAVE, end);
}

// Operations to code -------------------------------------------------------------------------------

enum { GAP = 128 /* perf puts call frame information behind each function */, PAGE = 4096 };
static long slots[1 << 15], *last_frame;
static uint8_t *memory; // functions, then on pages of their own their shims
static size_t code_size, memory_size;

// What enter, divide and remainder call when they cannot go on.
static long give_up(long *frame)
{
	throw std::runtime_error(frame > last_frame ? "too many calls within each other" : "division by zero");
}

// Finds what @o names: a function of the program or, if it is called, one of C++.
static void resolve(operation &o)
{
	o.holes[HOLE_HOST] = (uintptr_t)give_up;
	if (o.stencil == TWIG_ENTER)
		o.holes[HOLE_VALUE] = (uintptr_t)last_frame;
	if (o.name.empty())
		return;
	for (size_t i = 0; i < functions.size(); i++)
		if (functions[i].name == o.name) {
			o.holes[o.stencil == TWIG_CALL ? HOLE_CALLEE : HOLE_VALUE] = i;
			if (o.stencil == TWIG_CALL && o.n_arguments != functions[i].n_parameters)
				fail(o.line, "'" + o.name + "' has " + std::to_string(functions[i].n_parameters) + " parameters");
			return;
		}
	o.holes[HOLE_HOST] = (uintptr_t)dlsym(RTLD_DEFAULT, ("twig_" + o.name).c_str());
	if (!o.holes[HOLE_HOST] || o.stencil != TWIG_CALL)
		fail(o.line, "nothing is called '" + o.name + "'");
	o.stencil = TWIG_HOST;
}

// Finds a place for each function and each shim.
static void lay_out()
{
	size_t used = code_size = 0;
	for (function &f : functions) {
		f.code = memory + code_size;
		f.size = 0;
		for (operation &o : f.operations) {
			o.offset = f.size;
			f.size += stencils[o.stencil].code.size();
		}
		code_size += (f.size + GAP) / 16 * 16;
	}
	code_size = (code_size + PAGE - 1) / PAGE * PAGE;
	for (function &f : functions)
		f.entry = has_shim ? memory + code_size + GAP * used++ : f.code;
	memory_size = code_size + (GAP * used + PAGE - 1) / PAGE * PAGE;
}

// Copies @s to @to and fills its holes.
static void copy(const stencil &s, uint8_t *to, const uint64_t holes[HOLES])
{
	memcpy(to, s.code.data(), s.code.size());
	for (const hole &h : s.holes) {
		const uint64_t from = h.kind == RELATIVE ? (uintptr_t)to + h.offset : 0, value = holes[h.name] + (uint64_t)h.more - from;
		memcpy(to + h.offset, &value, h.kind == ADDRESS ? 8 : 4);
	}
}

static void compile()
{
	last_frame = slots + sizeof slots / sizeof *slots;
	for (const function &f : functions)
		last_frame -= f.n_slots;
	for (function &f : functions)
		for (operation &o : f.operations)
			resolve(o);
	lay_out();
	memory = (uint8_t *)mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || last_frame < slots)
		throw std::runtime_error("no memory for so much code or so many variables");
	lay_out();
	for (const function &f : functions) {
		for (operation o : f.operations) {
			o.holes[HOLE_CONTINUE] = (uintptr_t)f.code + o.offset + stencils[o.stencil].code.size();
			o.holes[HOLE_TARGET] = (uintptr_t)f.code + f.operations[o.holes[HOLE_TARGET]].offset;
			o.holes[HOLE_CALLEE] = (uintptr_t)functions[o.holes[HOLE_CALLEE]].entry;
			copy(stencils[o.stencil], f.code + o.offset, o.holes);
		}
		const uint64_t shim[HOLES] = { 0, 0, (uintptr_t)f.code };
		if (f.entry != f.code)
			copy(stencils[TWIG_SHIM], f.entry, shim);
	}
	if (mprotect(memory, memory_size, PROT_READ | PROT_EXEC))
		throw std::runtime_error("memory cannot become executable");
}

// Code to debuggers, unwinders and profilers: the page to copy -------------------------------------

static void add(fathom_jit_arena *arena, const std::string &name, const uint8_t *code, size_t size,
		const std::vector<fathom_jit_line> &lines, const std::vector<fathom_jit_event> &events)
{
	const fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_EVENTS, .events = events.data(), .n_events = events.size() };
	fathom_jit_function f = { .size = sizeof f, .code = code, .code_size = size, .name = name.c_str(), .file = file.c_str() };
	fathom_errinfo info;

	f.unwind = events.empty() ? nullptr : &rule; // NULL: as the arena says
	f.lines = lines.data();
	f.n_lines = lines.size();
	if (fathom_jit_add(arena, &f, &info))
		throw std::runtime_error(info.what);
}

// Where a shim has made the frame, one rule holds for all functions; else each has its own, those of its stencils.
static void publish()
{
	const fathom_jit_unwind reserved = { .size = sizeof reserved, .kind = FATHOM_JIT_RESERVED };
	const fathom_jit_arena_options one_rule = { .size = sizeof one_rule, .unwind = &reserved };
	fathom_jit_arena *arena, *shims;
	fathom_errinfo info;

	if (fathom_jit_arena_create(memory, code_size, has_shim ? &one_rule : nullptr, &arena, &info) ||
	    fathom_jit_arena_create(memory + code_size, PAGE + memory_size - code_size, nullptr, &shims, &info))
		throw std::runtime_error(info.what);
	for (const function &f : functions) {
		std::vector<fathom_jit_line> lines;
		std::vector<fathom_jit_event> events;

		for (const operation &o : f.operations) {
			lines.push_back({ (uint32_t)o.offset, o.line, 0, 0, nullptr });
			for (fathom_jit_event e : stencils[has_shim ? TWIG_NUMBER : o.stencil].events) {
				e.offset += (uint32_t)o.offset;
				events.push_back(e);
			}
		}
		add(arena, f.name, f.code, f.size, lines, events);
		if (has_shim)
			add(shims, f.name + ".shim", f.entry, stencils[TWIG_SHIM].code.size(), { lines[0] }, stencils[TWIG_SHIM].events);
	}
}

// What C++ has for twig ----------------------------------------------------------------------------

static long call(size_t number, long *frame, size_t n_arguments)
{
	if (number >= functions.size() || functions[number].n_parameters != n_arguments)
		throw std::runtime_error("no function with so many parameters is called");
	return ((long (*)(long *, long))functions[number].entry)(frame, 0);
}

extern "C" long twig_print(long *arguments)
{
	printf("%ld\n", arguments[0]);
	return 0;
}

extern "C" long twig_throw(long *arguments)
{
	throw arguments[0];
}

extern "C" long twig_try(long *arguments)
{
	try {
		return call((size_t)arguments[0], arguments + 1, 1);
	} catch (long value) {
		return value;
	}
}

int main(int, char **argv)
{
	std::stringstream text;
	file = argv[1] ? argv[1] : "";
	text << std::ifstream(file).rdbuf();
	const std::string program = text.str();
	try {
		at = program.c_str();
		for (next(); !token.empty();)
			parse_function();
		compile();
		publish();
		for (size_t i = 0; i < functions.size(); i++)
			if (functions[i].name == "start")
				return (int)call(i, slots, 0);
		fail(1, "no function is called start");
	} catch (long value) {
		fprintf(stderr, "twig: nobody has caught %ld\n", value);
	} catch (const std::exception &e) {
		fprintf(stderr, "twig: %s\n", e.what());
	}
	return 1;
}
