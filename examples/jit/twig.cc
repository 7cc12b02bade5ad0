// SPDX-License-Identifier: MIT
/*
 * twig FILE: compiles a program by copying stencils (stencils.c, tables.py, build), publishes it, and calls its start().
 *
 *	program   = { "(" "fn" NAME "(" { NAME } ")" { statement } ")" }
 *	statement = "(" "let" NAME value ")" | "(" "set" NAME value ")" | "(" "return" value ")" | "(" "do" { statement } ")"
 *	          | "(" "if" value statement { statement } ")" | "(" "while" value { statement } ")" | value
 *	value     = INTEGER | NAME | "(" OPERATOR value value ")" | "(" NAME { value } ")"
 *	OPERATOR  = "+" | "-" | "*" | "/" | "%" | "=" | "!=" | "<" | "<=" | ">" | ">="
 * Values are integers of 64 bits, which wrap around. The name of a function is its number. Functions that the program does
 * not have are those of C++ below: print, throw, and try, which returns what a function returns or throws. The newest
 * value is in a register, those that are needed later are in slots of the call's frame.
 */
#include <algorithm>
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
	uint64_t holes[HOLES];      // TARGET: the number of an operation, CALLEE: that of a function
	std::string name;           // of what it calls, or of a function whose number it is
	size_t n_arguments, offset; // offset: of its copy, from the beginning of the function
};

struct function {
	std::string name;
	size_t n_parameters, size;
	std::vector<operation> operations;
	uint8_t *code, *entry; // they differ where there is a shim
};

static const bool has_shim = !stencils[TWIG_SHIM].code.empty();
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
static std::vector<operation> operations;  // of the function that is read
static std::vector<std::string> variables; // that can be seen, by slot; nameless ones are values that are needed later
static size_t most_slots;                  // of a call of any function

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

// Returns the operation's number.
static size_t emit(int stencil, unsigned line, hole_name hole = HOLE_CONTINUE, uint64_t value = 0)
{
	operations.push_back({ stencil, line, {}, "", 0, 0 });
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

// Returns the slot of the variable, or that behind all.
static size_t find(const std::string &name)
{
	const auto found = std::find(variables.rbegin(), variables.rend(), name);
	return found == variables.rend() ? variables.size() : (size_t)(variables.rend() - found - 1);
}

static void parse_value();
static void parse_statement();

// Behind "(": an operator and two values, or a function and its arguments, which are the first slots of its frame.
static void parse_list(const std::string &head, unsigned line)
{
	static const std::map<std::string, int> operators = {
		{ "+", TWIG_ADD },  { "-", TWIG_SUBTRACT },   { "*", TWIG_MULTIPLY }, { "/", TWIG_DIVIDE },        { "%", TWIG_REMAINDER },
		{ "<", TWIG_LESS }, { "<=", TWIG_LESS_EQUAL }, { ">", TWIG_GREATER }, { ">=", TWIG_GREATER_EQUAL }, { "=", TWIG_EQUAL },
		{ "!=", TWIG_UNEQUAL } };
	const size_t before = variables.size();
	if (operators.count(head)) {
		size_t left = find(token);
		left < before ? (void)next() : parse_value();
		left = left < before ? left : keep(line);
		parse_value();
		emit(operators.at(head), line, HOLE_SLOT, 8 * left);
		expect(")");
	} else {
		for (; !accept(")"); keep(line))
			parse_value();
		emit(TWIG_CALL, line, HOLE_SLOT, 8 * before);
		operations.back().name = head;
		operations.back().n_arguments = variables.size() - before;
	}
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
		operations[emit(TWIG_NUMBER, line, HOLE_VALUE, (uint64_t)number)].name = *end ? word : "";
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
	const std::string head = next();
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
	const std::string name = head == "return" ? "" : next();
	parse_value();
	if (head == "return")
		emit(TWIG_LEAVE, line);
	else if (head == "let")
		keep(line, name);
	else if (find(name) < variables.size())
		emit(TWIG_STORE, line, HOLE_SLOT, 8 * find(name));
	else
		fail(line, "no variable is called '" + name + "'");
	expect(")");
}

static void parse_function()
{
	const unsigned line = on;
	expect("(");
	expect("fn");
	const std::string name = next();
	variables.clear();
	operations.clear();
	for (expect("("); !accept(")");)
		variables.push_back(next());
	const size_t n_parameters = variables.size();
	// Each call takes a slot, so that calls within each other come to an end.
	variables.resize(std::max<size_t>(n_parameters, 1));
	most_slots = std::max(most_slots, variables.size());
	emit(TWIG_ENTER, line);
	const unsigned end = parse_block();
	emit(TWIG_NUMBER, end);
	emit(TWIG_LEAVE, end);
	functions.push_back({ name, n_parameters, 0, operations, nullptr, nullptr });
}

// Operations to code -------------------------------------------------------------------------------

enum { GAP = 128 /* perf puts call frame information behind each function */, PAGE = 4096 };
static long slots[1 << 15], *last_frame = slots + sizeof slots / sizeof *slots;
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
	for (size_t i = 0; i < functions.size(); i++)
		if (functions[i].name == o.name) {
			o.holes[o.stencil == TWIG_CALL ? HOLE_CALLEE : HOLE_VALUE] = i;
			if (o.stencil == TWIG_CALL && o.n_arguments != functions[i].n_parameters)
				fail(o.line, "'" + o.name + "' has " + std::to_string(functions[i].n_parameters) + " parameters");
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
	code_size = 0;
	for (function &f : functions) {
		f.entry = f.code = memory + code_size;
		f.size = 0;
		for (operation &o : f.operations) {
			o.offset = f.size;
			f.size += stencils[o.stencil].code.size();
		}
		code_size += (f.size + GAP) / 16 * 16;
	}
	memory_size = code_size = (code_size + PAGE - 1) / PAGE * PAGE;
	for (size_t i = 0; has_shim && i < functions.size(); i++, memory_size += GAP)
		functions[i].entry = memory + memory_size;
}

// Copies stencil @i to @to and fills its holes.
static void copy(int i, uint8_t *to, const uint64_t holes[HOLES])
{
	memcpy(to, stencils[i].code.data(), stencils[i].code.size());
	for (const hole &h : stencils[i].holes) {
		const uint64_t from = h.is_relative ? (uintptr_t)(to + h.offset) : 0, value = holes[h.name] + (uint64_t)h.more - from;
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
	memory = (uint8_t *)mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || last_frame < slots)
		throw std::runtime_error("no memory for so much code or so many variables");
	lay_out();
	for (const function &f : functions) {
		for (operation o : f.operations) {
			o.holes[HOLE_CONTINUE] = (uintptr_t)f.code + o.offset + stencils[o.stencil].code.size();
			o.holes[HOLE_TARGET] = (uintptr_t)f.code + f.operations[o.holes[HOLE_TARGET]].offset;
			o.holes[HOLE_CALLEE] = (uintptr_t)functions[o.holes[HOLE_CALLEE]].entry;
			copy(o.stencil, f.code + o.offset, o.holes);
		}
		const uint64_t shim[HOLES] = { 0, 0, (uintptr_t)f.code };
		if (has_shim)
			copy(TWIG_SHIM, f.entry, shim);
	}
	if (mprotect(memory, memory_size, PROT_READ | PROT_EXEC))
		throw std::runtime_error("memory cannot become executable");
}

// Code to debuggers, unwinders and profilers: the page to copy -------------------------------------

static void check(fathom_err err, const fathom_errinfo &info)
{
	if (err)
		throw std::runtime_error(info.what);
}

// Where shims make the frames, one rule holds for all code but theirs; else each function has the rules of its stencils.
static void publish()
{
	fathom_jit_unwind rule = { .size = sizeof rule, .kind = FATHOM_JIT_RESERVED };
	const fathom_jit_arena_options options = { .size = sizeof options, .unwind = has_shim ? &rule : nullptr };
	fathom_jit_arena *arena, *shims;
	fathom_errinfo info;
	check(fathom_jit_arena_create(memory, code_size, &options, &arena, &info), info);
	if (has_shim)
		check(fathom_jit_arena_create(memory + code_size, memory_size - code_size, nullptr, &shims, &info), info);
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
		if (has_shim)
			events = stencils[TWIG_SHIM].events; // The code has the rule of its arena.
		rule.events = events.data();
		rule.n_events = events.size();
		const std::string shim_name = f.name + ".shim";
		const fathom_jit_function code = { .size = sizeof code, .code = f.code, .code_size = f.size, .name = f.name.c_str(),
						   .unwind = has_shim ? nullptr : &rule, // NULL: the arena's
						   .file = file.c_str(), .lines = lines.data(), .n_lines = lines.size() };
		const fathom_jit_function shim = { .size = sizeof shim, .code = f.entry, .code_size = stencils[TWIG_SHIM].code.size(),
						   .name = shim_name.c_str(), .unwind = &rule, .file = file.c_str(),
						   .lines = lines.data(), .n_lines = 1 };
		check(fathom_jit_add(arena, &code, &info), info);
		if (has_shim)
			check(fathom_jit_add(shims, &shim, &info), info);
	}
}

// What C++ has for twig ----------------------------------------------------------------------------

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
	std::stringstream text;
	text << std::ifstream(file = argv[1] ? argv[1] : "").rdbuf();
	const std::string program = text.str();
	at = program.c_str();
	try {
		for (next(); !token.empty();)
			parse_function();
		compile();
		publish();
		operation start = { TWIG_CALL, line, {}, "start", 0, 0 };
		resolve(start);
		return (int)twig_entry(start.holes[HOLE_CALLEE], 0)(slots, 0);
	} catch (long value) {
		fprintf(stderr, "twig: nobody has caught %ld\n", value);
	} catch (const std::exception &e) {
		fprintf(stderr, "twig: %s\n", e.what());
	}
	return 1;
}
