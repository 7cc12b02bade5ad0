// SPDX-License-Identifier: MIT
// unwind TOOL DEPTH FRAMES THREADS: calls DEPTH functions that call each other and unwinds from the innermost, until
// FRAMES frames were found, in each of THREADS threads, and prints: milliseconds that it took, by the wall and of the
// processor for each thread, milliseconds that preparing took, MiB of peak memory, frames of one trace. With 1,000,000
// FRAMES the milliseconds are nanoseconds a frame. FRAMES 0 is the first trace after preparing, alone.
//
// TOOL: fathom, fathom-probe (which finds out the stack anew each time, by a system call), unw_backtrace and unw_step
// (libunwind), backtrace (glibc), llvm (LLVM's libunwind), frame-pointer (a bare walk: compile with frame pointers).
// All but fathom are loaded apart: libunwind has a backtrace() of its own.
#include <dlfcn.h>
#include <execinfo.h>
#include <fathom/fathom.h>
#include <pthread.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "measured.h"

namespace {

constexpr int kCap = 4096;

template <typename T> T symbol(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *found = handle ? dlsym(handle, name) : nullptr;
	if (!found) {
		fprintf(stderr, "%s: no %s\n", library, name);
		exit(3);
	}
	return reinterpret_cast<T>(found);
}

fathom *session;
fathom_self *self;
thread_local uint64_t pcs[kCap];
thread_local fathom_unwind_stack known;

size_t by_fathom()
{
	fathom_unwind_options options = {};
	fathom_unwind_result result = {};
	options.size = sizeof options;
	options.stack = &known;
	return fathom_unwind(self, &options, pcs, nullptr, kCap, &result) ? 0 : result.n;
}

size_t by_fathom_probe()
{
	fathom_unwind_options options = {};
	fathom_unwind_result result = {};
	options.size = sizeof options;
	return fathom_unwind(self, &options, pcs, nullptr, kCap, &result) ? 0 : result.n;
}

int (*unw_backtrace)(void **, int);
int (*unw_getcontext)(void *);
int (*unw_init_local)(void *, void *);
int (*unw_step)(void *);

size_t by_unw_backtrace()
{
	return static_cast<size_t>(unw_backtrace(reinterpret_cast<void **>(pcs), kCap));
}

size_t by_unw_step()
{
	alignas(16) char context[4096];
	alignas(16) char cursor[4096];
	size_t n = 0;
	(void)unw_getcontext(context);
	(void)unw_init_local(cursor, context);
	while (n < kCap && unw_step(cursor) > 0)
		n++;
	return n;
}

size_t by_backtrace()
{
	return static_cast<size_t>(backtrace(reinterpret_cast<void **>(pcs), kCap));
}

_Unwind_Reason_Code (*llvm_backtrace)(_Unwind_Trace_Fn, void *);
uintptr_t (*llvm_ip)(_Unwind_Context *);

_Unwind_Reason_Code take(_Unwind_Context *context, void *data)
{
	auto *n = static_cast<size_t *>(data);
	if (*n == kCap)
		return _URC_END_OF_STACK;
	pcs[(*n)++] = llvm_ip(context);
	return _URC_NO_REASON;
}

size_t by_llvm()
{
	size_t n = 0;
	(void)llvm_backtrace(take, &n);
	return n;
}

size_t by_frame_pointer()
{
	auto *frame = static_cast<uintptr_t *>(__builtin_frame_address(0));
	size_t n = 0;
	while (n < kCap) {
		auto *next = reinterpret_cast<uintptr_t *>(frame[0]);
		pcs[n++] = frame[1];
		// Callers of main() have none.
		if (next <= frame || reinterpret_cast<uintptr_t>(next) - reinterpret_cast<uintptr_t>(frame) > 1 << 16)
			break;
		frame = next;
	}
	return n;
}

size_t (*trace)();
size_t n_frames;
thread_local size_t n_found;
thread_local double wall, cpu;

__attribute__((noinline)) void innermost()
{
	double begin = milliseconds(CLOCK_MONOTONIC);
	double begin_cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
	n_found = trace();
	if (n_frames) {
		// What a tool keeps is kept.
		for (int i = 0; i < 3; i++)
			(void)trace();
		const size_t rounds = n_frames / (n_found ? n_found : 1);
		begin = milliseconds(CLOCK_MONOTONIC);
		begin_cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID);
		for (size_t i = 0; i < rounds; i++)
			n_found = trace();
	}
	cpu = milliseconds(CLOCK_THREAD_CPUTIME_ID) - begin_cpu;
	wall = milliseconds(CLOCK_MONOTONIC) - begin;
}

// 64 functions with frames of different sizes and saved registers.
constexpr int kFunctions = 64;
template <int N> int call(int depth, int a, int b);
template <int... N> struct Table {
	static constexpr int (*functions[])(int, int, int) = { call<N>... };
};
template <int N, int... Rest> struct Make : Make<N - 1, N - 1, Rest...> {
};
template <int... Rest> struct Make<0, Rest...> {
	using Type = Table<Rest...>;
};

template <int N> __attribute__((noinline)) int call(int depth, int a, int b)
{
	volatile char room[N % 8 * 24 + 1];
	const int c = a * (N + 3) + b, d = b ^ (N * 77), e = c + d;
	room[0] = static_cast<char>(a);
	if (depth)
		(void)(N % 3 ? Make<kFunctions>::Type::functions[(N * 5 + 1) % kFunctions](depth - 1, c, d) :
			       call<(N * 7 + 3) % kFunctions>(depth - 1, d, e));
	else
		innermost();
	if (N % 2)
		return room[0] + c * d + e;
	return room[0] + c;
}

int depth;

struct Result {
	double wall, cpu;
	size_t n;
};

void *work(void *data)
{
	(void)call<0>(depth, 1, 2);
	*static_cast<Result *>(data) = { wall, cpu, n_found };
	return nullptr;
}

}  // namespace

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	const std::string tool = argv[1];
	depth = atoi(argv[2]);
	n_frames = std::stoul(argv[3]);
	std::vector<Result> results(std::stoul(argv[4]));
	const double start = milliseconds(CLOCK_MONOTONIC);
	if (tool == "fathom" || tool == "fathom-probe") {
		fathom_options options = {};
		fathom_self_options how = {};
		options.size = sizeof options;
		options.flags = FATHOM_NO_CACHE;
		how.size = sizeof how;
		how.flags = FATHOM_SELF_UNWIND;
		if (fathom_create(&options, &session, nullptr) || fathom_self_prepare(session, &how, &self, nullptr))
			return 2;
		trace = tool == "fathom" ? by_fathom : by_fathom_probe;
	} else if (tool == "unw_backtrace") {
		unw_backtrace = symbol<decltype(unw_backtrace)>("libunwind.so.8", "unw_backtrace");
		trace = by_unw_backtrace;
	} else if (tool == "unw_step") {
		unw_getcontext = symbol<decltype(unw_getcontext)>("libunwind.so.8", "_Ux86_64_getcontext");
		unw_init_local = symbol<decltype(unw_init_local)>("libunwind.so.8", "_ULx86_64_init_local");
		unw_step = symbol<decltype(unw_step)>("libunwind.so.8", "_ULx86_64_step");
		trace = by_unw_step;
	} else if (tool == "llvm") {
		llvm_backtrace = symbol<decltype(llvm_backtrace)>("/usr/lib/llvm-14/lib/libunwind.so.1", "_Unwind_Backtrace");
		llvm_ip = symbol<decltype(llvm_ip)>("/usr/lib/llvm-14/lib/libunwind.so.1", "_Unwind_GetIP");
		trace = by_llvm;
	} else {
		trace = tool == "backtrace" ? by_backtrace : by_frame_pointer;
	}
	const double prepared = milliseconds(CLOCK_MONOTONIC) - start;
	std::vector<pthread_t> threads(results.size());
	for (size_t i = 1; i < threads.size(); i++)
		if (pthread_create(&threads[i], nullptr, work, &results[i]))
			return 2;
	work(&results[0]);
	Result sum = {};
	for (size_t i = 0; i < results.size(); i++) {
		if (i)
			(void)pthread_join(threads[i], nullptr);
		sum.wall = results[i].wall > sum.wall ? results[i].wall : sum.wall;
		sum.cpu += results[i].cpu / static_cast<double>(results.size());
		sum.n = results[i].n;
	}
	printf("%.6f %.6f %.3f %.1f %zu\n", sum.wall, sum.cpu, prepared, peak_mib(), sum.n);
	return 0;
}
