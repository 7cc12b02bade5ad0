/* SPDX-License-Identifier: MIT */
/*
 * The formatter for handlers. The expected output is that of Cosmopolitan's kprintf, by its
 * documentation; for directives of standard printf it is also compared with the C library's.
 */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "fathom/fathom.h"

static char text[4096];

#define assert_format(expected, ...)                                                           \
	do {                                                                                   \
		const size_t size_ = fathom_self_format(NULL, text, sizeof text, __VA_ARGS__); \
		assert_string_equal(text, expected);                                           \
		assert_int_equal(size_, strlen(expected));                                     \
	} while (0)

static void numbers(void **state)
{
	(void)state;
	assert_format("9'223'372'036'854'775'807", "%'ld", LONG_MAX);
	assert_format("-9,223,372,036,854,775,808", "%,ld", LONG_MIN);
	assert_format("1_000", "%_d", 1000);
	assert_format("100", "%'d", 100);
	assert_format("true false", "%hhhd %hhhd", 7, 0);
	assert_format("-1 255 -1 65535", "%hhd %hhu %hd %hu", 255, -1, 65535, -1);
	assert_format("18446744073709551615", "%zu", (size_t)-1);
	assert_format("-5 5", "%jd %llu", (intmax_t)-5, 5ull);
	assert_format("1010 0b1010", "%b %#b", 10, 10);
	assert_format("0", "%#b", 0);
	assert_format("DEADBEEF", "%^x", 0xdeadbeefu);
	assert_format("    131'072", "%'11d", 131072);
	assert_format("42", "%*d", 1, 42);
	assert_format("42  |", "%*d|", -4, 42);
}

/* Asserts that the text is the C library's. */
#define assert_as_printf(...)                                                   \
	do {                                                                    \
		char theirs_[512];                                              \
		(void)snprintf(theirs_, sizeof theirs_, __VA_ARGS__);           \
		(void)fathom_self_format(NULL, text, sizeof text, __VA_ARGS__); \
		assert_string_equal(text, theirs_);                             \
	} while (0)

static void numbers_as_printf_has_them(void **state)
{
	static const long values[] = { 0, 1, -1, 7, 42, 1000, -99999, LONG_MAX, LONG_MIN };

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		const long v = values[i];
		const unsigned u = (unsigned)v;

		assert_as_printf("%ld|%5ld|%-5ld|%05ld|%+ld|% ld", v, v, v, v, v, v);
		assert_as_printf("%lx|%lX|%lo|%#lx|%#lX|%lu", v, v, v, v, v, v);
		assert_as_printf("%.0ld|%.5ld|%8.3ld|%-8.3ld|", v, v, v, v);
		assert_as_printf("%x|%08x|%-8x|%u|%d|%i", u, u, u, u, (int)v, (int)v);
		assert_as_printf("%hhd|%hd|%hhu|%hu|%jd|%zx", (int)v, (int)v, u, u, (intmax_t)v,
				 (size_t)v);
		assert_as_printf("%020ld|%+020ld|%-20ld|%#018lx", v, v, v, v);
	}
	assert_as_printf("%s|%10s|%-10s|%.2s|%10.2s|%%|%c|%5c|%-5c|", "text", "text", "text",
			 "text", "text", 'x', 'y', 'z');
}

static void octals_as_printf_has_them(void **state)
{
	(void)state;
	assert_as_printf("%#o %#o %#.0o %.0o", 8, 0, 0, 0);
	assert_as_printf("%#.5o %#.2o %#.1o %#6o|%#-6o|", 8, 8, 8, 8, 8);
}

static void long_precisions_count_whole(void **state)
{
	static char much[65536];

	(void)state;
	memset(much, 'x', sizeof much - 1);
	assert_int_equal(fathom_self_format(NULL, text, sizeof text, "%.50000s", much), 50000);
	assert_int_equal(fathom_self_format(NULL, text, sizeof text, "%.*s", 50000, much), 50000);
}

static void pointers(void **state)
{
	(void)state;
	assert_format("-1 0 0x31337", "%p %p %p", (void *)-1, NULL, (void *)0x31337);
	assert_format("!!31337", "%s", (char *)0x31337);
	assert_format("  !!31337", "%9s", (char *)0x31337);
	assert_format("!!31337", "%#s", (char *)0x31337);
	assert_format("!!ffffffffffffffff", "%s", (char *)-1);
	assert_format("NULL", "%s", (char *)NULL);
	assert_format("", "% s", (char *)NULL);
	/* A wide string at an address that cannot hold one. */
	assert_format("!!31335", "%ls", (wchar_t *)0x31335);
	assert_format("!!31335", "%hs", (char *)0x31335);
	/* Precision 0: nothing is read. */
	assert_format("", "%.0s", (char *)0x31337);
}

/* Pointers that lead nowhere, each in another way. */
struct bad_pointers {
	uint8_t *pages; /* a readable page and an unreadable one */
	uint8_t *file;  /* a mapping beyond the end of its file: reading it raises SIGBUS */
	size_t page;
	uintptr_t at[10];
	size_t n;
};

static void make_bad_pointers(struct bad_pointers *b)
{
	const int fd = memfd_create("short", MFD_CLOEXEC);

	b->page = (size_t)sysconf(_SC_PAGESIZE);
	b->pages =
		mmap(NULL, 2 * b->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(b->pages, MAP_FAILED);
	assert_int_equal(mprotect(b->pages + b->page, b->page, PROT_NONE), 0);
	b->file = mmap(NULL, b->page, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(b->file, MAP_FAILED);
	assert_int_equal(close(fd), 0);
	b->at[b->n++] = 1;
	b->at[b->n++] = 0x31337;
	b->at[b->n++] = UINTPTR_MAX;
	b->at[b->n++] = UINTPTR_MAX - 7;
	/* Not canonical; of the kernel; the first after a program's last. */
	b->at[b->n++] = UINTPTR_MAX / 2 + 1;
	b->at[b->n++] = (uintptr_t)0xffffffff81000000;
	b->at[b->n++] = (uintptr_t)0x7ffffffff000;
	b->at[b->n++] = (uintptr_t)(b->pages + b->page);
	b->at[b->n++] = (uintptr_t)b->file;
}

static void free_bad_pointers(struct bad_pointers *b)
{
	(void)munmap(b->pages, 2 * b->page);
	(void)munmap(b->file, b->page);
}

/* Every directive that takes a pointer, in every type, with every flag but '!'. */
static void bad_pointers_are_shown_and_not_followed(void **state)
{
	static const char *const types[] = { "", "hh", "h", "l" };
	static const char *const flags[] = { "", "#", "`", "^", " ", "-", "0", "'", "+" };
	struct bad_pointers b = { 0 };
	char format[32];
	char expected[80];

	(void)state;
	make_bad_pointers(&b);
	for (size_t i = 0; i < b.n; i++) {
		const unsigned long long at = b.at[i];

		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
				(void)snprintf(format, sizeof format, "%%%s%ss", flags[f],
					       types[t]);
				(void)snprintf(expected, sizeof expected, "!!%llx", at);
				assert_int_equal(fathom_self_format(NULL, text, sizeof text, format,
								    (void *)b.at[i]),
						 strlen(expected));
				assert_string_equal(text, expected);
				(void)snprintf(format, sizeof format, "%%%s.3%ss|", flags[f],
					       types[t]);
				(void)fathom_self_format(NULL, text, sizeof text, format,
							 (void *)b.at[i]);
				assert_memory_equal(text, "!!", 2);
			}
		(void)snprintf(expected, sizeof expected, "%#llx %#llx &%llx", at, at, at);
		(void)fathom_self_format(NULL, text, sizeof text, "%t %lt %#t", (void *)b.at[i],
					 (void *)b.at[i], (void *)b.at[i]);
		assert_string_equal(text, expected);
		(void)snprintf(expected, sizeof expected, at == UINTPTR_MAX ? "-1" : "%#llx", at);
		(void)fathom_self_format(NULL, text, sizeof text, "%p", (void *)b.at[i]);
		assert_string_equal(text, expected);
	}
	free_bad_pointers(&b);
}

/* A wide text whose last unit is cut by the end of the page. */
static void wide_text_ends_before_a_unit_that_is_cut(void **state)
{
	struct bad_pointers b = { 0 };

	(void)state;
	make_bad_pointers(&b);
	memset(b.pages, 'x', b.page);
	assert_format("xxx", "%hhs", b.pages + b.page - 3);
	for (size_t i = 0; i < 8; i += 4) {
		memset(b.pages, 0, b.page);
		b.pages[b.page - 8] = 'a';
		b.pages[b.page - 4] = 'b';
		assert_format(i ? "b" : "ab", "%ls", b.pages + b.page - 8 + i);
	}
	b.pages[b.page - 2] = 'c';
	assert_format("c", "%hs", b.pages + b.page - 2);
	/* One or two bytes are no unit. */
	(void)fathom_self_format(NULL, text, sizeof text, "%hs", b.pages + b.page - 1);
	assert_memory_equal(text, "!!", 2);
	(void)fathom_self_format(NULL, text, sizeof text, "%ls", b.pages + b.page - 2);
	assert_memory_equal(text, "!!", 2);
	free_bad_pointers(&b);
}

static __attribute__((noinline)) int formatted_code(int x)
{
	return x * 3 + 1;
}

/* Its name has an override of the text's direction, a C1 control, and a character without width. */
__attribute__((noinline)) static int steering(int x) __asm__("st\xe2\x80\xae"
							     "eer\xc2\x9b"
							     "ing\xe2\x80\x8b");

static int steering(int x)
{
	return x * 3 + 1;
}

/* The same with a session, and addresses that have names. */
static void addresses_have_names_where_they_are_known(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const uintptr_t at = (uintptr_t)formatted_code;
	struct bad_pointers b = { 0 };
	struct fathom *session;
	struct fathom_self *self;
	char expected[64];

	(void)state;
	make_bad_pointers(&b);
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_self_prepare(session, NULL, &self, NULL), 0);
	for (size_t i = 0; i < b.n; i++) {
		(void)snprintf(expected, sizeof expected, "%#llx", (unsigned long long)b.at[i]);
		(void)fathom_self_format(self, text, sizeof text, "%t", (void *)b.at[i]);
		assert_string_equal(text, expected);
		(void)fathom_self_format(self, text, sizeof text, "%lt", (void *)b.at[i]);
		assert_string_equal(text, expected);
	}
	(void)fathom_self_format(self, text, sizeof text, "%t %#t %20t|%-20t|", (void *)at,
				 (void *)at, (void *)(at + 1), (void *)at);
	assert_string_equal(
		text, "formatted_code &formatted_code   formatted_code+0x1|formatted_code      |");
	(void)fathom_self_format(self, text, sizeof text, "%t|", (void *)(uintptr_t)steering);
	assert_string_equal(text, "st\xef\xbf\xbd"
				  "eer\xef\xbf\xbd"
				  "ing\xef\xbf\xbd|");
	assert_int_equal(steering(1), 4);
	fathom_self_destroy(self);
	fathom_destroy(session);
	free_bad_pointers(&b);
}

static long long monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* %T: time since preparation; it only grows. */
static void time_passes(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const struct timespec pause = { 0, 20000000 };
	struct fathom *session;
	struct fathom_self *self;
	const long long start = monotonic_ns();
	long long first, second, passed;

	(void)state;
	assert_int_equal(fathom_create(&options, &session, NULL), 0);
	assert_int_equal(fathom_self_prepare(session, NULL, &self, NULL), 0);
	(void)fathom_self_format(self, text, sizeof text, "%T", 0);
	first = atoll(text);
	(void)nanosleep(&pause, NULL);
	(void)fathom_self_format(self, text, sizeof text, "%T", 0);
	second = atoll(text);
	passed = monotonic_ns() - start;
	assert_true(first >= 0);
	assert_true(second - first >= 20000000 && second <= passed);
	(void)fathom_self_format(self, text, sizeof text, "%'18T|", 0);
	assert_true(strlen(text) == 19 && strchr(text, '\''));
	fathom_self_destroy(self);
	fathom_destroy(session);
}

/* A text that only the page ends. */
static void text_ends_with_the_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	memset(pages, 'x', page);
	assert_format("xxx", "%s", pages + page - 3);
	assert_format("\"xxx\"", "%#s", pages + page - 3);
	(void)snprintf(text + 2048, 64, "!!%llx", (unsigned long long)(uintptr_t)(pages + page));
	(void)fathom_self_format(NULL, text, 64, "%.2s", pages + page);
	assert_string_equal(text, text + 2048);
	(void)munmap(pages, 2 * page);
	assert_format("ok", "%!s", "ok");
}

static void text_as_c_writes_it(void **state)
{
	static const uint16_t wide[] = { 0x263a, 0x263a, 0 };
	static const uint16_t pair[] = { 0xd83d, 0xde00, 'x', 0xd83d, 0 };

	(void)state;
	assert_format("\"xx\"", "%#s", "xx");
	assert_format("\"xx\"", "%`s", "xx");
	assert_format("u\"☺☺\"", "%#hs", wide);
	assert_format("L\"☺x\"", "%#ls", L"☺x");
	assert_format("'x' 'A'", "%#c %#c", 'x', 'A');
	assert_format("u'☺' L'☺'", "%#hc %#lc", 0x263a, 0x263a);
	assert_format("\"\\\\ \\\" ' \\001 \\n\\t \\177\"", "%#s", "\\ \" ' \1 \n\t \177");
	assert_format("'\\'' '\"'", "%#c %#c", '\'', '"');
	assert_format("\xf0\x9f\x98\x80x\xef\xbf\xbd", "%hs", pair);
	assert_format("☺", "%C", 0x263a);
	assert_format("HELLO", "%^s", "hello");
}

static void controls_are_shown(void **state)
{
	(void)state;
	assert_format("␁␛[0m␡", "%s", "\1\33[0m\177");
	assert_format("a\nb\tc", "%s", "a\nb\tc");
	assert_format("␁ ☺", "%c %hhc", 1, 1);
	/* Invalid UTF-8: a single byte, a surrogate, an overlong '/', C1 controls. */
	assert_format("\xef\xbf\xbdx", "%s", "\xffx");
	assert_format("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "%s", "\xed\xa0\x80");
	assert_format("\xef\xbf\xbd\xef\xbf\xbd", "%s", "\xc0\xaf");
	assert_format("\xef\xbf\xbd", "%s", "\xc2\x9b");
	assert_format("\"\\377x\"", "%#s", "\xffx");
	assert_format("\"a\\u0080\\u009bb\"", "%#s",
		      "a\xc2\x80\xc2\x9b"
		      "b");
	assert_format("☺", "%s", "☺");
}

static void bytes_as_glyphs(void **state)
{
	static const uint8_t elf[] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 9, 0, 0 };

	(void)state;
	assert_format("u\"☺☻\"", "%#.*hhs", 2, "\1\2\3");
	/* What the document that started it shows of an ELF file. */
	assert_format("u\"⌂ELF☻☺☺○\xc2\xa0\xc2\xa0\"", "%#.*hhs", (int)sizeof elf, elf);
	assert_format("é█ß", "%hhs", "\x82\xdb\xe1");
}

static void precision_does_not_cut_characters(void **state)
{
	(void)state;
	/* The text ends inside the character, not the precision. */
	assert_format("a\xef\xbf\xbd", "%.10s", "a\xc3");
	assert_format("a☺", "%.4s", "a☺☺");
	assert_format("a☺", "%.5s", "a☺☺");
	assert_format("a☺", "%.6s", "a☺☺");
	assert_format("a☺☺", "%.7s", "a☺☺");
	assert_format("   ☺", "%4s", "☺");
	assert_format("☺   |", "%-4s|", "☺");
}

static void names_of_numbers(void **state)
{
	(void)state;
	errno = EBADF;
	assert_format("x", "x% m", 0);
	assert_format("x ENOENT", "x% m", ENOENT);
	assert_format("ENOENT EAGAIN", "%m %m", ENOENT, EAGAIN);
	assert_format("99999", "%m", 99999);
	assert_format("SIGSEGV SIGKILL 64", "%G %G %G", SIGSEGV, SIGKILL, 64);
	assert_int_equal(errno, EBADF);
	(void)snprintf(text + 2048, 64, "%d %ld", getpid(), syscall(SYS_gettid));
	(void)fathom_self_format(NULL, text, 64, "%P %H");
	assert_string_equal(text, text + 2048);
	assert_format("a\n100%", "a%n100%%");
	assert_format("0x31337 &31337", "%t %#t", (void *)0x31337, (void *)0x31337);
}

static void text_that_is_cut(void **state)
{
	char buf[16];

	(void)state;
	memset(buf, 'Z', sizeof buf);
	assert_int_equal(fathom_self_format(NULL, buf, 8, "%s", "0123456789"), 10);
	assert_string_equal(buf, "0123...");
	assert_int_equal(buf[8], 'Z');
	assert_int_equal(fathom_self_format(NULL, buf, 8, "%s%n", "0123456789"), 11);
	assert_string_equal(buf, "012...\n");
	/* A text that fits is whole. */
	assert_int_equal(fathom_self_format(NULL, buf, 8, "%s", "0123456"), 7);
	assert_string_equal(buf, "0123456");
	/* Two characters of three bytes, cut inside the second. */
	assert_int_equal(fathom_self_format(NULL, buf, 9, "☺☺☺"), 9);
	assert_string_equal(buf, "☺...");
	for (size_t cap = 0; cap < 5; cap++) {
		memset(buf, 'Z', sizeof buf);
		assert_int_equal(fathom_self_format(NULL, buf, cap, "0123456789"), 10);
		assert_int_equal(buf[cap], 'Z');
		if (cap)
			assert_int_equal(buf[cap - 1], '\0');
	}
	assert_int_equal(fathom_self_format(NULL, NULL, 0, "%d", 12345), 5);
}

static void directives_that_are_none(void **state)
{
	(void)state;
	assert_format("a%y %d", "a%y %d");
	assert_format("%", "%");
	assert_format("1 %5", "%d %5", 1);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* 1,000,000 random formats, some of them in a handler. */
static volatile sig_atomic_t formatted;
static uint32_t dice = 1;

static uint32_t roll(uint32_t n)
{
	dice = dice * 1664525 + 1013904223;
	return (dice >> 8) % n;
}

static void format_dice(void)
{
	static const char signs[] =
		"%%%%%0123456789-+ #'`,_^.*hljzcCsduixXobpnmGtTPHqy\1\n\xe2\x98";
	/* No '!': that asks for a fault. */
	static const uintptr_t arguments[] = { 0, 1, 31337, 7, (uintptr_t)-1 };
	char format[24];
	char out[64];
	const size_t size = roll(sizeof format - 1);
	const size_t cap = roll(sizeof out);
	size_t len;

	for (size_t i = 0; i < size; i++)
		format[i] = signs[roll(sizeof signs - 1)];
	format[size] = '\0';
	memset(out, 'Z', sizeof out);
	len = fathom_self_format(
		NULL, out, cap, format, arguments[roll(5)], arguments[roll(5)], arguments[roll(5)],
		arguments[roll(5)], arguments[roll(5)], arguments[roll(5)], arguments[roll(5)],
		arguments[roll(5)], arguments[roll(5)], arguments[roll(5)], arguments[roll(5)],
		arguments[roll(5)], arguments[roll(5)], arguments[roll(5)], arguments[roll(5)],
		arguments[roll(5)], arguments[roll(5)], arguments[roll(5)], arguments[roll(5)],
		arguments[roll(5)], arguments[roll(5)], arguments[roll(5)], arguments[roll(5)]);
	/* Never writes beyond the end, always a NUL. */
	for (size_t i = cap; i < sizeof out; i++)
		if (out[i] != 'Z')
			abort();
	if (cap && strlen(out) != (len < cap ? len : strlen(out)))
		abort();
	formatted++;
}

static void on_timer(int number)
{
	const int kept = errno;

	(void)number;
	for (int i = 0; i < 200; i++)
		format_dice();
	if (errno != kept)
		abort();
}

static void dice_in_a_handler(void **state)
{
	const struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	const char *wrapper = getenv("WRAPPER");
	/* Emulators and sanitizers are slow. */
	const bool is_slow = SANITIZED || (wrapper && *wrapper);
	/* The handler must return before the next signal, or the program would not advance. */
	const int us = is_slow ? 50000 : 200;
	const struct itimerval often = { { 0, us }, { 0, us } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	const int wanted = is_slow ? 10000 : 1000000;

	(void)state;
	errno = ERANGE;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (formatted < wanted) {
		/* volatile, because compilers drop what is freed at once */
		void *volatile p = malloc(64 + (size_t)formatted % 4096);

		free(p);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(errno, ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(numbers_as_printf_has_them),
		cmocka_unit_test(octals_as_printf_has_them),
		cmocka_unit_test(long_precisions_count_whole),
		cmocka_unit_test(pointers),
		cmocka_unit_test(bad_pointers_are_shown_and_not_followed),
		cmocka_unit_test(wide_text_ends_before_a_unit_that_is_cut),
		cmocka_unit_test(addresses_have_names_where_they_are_known),
		cmocka_unit_test(time_passes),
		cmocka_unit_test(text_ends_with_the_memory),
		cmocka_unit_test(text_as_c_writes_it),
		cmocka_unit_test(controls_are_shown),
		cmocka_unit_test(bytes_as_glyphs),
		cmocka_unit_test(precision_does_not_cut_characters),
		cmocka_unit_test(names_of_numbers),
		cmocka_unit_test(text_that_is_cut),
		cmocka_unit_test(directives_that_are_none),
		cmocka_unit_test(dice_in_a_handler),
	};

	return cmocka_run_group_tests_name("self_format", tests, NULL, NULL);
}
